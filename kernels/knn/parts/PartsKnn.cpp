#include "kernels/knn/parts/PartsKnn.h"

#include <algorithm>

#include "kernels/common/Error.h"
#include "kernels/knn/FlatKnnPlan.h"
#include "kernels/knn/fused/FusedKnn.h"

namespace faiss_bits {

namespace {

/// Results of parts that are kept at a time: enough that queries share the
/// reading of the vectors.
constexpr size_t kMostListBytes = size_t(256) << 20;

idx_t divUp(idx_t a, idx_t b) {
    return (a + b - 1) / b;
}

idx_t mostOfPart(const FlatKnnProblem& p) {
    return p.partVectors > 0 ? p.partVectors : kMostPartVectors;
}

idx_t firstOf(const PartsPlan& plan, int part) {
    return idx_t(part) * plan.partVectors;
}

void checkParts(const FlatKnnProblem& p) {
    FlatKnnProblem some = p; // with its partVectors, which is checked first
    some.numVectors = mostOfPart(p);
    some.allowedIds = nullptr;
    checkFlatKnnShape(some);
    BITS_THROW_IF_NOT_FMT(
            p.numVectors <= mostOfPart(p) * kMaxMergeLists,
            "numVectors = %lld is more than %lld",
            (long long)p.numVectors,
            (long long)(mostOfPart(p) * kMaxMergeLists));
    BITS_THROW_IF_NOT_FMT(
            p.vectorsRowMajor || p.d == 1,
            "vectorsRowMajor = false: column by column at most %lld vectors "
            "are searched, and numVectors = %lld",
            (long long)mostOfPart(p),
            (long long)p.numVectors);
    BITS_THROW_IF_NOT_FMT(
            p.idType == IdType::Int64,
            "idType = Int32, but numVectors = %lld",
            (long long)p.numVectors);
    const idx_t parts = divUp(p.numVectors, mostOfPart(p));
    BITS_THROW_IF_NOT_FMT(
            parts * p.k < idx_t(1) << 32,
            "k = %lld: %lld parts have %lld results for a query, 2^32 - 1 is "
            "the most",
            (long long)p.k,
            (long long)parts,
            (long long)(parts * p.k));
}

/// What the searches of the parts found, of a tile of queries.
struct Lists {
    float* distances = nullptr; // [parts, tileQueries, k]
    idx_t* ids = nullptr;       // the same
    size_t step = 0;            // from part to part

