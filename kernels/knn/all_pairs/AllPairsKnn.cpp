#include "kernels/knn/all_pairs/AllPairsKnn.h"

#include <algorithm>
#include <cmath>

#include "kernels/common/Error.h"
#include "kernels/knn/all_pairs/AllPairsLaunch.h"
#include "kernels/knn/all_pairs/SplitPairs.h"
#include "kernels/knn/all_pairs/digits/DigitSearch.h"
#include "kernels/knn/certified/Certified.h"
#include "kernels/knn/direct/DirectKnn.h"
#include "kernels/knn/fused/FusedCost.h"
#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/nearest/NearestKnn.h"

namespace faiss_bits {

namespace {

/// The matrix stays in L2 between its two kernels.
constexpr size_t kTileBytes = size_t(24) << 20;
/// By digits, which have more kernels, fewer launches are worth more than that.
constexpr size_t kDigitTileBytes = size_t(96) << 20;
constexpr idx_t kLeastTileQueries = 64;
/// More are better found by a sample, or by their nearest ones.
constexpr idx_t kMostVectors = 16384;
constexpr idx_t kMostVectorsOfDigits = 65536;
constexpr idx_t kMostVectorsOfLargeK = 65536;
/// More were not measured; of few dimensions they took longer.
constexpr idx_t kMostVectorsOfCosine = idx_t(1) << 20;
constexpr int kMostDims = 2048;
constexpr idx_t kRowStep = 8; // elements: rows begin on 32 bytes

using Launch = void (*)(const AllPairsParams&, int, cudaStream_t);

/// nullptr for metrics whose terms cost more than sums of products.
Launch launchFor(Metric metric) {
    switch (metric) {
        case Metric::L2:
            return launchAllPairs<Metric::L2>;
        case Metric::InnerProduct:
            return launchAllPairs<Metric::InnerProduct>;
#ifndef FAISS_BITS_PRODUCTS_ONLY
        case Metric::L1:
            return launchAllPairs<Metric::L1>;
        case Metric::Linf:
            return launchAllPairs<Metric::Linf>;
        case Metric::Cosine:
            return launchAllPairs<Metric::Cosine>;
#endif
        default:
            return nullptr;
    }
}

/// Of tiles that blocks share; nullptr for metrics whose tiles they do not.
Launch splitFor(Metric metric) {
    switch (metric) {
        case Metric::L2:
            return launchSplitPairs<Metric::L2>;
        case Metric::InnerProduct:
            return launchSplitPairs<Metric::InnerProduct>;
#ifndef FAISS_BITS_PRODUCTS_ONLY
        case Metric::Cosine:
            return launchSplitPairs<Metric::Cosine>;
#endif
        default:
            return nullptr;
    }
}

/// Of narrow tiles; 0: blocks share none.
int partsOf(const FlatKnnProblem& p, idx_t rows) {
    return splitFor(p.metric) &&
                    !takesWideTiles(
                            rows, p.numVectors, p.device.multiprocessors)
            ? pairParts(rows, p.numVectors, p.d, p.device)
            : 0;
}

/// Queries that a tile has.
bool isOfTile(const FlatKnnProblem& p) {
    return batchOf(p) <= kProductQueries;
}

/// Few queries of which searches without a matrix look at all keys, by one
/// block (direct/).
bool isFewOfLargeK(const FlatKnnProblem& p) {
    return isOfTile(p) && directMeetsAllKeys(p);
}

/// Some of many vectors, of which candidates cost more: no image is kept.
bool isFewOfCosine(const FlatKnnProblem& p) {
    constexpr idx_t kLeast = 5;
    return isOfTile(p) && p.metric == Metric::Cosine && batchOf(p) >= kLeast;
}

/// Queries that go by all pairs though they are no more than others read
/// vectors for.
bool isOfFew(const FlatKnnProblem& p) {
    constexpr idx_t kLeast = 5;
    constexpr int kLong = 256;
    return batchOf(p) <= kFewQueries &&
            (isFewOfLargeK(p) || isFewOfCosine(p) ||
             (batchOf(p) >= kLeast && p.d >= kLong));
}

idx_t mostVectorsOfFloat64(const FlatKnnProblem& p) {
    constexpr int kShort = 16;
    return isFewOfCosine(p)
            ? (p.d > kShort ? kMostVectorsOfCosine : kMostVectorsOfCosine / 2)
            : isFewOfLargeK(p) ? kMostVectorsOfLargeK
                               : kMostVectors;
}

idx_t mostVectors(const FlatKnnProblem& p) {
    // Strips make limits of smaller k.
    constexpr int kMostOfStrips = 512;
    const idx_t most = mostVectorsOfFloat64(p);
    return p.k > kMostOfStrips && digitsMayPay(p)
            ? std::max(most, kMostVectorsOfDigits)
            : most;
}

idx_t strideOf(const FlatKnnProblem& p) {
    return (p.numVectors + kRowStep - 1) / kRowStep * kRowStep;
}

idx_t mostTileQueries(idx_t stride, bool byDigits) {
    const size_t bytes = byDigits ? kDigitTileBytes : kTileBytes;
    return std::max<idx_t>(bytes / (stride * sizeof(float)), kLeastTileQueries);
}

SelectProblem selectionOf(const FlatKnnProblem& p, idx_t rows, idx_t stride) {
    SelectProblem select;
    select.rows = rows;
    select.cols = p.numVectors;
    select.rowStride = stride;
    select.k = p.k;
    select.largest = isSimilarity(p.metric);
    select.dropNan = true;
    select.idType = p.idType;
    select.device = p.device;
    return select;
}

struct AllPairsScratch {
    CertifiedScratch certified; // the widened queries
    DigitScratch digits;
    float* distances = nullptr;
    Workspace select;

