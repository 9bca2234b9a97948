#include "kernels/knn/FlatKnnPlan.h"

#include "kernels/common/Error.h"
#include "kernels/knn/FlatKnnTakes.h"
#include "kernels/knn/RowFacts.h"
#include "kernels/knn/filter/FilterPlan.h"
#include "kernels/knn/gemm/Product.h"

namespace faiss_bits {

namespace {

/// More scratch than this buys nothing: the launches are long enough.
constexpr size_t kMostTileBytes = size_t(1) << 30;
/// Least vectors of a tile, where there are that many.
constexpr idx_t kLeastTileVectors = 16384;
constexpr int kMaxSlots = 8;
/// More queries a product are not faster, and kernels need not count them.
constexpr idx_t kMostTileQueries = idx_t(1) << 20;
/// Queries that shall share a read of the vectors, where there are that many.
constexpr idx_t kLeastSharing = 16;

idx_t divUp(idx_t a, idx_t b) {
    return (a + b - 1) / b;
}

/// L2 from products: the selection adds the norms.
bool addsNorms(const FlatKnnProblem& p, const FlatKnnPlan& plan) {
    return p.metric == Metric::L2 && plan.method->addsNorms;
}

/// From products, with a filter: the selection adds what makes NaN of the rest.
bool addsFilter(const FlatKnnProblem& p, const FlatKnnPlan& plan) {
    return p.allowedBits && plan.method->addsNorms;
}

/// Slots for the results of that many tiles. For a large k they take no more
/// scratch than the tile of distances, save that a merge needs two.
int slotsFor(const FlatKnnPlan& plan, const FlatKnnProblem& p) {
    if (plan.numVectorTiles == 1) {
        return 0;
    }
    const idx_t most = std::min<idx_t>(plan.numVectorTiles, kMaxSlots);
    if (p.k <= kMaxSelectK) {
        return int(most);
    }
    const idx_t slotBytes =
            2 * idx_t(p.k) * idx_t(sizeof(float) + sizeOf(p.idType));
    const idx_t tileBytes = plan.tileVectors * idx_t(sizeof(float));
    return int(std::clamp<idx_t>(tileBytes / slotBytes, 2, most));
}

/// Least width of a row of a tile, where products need one.
idx_t leastStride(const FlatKnnPlan& plan) {
    return plan.byList && plan.method->addsNorms ? kLeastGatheredVectors : 1;
}

/// Sets the tiles' count and width from the widest that is allowed.
void setVectorTiles(FlatKnnPlan& plan, const FlatKnnProblem& p, idx_t widest) {
    const idx_t n = std::max<idx_t>(plan.columns, 1);
    plan.numVectorTiles = divUp(n, widest);
    constexpr idx_t kStep = FlatKnnPlan::kTileStep;
    plan.distanceStride = divUp(divUp(n, kStep), plan.numVectorTiles) * kStep;
    plan.tileVectors = std::min(n, plan.distanceStride);
    plan.distanceStride = std::max(plan.distanceStride, leastStride(plan));
    plan.slots = slotsFor(plan, p);
}

SelectProblem selection(const FlatKnnProblem& p, idx_t queries, idx_t cols) {
    SelectProblem select;
    select.rows = queries;
    select.cols = cols;
    select.k = p.k;
    select.largest = isSimilarity(p.metric);
    select.idType = p.idType;
    select.device = p.device;
    return select;
}

size_t measure(const FlatKnnProblem& p, const FlatKnnPlan& plan) {
    WorkspaceSlices slices;
    FlatKnnScratch(p, plan, slices);
    return slices.used();
}

} // namespace

SelectProblem tileSelection(
        const FlatKnnProblem& p,
        const FlatKnnPlan& plan,
        idx_t queries,
        idx_t cols) {
    SelectProblem select = selection(p, queries, cols);
    if (addsNorms(p, plan) && plan.columns > 0) {
        select.colBiasGiven = true;
        select.rowBiasGiven = true;
    } else if (addsFilter(p, plan) && plan.columns > 0) {
        select.colBiasGiven = true;
        select.largest = false;
        select.clampAtZero = false;
        select.negated = true;
    }
    if (plan.byList && plan.columns > 0) {
        select.idsGiven = true;
        select.sharedIds = true;
    }
    // Of several tiles, the merge drops it: an empty place of one could pass
    // for a result.
    select.dropNan = plan.numVectorTiles == 1;
    return select;
}

SelectProblem mergeSelection(
        const FlatKnnProblem& p,
        const FlatKnnPlan& plan,
        idx_t queries,
        int filledSlots) {
    SelectProblem select = selection(p, queries, idx_t(filledSlots) * p.k);
    select.rowStride = idx_t(plan.slots) * p.k;
    select.idsGiven = true;
    return select;
}

FlatKnnScratch::FlatKnnScratch(
        const FlatKnnProblem& problem,
        const FlatKnnPlan& plan,
        WorkspaceSlices& slices) {
    const FlatKnnProblem p = generatorProblem(problem, plan);
    if (plan.makeVectorNorms) {
        vectorNorms = slices.take<float>(p.numVectors);
    }
    if (addsNorms(p, plan)) {
        queryNorms = slices.take<float>(p.numQueries);
    }
    if (plan.byList && p.idType == IdType::Int64) {
        wideIds = slices.take<idx_t>(p.numAllowed);
    }
    if (addsFilter(p, plan)) {
        columnBias = slices.take<float>(plan.tileVectors);
        if (plan.byList) {
            gathered = slices.take<uint8_t>(
                    size_t(plan.distanceStride) * p.d * sizeOf(p.dataType));
        }
    }
    if (rowFactsOf(p.metric) != RowFacts::None) {
        if (!p.vectorFacts) {
            vectorFacts = slices.take<float>(p.numVectors);
        }
        queryFacts = slices.take<float>(p.numQueries);
    }
    product = slices.take<uint8_t>(Product::workspaceBytes(p.dataType));
    const size_t values = size_t(plan.tileQueries) * plan.distanceStride;
    if (plan.certified) {
        certified.take(problem, plan.places, plan.tileQueries, slices);
        certified.takeFacts(problem, plan.method->bound(p), slices);
        certified.listEntries =
                std::max(leastListEntries(problem), (values + 1) / 2);
        certified.lists = slices.take<uint64_t>(certified.listEntries);
        distances = reinterpret_cast<float*>(certified.lists);
        certified.takeAgain(problem, plan.tileQueries, slices);
    } else {
        distances = slices.take<float>(values);
    }
    const size_t places = size_t(plan.tileQueries) * plan.slots * p.k;
    for (int i = 0; i < 2; ++i) {
        tileKeys[i] = slices.take<float>(places);
        tileIds[i] = slices.take<uint8_t>(places * sizeOf(p.idType));
    }
    size_t bytes = 0;
    for (const FlatKnnPlan::Selection& one : plan.selections) {
        bytes = std::max(bytes, one.plan.workspaceBytes());
    }
    select.data = slices.take<uint8_t>(bytes);
    select.bytes = bytes;
}

namespace {

/// Every selection of the run: over tiles of any width, and over the slots, for
/// full and last sets of queries.
void planSelections(FlatKnnPlan& plan, const FlatKnnProblem& p) {
    plan.selections.clear();
    const auto add = [&](const SelectProblem& shape, bool ofSlots) {
        for (const FlatKnnPlan::Selection& one : plan.selections) {
            if (one.rows == shape.rows && one.cols == shape.cols &&
                one.ofSlots == ofSlots) {
                return;
            }
        }
        plan.selections.push_back(
                {planSelection(shape), shape.rows, shape.cols, ofSlots});
    };
    const idx_t n = plan.columns;
    const idx_t last = n - plan.tileBegin(plan.numVectorTiles - 1, n);
    const idx_t widest = plan.numVectorTiles == 1 ? n : plan.tileVectors;
    const idx_t narrow =
            plan.numVectorTiles == 1 ? n : widest - FlatKnnPlan::kTileStep;
    const idx_t sets = divUp(p.numQueries, plan.tileQueries);
    for (idx_t queries :
         {plan.tileQueries, p.numQueries - (sets - 1) * plan.tileQueries}) {
        for (idx_t cols : {widest, narrow, last}) {
            add(tileSelection(p, plan, queries, cols), false);
        }
        for (int filled = 2; filled <= plan.slots; ++filled) {
            add(mergeSelection(p, plan, queries, filled), true);
        }
    }
}

} // namespace

const SelectPlan& FlatKnnPlan::selectionOf(idx_t rows, idx_t cols, bool ofSlots)
        const {
    for (const Selection& one : selections) {
        if (one.rows == rows && one.cols == cols && one.ofSlots == ofSlots) {
            return one.plan;
        }
    }
    throw Error(formatMessage(
            "no selection of %lld x %lld was planned: the problem is not of "
            "the plan's shape",
            (long long)rows,
            (long long)cols));
}

FlatKnnProblem generatorProblem(
        const FlatKnnProblem& problem,
        const FlatKnnPlan& plan) {
    FlatKnnProblem generator = problem;
    if (plan.certified) {
        generator.k = plan.places;
        generator.idType = IdType::Int32;
    }
    return generator;
}

namespace {

/// The largest tiles that fit, over all vectors or over those of the list. The
/// problem has queries.
FlatKnnPlan planTiles(
        const FlatKnnProblem& problem,
        bool byList,
        size_t maxBytes) {
    FlatKnnPlan plan;
    plan.certified =
            problem.mode != SearchMode::Plain && problem.numVectors > 0;
    plan.places = plan.certified ? candidatesFor(problem) : problem.k;
    const FlatKnnProblem p = generatorProblem(problem, plan);
    plan.method = &distanceMethodFor(p);
    plan.byList = byList;
    plan.columns = byList ? p.numAllowed : p.numVectors;
    plan.makeVectorNorms =
            addsNorms(p, plan) && !p.vectorNorms && p.numVectors > 0 && !byList;

    const idx_t least = std::max<idx_t>(kLeastTileVectors, 8 * idx_t(p.k));
    const auto tryTiles = [&](size_t tileBytes, idx_t fewest) {
        const idx_t values = idx_t(tileBytes / sizeof(float));
        // All vectors in one tile where some queries fit: nothing to merge.
        setVectorTiles(plan, p, std::max(least, values / fewest));
        const idx_t most = std::clamp(
                values / plan.distanceStride, fewest, kMostTileQueries);
        plan.tileQueries = divUp(p.numQueries, divUp(p.numQueries, most));
        planSelections(plan, p);
        plan.bytes = measure(problem, plan);
    };
    const size_t rowBytes = sizeof(float) * FlatKnnPlan::kTileStep *
            divUp(std::max(plan.columns, leastStride(plan)),
                  FlatKnnPlan::kTileStep);
    const size_t mostBytes = kMostTileBytes / rowBytes < size_t(p.numQueries)
            ? kMostTileBytes
            : rowBytes * p.numQueries;
    // The tile is most of the scratch: a few steps find what fits. They do not
    // depend on maxBytes, so that a run finds the plan its size came from.
    FlatKnnPlan smallest;
    smallest.bytes = SIZE_MAX;
    // Queries that share a read of the vectors. With a large k the tiles have
    // a large least width, and the queries must give way.
    for (idx_t fewest = std::min<idx_t>(p.numQueries, kLeastSharing);;
         fewest = divUp(fewest, 4)) {
        for (size_t bytes = mostBytes;;
             bytes = bytes > 4096 ? bytes / 4 * 3 : 0) {
            tryTiles(bytes, fewest);
            if (plan.bytes <= maxBytes) {
                return plan;
            }
            if (plan.bytes < smallest.bytes) {
                smallest = plan;
            }
            if (bytes == 0) {
                break;
            }
        }
        if (fewest == 1 || p.k <= kMaxSelectK) {
            return smallest;
        }
    }
}

/// A certified search that needs no matrix, and what plans it.
template <class Part>
FlatKnnPlan withoutTiles(
        std::optional<Part> FlatKnnPlan::*member,
        std::optional<Part> part) {
    FlatKnnPlan plan;
    plan.certified = true;
    plan.bytes = part->bytes;
    plan.*member = std::move(part);
    return plan;
}

FlatKnnPlan planOfParts(const FlatKnnProblem& p, size_t maxBytes) {
    FlatKnnPlan plan;
    PartsPlan parts = planParts(p, maxBytes);
    if (p.numQueries > 0) {
        plan.certified = p.mode != SearchMode::Plain;
        plan.bytes = parts.bytes;
        plan.parts = std::move(parts);
    }
    return plan;
}

} // namespace

FlatKnnPlan planFlatKnn(const FlatKnnProblem& p, size_t maxBytes) {
    if (needsParts(p)) {
        return planOfParts(p, maxBytes);
    }
    checkFlatKnnShape(p);
    if (p.numQueries == 0) {
        return {};
    }
    if (std::optional<LinePlan> part = planLine(p, maxBytes)) {
        return withoutTiles(&FlatKnnPlan::line, std::move(part));
    }
    if (p.limits) {
        if (std::optional<FusedPlan> part = planFused(p, maxBytes)) {
            return withoutTiles(&FlatKnnPlan::fused, std::move(part));
        }
    }
    if (sortedLinePays(p)) {
        if (std::optional<SortedLinePlan> part = planSortedLine(p, maxBytes)) {
            return withoutTiles(&FlatKnnPlan::sortedLine, std::move(part));
        }
    }
    const bool pairsPay = allPairsPays(p);
    if (directPays(p, p.searchImage) &&
        !(pairsPay && allPairsMicroseconds(p) < directMicroseconds(p))) {
        if (std::optional<DirectPlan> part = planDirect(p, maxBytes)) {
            return withoutTiles(&FlatKnnPlan::direct, std::move(part));
        }
    }
    if (fewDimsPays(p)) {
        if (std::optional<FewDimsPlan> part = planFewDims(p, maxBytes)) {
            return withoutTiles(&FlatKnnPlan::fewDims, std::move(part));
        }
    }
    if (fewDimsTopPays(p)) {
        if (std::optional<FewDimsTopPlan> part = planFewDimsTop(p, maxBytes)) {
            return withoutTiles(&FlatKnnPlan::fewDimsTop, std::move(part));
        }
    }
    if (std::optional<FusedPlan> part = planFusedByStrips(p, maxBytes);
        part && stripsPay(*part, p)) {
        return withoutTiles(&FlatKnnPlan::fused, std::move(part));
    }
    if (pairsPay) {
        if (std::optional<AllPairsPlan> part = planAllPairs(p, maxBytes)) {
            return withoutTiles(&FlatKnnPlan::allPairs, std::move(part));
        }
    }
    if (std::optional<NearestPlan> part = planNearest(p, maxBytes);
        part && !isLongCosine(p)) {
        return withoutTiles(&FlatKnnPlan::nearest, std::move(part));
    }
    if (!isFewWithoutImage(p)) {
        if (std::optional<FusedPlan> part = planFused(p, maxBytes)) {
            return withoutTiles(&FlatKnnPlan::fused, std::move(part));
        }
    }
    if (listPays(p, distanceMethodFor(p), p.numQueries)) {
        FlatKnnPlan plan = planTiles(p, true, maxBytes);
        // Several tiles of vectors are copied for every set of queries.
        if (plan.bytes <= maxBytes &&
            (plan.numVectorTiles == 1 ||
             listPays(p, *plan.method, plan.tileQueries))) {
            return plan;
        }
    }
    const FlatKnnPlan plan = planTiles(p, false, maxBytes); // the least of both
    // With as much scratch another way may do.
    return plan.bytes > maxBytes ? planFlatKnn(p, plan.bytes) : plan;
}

} // namespace faiss_bits