    Lists(const FlatKnnProblem& p,
          const PartsPlan& plan,
          WorkspaceSlices& slices)
            : step(size_t(plan.tileQueries) * p.k) {
        distances = slices.take<float>(plan.parts * step);
        ids = slices.take<idx_t>(plan.parts * step);
    }
};

} // namespace

bool needsParts(const FlatKnnProblem& p) {
    return p.numVectors >
            (p.partVectors > 0 ? p.partVectors : idx_t(INT32_MAX));
}

FlatKnnProblem partOf(
        const FlatKnnProblem& p,
        const PartsPlan& plan,
        int part,
        idx_t firstQuery,
        idx_t count) {
    const idx_t first = firstOf(plan, part);
    const auto bytesFrom = [](const void* data, idx_t elements, DataType type) {
        return data ? static_cast<const char*>(data) +
                        size_t(elements) * sizeOf(type)
                    : nullptr;
    };
    FlatKnnProblem some = p;
    some.partVectors = 0;
    some.numVectors = std::min(plan.partVectors, p.numVectors - first);
    some.vectors = bytesFrom(p.vectors, first * p.d, p.dataType);
    some.vectorNorms = p.vectorNorms ? p.vectorNorms + first : nullptr;
    some.vectorFacts = p.vectorFacts ? p.vectorFacts + first : nullptr;
    // Lists and images are of all vectors; bounds that hold for all hold here.
    some.allowedBits = p.allowedBits ? p.allowedBits + first / 32 : nullptr;
    some.allowedIds = nullptr;
    some.numAllowed = 0;
    some.searchImage = nullptr;

    some.batchQueries = batchOf(p);
    some.numQueries = count;
    const bool rowMajor = p.queriesRowMajor || p.d == 1;
    if (rowMajor) {
        some.queries = bytesFrom(p.queries, firstQuery * p.d, p.dataType);
    }
    some.exactQueries =
            p.exactQueries ? p.exactQueries + firstQuery * p.d : nullptr;
    some.limits = p.limits ? p.limits + firstQuery : nullptr;
    some.outDistances = nullptr;
    some.outIds = nullptr;
    return some;
}

namespace {

/// Scratch of a plan whose parts and tiles are known.
void measure(PartsPlan& plan, const FlatKnnProblem& p, size_t maxBytes) {
    WorkspaceSlices slices;
    Lists(p, plan, slices);
    plan.listBytes = slices.used();
    const size_t left =
            maxBytes > plan.listBytes ? maxBytes - plan.listBytes : 0;
    const idx_t tiles = divUp(p.numQueries, plan.tileQueries);
    const idx_t last = p.numQueries - (tiles - 1) * plan.tileQueries;
    plan.bytes = plan.listBytes;
    plan.places = 0;
    for (int part : {0, plan.parts - 1}) {
        const FlatKnnPlan tile =
                planFlatKnn(partOf(p, plan, part, 0, plan.tileQueries), left);
        plan.bytes = std::max(plan.bytes, plan.listBytes + tile.bytes);
        plan.places += (part == 0 ? plan.parts - 1 : 1) *
                idx_t(tile.method ? tile.places : 0);
        if (last < plan.tileQueries) {
            const size_t bytes =
                    flatKnnWorkspaceBytes(partOf(p, plan, part, 0, last), left);
            plan.bytes = std::max(plan.bytes, plan.listBytes + bytes);
        }
    }
}

} // namespace

PartsPlan planParts(const FlatKnnProblem& p, size_t maxBytes) {
    checkParts(p);
    if (p.numQueries == 0) {
        return {};
    }
    PartsPlan plan;
    const idx_t words = divUp(p.numVectors, 32);
    plan.parts = int(divUp(p.numVectors, mostOfPart(p)));
    plan.partVectors = 32 * divUp(words, plan.parts);
    // Rounded up, the last ones may be none.
    plan.parts = int(divUp(p.numVectors, plan.partVectors));

    const size_t queryBytes =
            size_t(plan.parts) * p.k * (sizeof(float) + sizeof(idx_t));
    idx_t fits = std::clamp<idx_t>(
            idx_t(kMostListBytes / queryBytes), 1, p.numQueries);
    // Columns of queries lie as far apart as there are queries.
    const bool isWhole = !p.queriesRowMajor && p.d > 1;
    // The steps do not depend on maxBytes, so that a run finds the plan its
    // size came from.
    for (;; fits = divUp(fits, 2)) {
        plan.tileQueries = isWhole
                ? p.numQueries
                : divUp(p.numQueries, divUp(p.numQueries, fits));
        measure(plan, p, maxBytes);
        if (plan.bytes <= maxBytes || plan.tileQueries == 1 || isWhole) {
            return plan;
        }
    }
}

std::string PartsPlan::toString() const {
    return formatMessage(
            "%d parts of %lld vectors, %lld queries at a time, %zu bytes",
            parts,
            (long long)partVectors,
            (long long)tileQueries,
            bytes);
}

void runParts(
        const PartsPlan& plan,
        const FlatKnnProblem& p,
        Workspace workspace,
        cublasHandle_t handle,
        cudaStream_t stream) {
    WorkspaceSlices slices(workspace);
    const Lists lists(p, plan, slices);
    const Workspace ofPart{
            static_cast<char*>(workspace.data) + plan.listBytes,
            workspace.bytes - plan.listBytes};
    for (idx_t q = 0; q < p.numQueries; q += plan.tileQueries) {
        MergeProblem merge;
        merge.rows = std::min(plan.tileQueries, p.numQueries - q);
        merge.k = p.k;
        merge.largest = isSimilarity(p.metric);
        merge.idsAscend = true;
        merge.outDistances = p.outDistances + size_t(q) * p.k;
        merge.outIds = static_cast<idx_t*>(p.outIds) + size_t(q) * p.k;
        for (int part = 0; part < plan.parts; ++part) {
            FlatKnnProblem some = partOf(p, plan, part, q, merge.rows);
            some.outDistances = lists.distances + part * lists.step;
            some.outIds = lists.ids + part * lists.step;
            runFlatKnn(some, ofPart, handle, stream);
            MergeList list;
            list.distances = some.outDistances;
            list.ids = lists.ids + part * lists.step;
            list.width = p.k;
            list.idOffset = firstOf(plan, part);
            merge.lists.push_back(list);
        }
        runMergeLists(merge, stream);
    }
}

} // namespace faiss_bits