    AllPairsScratch(
            const FlatKnnProblem& p,
            const AllPairsPlan& plan,
            WorkspaceSlices& slices) {
        certified.take(p, 0, plan.tileQueries, slices);
        if (plan.byDigits) {
            digits.take(p, plan.tileQueries, slices);
        }
        distances = slices.take<float>(size_t(plan.tileQueries) * plan.stride);
        select.bytes = std::max(
                plan.selection.workspaceBytes(),
                plan.lastSelection.workspaceBytes());
        select.data = slices.take<uint8_t>(select.bytes);
    }
};

bool takesWide(const FlatKnnProblem& p, idx_t rows) {
    return takesWideTiles(rows, p.numVectors, p.device.multiprocessors);
}

/// Of the kernels that compute the distances of so many queries, as they were
/// measured on an H200, by products.
double launchMicroseconds(const FlatKnnProblem& p, bool byDigits, idx_t rows) {
    if (byDigits) {
        return digitPairsMicroseconds(p, rows);
    }
    const double steps = std::ceil(double(p.d) / kProductDepth);
    const double multiprocessors = double(p.device.multiprocessors);
    if (const int parts = partsOf(p, rows); parts > 0) {
        const double blocks = double(parts) *
                double(allPairsTiles(
                        rows, p.numVectors, kProductQueries, kNarrowTile));
        const double turns = std::ceil(blocks / (2 * multiprocessors));
        return 8.3 + 2 * std::log2(parts) +
                (blocks > multiprocessors ? 0.45 : 0.29) * turns *
                std::ceil(steps / parts);
    }
    const bool isWide = takesWide(p, rows);
    const double tiles = double(allPairsTiles(
            rows,
            p.numVectors,
            kProductQueries,
            isWide ? kWideTile : kNarrowTile));
    const double turns = std::ceil(tiles / multiprocessors);
    return p.numVectors > kMostVectors
            ? 8.3 + turns * (3 + 1.15 * steps) // read while it multiplies
            : 8.3 + (isWide ? 1.01 : 0.29) * turns * steps;
}

double launchesMicroseconds(
        const FlatKnnProblem& p,
        bool byDigits,
        idx_t rows) {
    const idx_t rest = p.numQueries % rows;
    return (byDigits ? digitVectorsMicroseconds(p) : 0.0) +
            double(p.numQueries / rows) *
            launchMicroseconds(p, byDigits, rows) +
            (rest > 0 ? launchMicroseconds(p, byDigits, rest) : 0.0);
}

/// Queries of a launch, at most so many: launches are alike, or have whole
/// tiles and leave fewer multiprocessors without one in the end.
idx_t queriesAtOnce(const FlatKnnProblem& p, bool byDigits, idx_t most) {
    constexpr idx_t kTried = 32;
    const idx_t launches = (p.numQueries + most - 1) / most;
    idx_t best = (p.numQueries + launches - 1) / launches;
    if (launches == 1 || !isOfProducts(p.metric)) {
        return best;
    }
    // By less the model does not tell them apart.
    double least = 0.98 * launchesMicroseconds(p, byDigits, best);
    const idx_t ofTile = byDigits ? kDigitQueries : kProductQueries;
    const idx_t tiles = most / ofTile;
    for (idx_t i = 0; i < std::min(kTried, tiles); ++i) {
        const idx_t rows = (tiles - i) * ofTile;
        const double time = launchesMicroseconds(p, byDigits, rows);
        if (time < least) {
            least = time;
            best = rows;
        }
    }
    return best;
}

/// Whether products of digits are expected to take less time than those of
/// float64.
bool digitsPay(const FlatKnnProblem& p) {
    if (!digitsMayPay(p)) {
        return false;
    }
    if (p.numVectors > kMostVectors) {
        // Where float64 has a plan, queries are those of one tile.
        return p.numVectors > mostVectorsOfFloat64(p);
    }
    const idx_t stride = strideOf(p);
    const auto timeBy = [&](bool byDigits) {
        const idx_t most = mostTileQueries(stride, byDigits);
        return launchesMicroseconds(
                p, byDigits, queriesAtOnce(p, byDigits, most));
    };
    return timeBy(true) <
            timeBy(false) + 2.4e-6 * double(p.numVectors) * double(p.d);
}

void setTiles(AllPairsPlan& plan, const FlatKnnProblem& p, idx_t most) {
    plan.tileQueries = queriesAtOnce(p, plan.byDigits, most);
    const idx_t last = (p.numQueries - 1) % plan.tileQueries + 1;
    plan.selection =
            planSelection(selectionOf(p, plan.tileQueries, plan.stride));
    plan.lastSelection = last == plan.tileQueries
            ? plan.selection
            : planSelection(selectionOf(p, last, plan.stride));
    WorkspaceSlices slices;
    AllPairsScratch(p, plan, slices);
    // So that a run with just these bytes finds the same plan.
    plan.bytes = std::max(slices.used(), kLeastUntiledBytes);
}

/// Nothing if that takes more than maxBytes.
std::optional<AllPairsPlan> planTiles(
        const FlatKnnProblem& p,
        bool byDigits,
        size_t maxBytes) {
    AllPairsPlan plan;
    plan.byDigits = byDigits;
    plan.stride = strideOf(p);
    // Few queries at a time are no gain by digits.
    constexpr idx_t kLeastDigitQueries = 4 * kDigitQueries;
    const idx_t least = byDigits ? kLeastDigitQueries : kLeastTileQueries;
    for (idx_t most = mostTileQueries(plan.stride, byDigits);; most /= 2) {
        setTiles(plan, p, most);
        if (plan.bytes <= maxBytes) {
            return plan;
        }
        if (most <= least) {
            return {};
        }
    }
}

} // namespace

bool takesAllPairs(const FlatKnnProblem& p) {
    return p.mode != SearchMode::Plain && launchFor(p.metric) &&
            !p.allowedBits && p.numVectors > 0 &&
            p.numVectors <= mostVectors(p) && p.d <= kMostDims &&
            (batchOf(p) > kFewQueries || isOfFew(p)) &&
            p.device.singleToDouble <= 2;
}

// Microseconds here are as they were measured on an H200
// (docs/design/flat_few_vectors_lists.md).

double allPairsMicroseconds(const FlatKnnProblem& p) {
    const double q = double(p.numQueries);
    const double n = double(p.numVectors);
    const double d = double(p.d);
    const double k = double(std::min<idx_t>(p.k, p.numVectors));
    const double multiprocessors = double(p.device.multiprocessors);
    const double part = multiprocessors / 132.0;
    if (!isOfProducts(p.metric)) {
        // Of 64 x 32 pairs, one at a time on each multiprocessor.
        const double tiles = std::ceil(q / 64) * std::ceil(n / 32);
        const double tile = 1.7 * std::max(3.3, 2.6 + 0.0605 * d);
        return 5 + std::ceil(tiles / multiprocessors) * tile +
                q * (1e-6 * n + 35e-6 * k) / part;
    }
    const bool byDigits = digitsPay(p);
    const idx_t rows =
            queriesAtOnce(p, byDigits, mostTileQueries(strideOf(p), byDigits));
    const bool isWide = byDigits || takesWide(p, rows);
    const bool isLarge = p.numVectors > kMostVectors;
    const double time = launchesMicroseconds(p, byDigits, rows) +
            (byDigits || isLarge ? 0.0 : 2.4e-6 * n * d) +
            q * ((isWide ? 3.45e-6 : 1.62e-6) * n + 25.4e-6 * k) / part;
    return p.metric == Metric::Cosine && !isLarge ? 1.08 * time : time;
}

double candidatesMicroseconds(const FlatKnnProblem& p) {
    // Launches, then for each query its products, the selection and the
    // canonical distances of its candidates.
    const double q = double(p.numQueries);
    const double n = double(p.numVectors);
    const double d = double(p.d);
    const double k = double(std::min<idx_t>(p.k, p.numVectors));
    const double part = p.device.multiprocessors / 132.0;
    const double query = 11.3e-3 + 3.7e-6 * n + d * (18e-6 + 40e-9 * n) +
            k * ((k <= 128 ? 0.12e-3 : 0.2e-3) + 1.1e-6 * d);
    return 24 + 0.09 * d + q * query / part;
}

namespace {

/// The same of a scan with limits from a sample, of more vectors and large k;
/// cosines have no kept image. Fitted to 13 searches (H100,
/// docs/design/flat_digits.md).
double sampledMicroseconds(const FlatKnnProblem& p) {
    const double q = double(p.numQueries);
    const double n = double(p.numVectors);
    const double d = double(p.d);
    const double k = double(std::min<idx_t>(p.k, p.numVectors));
    const double image = p.metric == Metric::Cosine ? 17.7e-6 * n * d : 0.0;
    return 82 + image + 29.7e-9 * q * n * d + q * k * (131e-6 + 0.952e-6 * d);
}

/// Few queries by a kept image, of no fewer vectors than a sample is taken of.
double fewByImageMicroseconds(const FlatKnnProblem& p) {
    constexpr idx_t kLeastVectors = 8192;
    const double part = p.device.multiprocessors / 132.0;
    return p.numVectors < kLeastVectors
            ? INFINITY
            : 36 + double(p.numVectors) * (2 * p.d + 32) / 4e6 / part;
}

} // namespace

bool allPairsPays(const FlatKnnProblem& p) {
    if (!takesAllPairs(p)) {
        return false;
    }
    const bool isNearest = takesNearest(p);
    if (isNearest && p.numVectors <= (p.d < 512 ? 192 : 256)) {
        return true; // strips of one tile, often searched again
    }
    // What selections of wider rows take besides.
    constexpr double kWideRows = 30;
    const double time = allPairsMicroseconds(p);
    if (isFewOfLargeK(p)) {
        return time < directMicroseconds(p);
    }
    if (isOfFew(p)) {
        constexpr double kSelection = 5; // what models of more queries have
        const double others = p.metric == Metric::Cosine
                ? sampledCosineMicroseconds(p)
                : fewByImageMicroseconds(p);
        return time + kSelection < std::min(directMicroseconds(p), others);
    }
    if (isFewOfCosine(p) && p.numVectors > kMostVectors) {
        return true;
    }
    // Some of the time of data that are not hard is given to the nearest, which
    // takes up to six times as long where they are.
    return isNearest ? time < 1.05 * nearestMicroseconds(p)
            : p.numVectors <= kMostVectors
            ? time < 0.9 * candidatesMicroseconds(p)
            : time + kWideRows < 0.9 * sampledMicroseconds(p);
}

std::optional<AllPairsPlan> planAllPairs(
        const FlatKnnProblem& p,
        size_t maxBytes,
        PairProducts products) {
    if (!takesAllPairs(p)) {
        return {};
    }
    const bool isAuto = products == PairProducts::Auto;
    if (isAuto ? digitsPay(p)
               : products == PairProducts::Digits && takesDigits(p)) {
        if (const auto plan = planTiles(p, true, maxBytes)) {
            return plan;
        }
    }
    const bool takesFloat64 = p.numVectors <= mostVectorsOfFloat64(p) &&
            products != PairProducts::Digits;
    return takesFloat64 ? planTiles(p, false, maxBytes) : std::nullopt;
}

std::string AllPairsPlan::toString() const {
    return formatMessage(
                   "all pairs%s: %lld queries at a time, %zu bytes; ",
                   byDigits ? " by digits" : "",
                   (long long)tileQueries,
                   bytes) +
            selection.toString();
}

void runAllPairs(
        const AllPairsPlan& plan,
        const FlatKnnProblem& p,
        Workspace workspace,
        cudaStream_t stream) {
    WorkspaceSlices slices(workspace);
    const AllPairsScratch scratch(p, plan, slices);
    Certifier certifier(p, 0, ErrorBound(), scratch.certified, stream);
    for (idx_t q = 0; q < p.numQueries; q += plan.tileQueries) {
        const idx_t count = std::min(plan.tileQueries, p.numQueries - q);
        AllPairsParams params;
        params.search = certifier.enter(q, count);
        params.distances = scratch.distances;
        params.stride = plan.stride;
        if (plan.byDigits) {
            if (q == 0) {
                scratch.digits.begin(p, params.search.vectors, stream);
            }
            scratch.digits.run(
                    p,
                    params.search,
                    q / plan.tileQueries,
                    params.distances,
                    params.stride,
                    stream);
        } else if (const int parts = partsOf(p, count); parts > 0) {
            splitFor(p.metric)(params, parts, stream);
        } else {
            launchFor(p.metric)(params, p.device.multiprocessors, stream);
        }
        SelectProblem select = selectionOf(p, count, plan.stride);
        select.keys = scratch.distances;
        select.outKeys = p.outDistances + q * p.k;
        select.outIds = static_cast<uint8_t*>(p.outIds) +
                size_t(q) * p.k * sizeOf(p.idType);
        runSelect(
                count == plan.tileQueries ? plan.selection : plan.lastSelection,
                select,
                scratch.select,
                stream);
    }
}

} // namespace faiss_bits
