#include "kernels/knn/nearest/FewDimsTopKnn.h"

#include <algorithm>

#include "kernels/common/Error.h"
#include "kernels/knn/certified/Certified.h"
#include "kernels/knn/fused/FusedCost.h"
#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/nearest/FewDimsBound.h"
#include "kernels/knn/nearest/FewDimsTiles.h"
#include "kernels/knn/nearest/NearestKnn.h"

namespace faiss_bits {

namespace {

/// With more, strips are so many that their values take longer than the pairs.
constexpr idx_t kMostVectors = idx_t(1) << 17;
/// Of a query, while they can be longer; and for each place, if that is more.
constexpr idx_t kMostStrips = 256;
constexpr idx_t kMostStripsOfPlace = 8;
/// Values of strips of one scan stay in L2.
constexpr idx_t kMostValues = idx_t(1) << 23;
/// The search for the nearest one (NearestKnn.h) has up to as many vectors.
constexpr idx_t kMostNearest = 65536;

idx_t divUp(idx_t a, idx_t b) {
    return (a + b - 1) / b;
}

bool isCosine(const FlatKnnProblem& p) {
    return p.metric == Metric::Cosine;
}

/// Lists of more than one row of a warp.
bool hasLongList(const FlatKnnProblem& p) {
    return p.k > kMostFewDimsTop;
}

uint32_t logStripOf(const FlatKnnProblem& p) {
    const idx_t most = std::max(kMostStrips, kMostStripsOfPlace * p.k);
    uint32_t logStrip = kLeastLogTopStrip;
    while (logStrip < kMostLogTopStrip &&
           divUp(p.numVectors, idx_t(1) << logStrip) > most) {
        ++logStrip;
    }
    return logStrip;
}

idx_t unitsOf(const FlatKnnProblem& p) {
    return divUp(p.numVectors, idx_t(kFewDimsTopStrips) << logStripOf(p));
}

bool takes(const FlatKnnProblem& p) {
    return p.mode != SearchMode::Plain && p.k <= mostFewDimsTop(p.d) &&
            !p.allowedBits && !p.allowedIds && p.d <= kMostFewDimsOfTop &&
            p.numVectors > 0 && p.numVectors <= kMostVectors &&
            (p.metric == Metric::L2 || p.metric == Metric::InnerProduct ||
             isCosine(p)) &&
            p.device.singleToDouble <= 2;
}

struct FewDimsTopScratch {
    CertifiedScratch certified; // the widened queries
    FewDimsTopParams params;
    float* unitVectors = nullptr; // [n, d]: cosine
    float* unitQueries = nullptr; // [tileQueries, d]: cosine

    FewDimsTopScratch(
            const FlatKnnProblem& p,
            const FewDimsTopPlan& plan,
            WorkspaceSlices& slices) {
        const size_t units = size_t(plan.tileQueries) * plan.units;
        params.units = plan.units;
        params.logStrip = plan.logStrip;
        params.least = slices.take<float>(units * kFewDimsTopStrips);
        params.errors = slices.take<float>(units);
        if (isCosine(p)) {
            unitVectors = slices.take<float>(size_t(p.numVectors) * p.d);
            unitQueries = slices.take<float>(size_t(plan.tileQueries) * p.d);
        }
        certified.take(p, 0, plan.tileQueries, slices);
    }
};

/// As the kernels have them.
int dimsOf(const FlatKnnProblem& p) {
    return p.d <= 8 ? (p.d + 1) / 2 * 2 : p.d <= 12 ? 12 : 16;
}

double partOf(const FlatKnnProblem& p) {
    return p.device.multiprocessors / 132.0;
}

/// Of strips that are met again, of ordinary data.
double meetMicroseconds(const FlatKnnProblem& p) {
    const double steps = double(idx_t(1) << logStripOf(p)) / 32;
    return 0.037e-3 * double(p.numQueries) * p.k * steps * dimsOf(p) /
            partOf(p);
}

struct OtherWay {
    double microseconds;
    bool isTensor; // on tensor cores
};

/// The best other certified search of ordinary data, or less, fitted to an
/// H200: images of L2 and inner products are kept.
OtherWay otherWay(const FlatKnnProblem& p) {
    const double part = partOf(p);
    const double q = double(p.numQueries);
    const double pairs = q * double(p.numVectors);
    // 0.8: for one place.
    const double allPairs =
            (p.k == 1 ? 0.8 : 1.0) * std::max(26.0, 5e-6 * pairs / part);
    const bool isPairwise = dimsOf(p) == 2 || hasLongList(p);
    constexpr idx_t kFew = 4096;
    if (p.numVectors < kFew && (isCosine(p) || isPairwise)) {
        return {allPairs, false};
    }
    if (isPairwise) {
        // Of more places limits and lists take longer, too.
        const double lists = hasLongList(p) ? q * (0.03 + 0.45e-3 * p.k) : 0;
        return {std::min(allPairs, 45 + (1.2e-6 * pairs + lists) / part),
                false};
    }
    double tensor = 42 + 0.16e-3 * q * p.k / part;
    if (p.k == 1 && takesNearest(p)) {
        tensor = nearestMicroseconds(p);
    } else if (p.k == 1 && p.numVectors <= kMostNearest) {
        return {std::min(allPairs, 45 + 0.25e-6 * (p.d + 2.5) * pairs / part),
                false};
    } else if (p.metric == Metric::InnerProduct) {
        tensor += (0.76e-3 * q + 0.235e-6 * pairs) / part;
    } else {
        // Cosines make their image each time.
        tensor +=
                (isCosine(p) ? 30 : 0) + (0.94e-3 * q + 0.3e-6 * pairs) / part;
    }
    return {std::min(allPairs, tensor), tensor < allPairs};
}

} // namespace

// Fitted to 475 cells of an H200, most within a seventh; cosines of 16,384
// vectors and more for 1,000 queries took up to twice as long.
double fewDimsTopMicroseconds(const FlatKnnProblem& p) {
    constexpr idx_t kTile = kFewDimsTopQueries * kFewDimsTopThreads;
    const double q = double(p.numQueries);
    const double strips = double(unitsOf(p)) * kFewDimsTopStrips;
    const double width = double(idx_t(1) << logStripOf(p));
    const int dims = dimsOf(p);
    const bool isLong = dims > kMostFewDims;
    const double rows = double(divUp(p.numQueries, kTile) * kTile);
    const double scan =
            (isLong ? 1.6 : 1.0) * rows * strips * width * (dims + 1.6) / 3e7;
    // Not fitted to longer lists: 65,536 queries of 92,341 x 2, k = 65, take 3.4
    // ms for the 2.8 of this (H200).
    const double list = hasLongList(p) ? 5e-3 : 0;
    const double finish = q * (0.62e-3 + 5.8e-6 * strips + list);
    // However few queries there are: a warp goes through its strips.
    const double latency = 7.4 + 0.027 * strips + 0.37 * p.k * width / 32 +
            (isLong ? 0.9 * (dims - kMostFewDims) : 0.0) +
            (isCosine(p) ? 3 : 0);
    return latency + (scan + finish) / partOf(p) + meetMicroseconds(p);
}

bool fewDimsTopPays(const FlatKnnProblem& p) {
    constexpr int kLeastDims = 2;
    const bool isNearestCosine = isCosine(p) && p.k == 1;
    const bool isOfDims = p.d >= kLeastDims &&
            p.d <= (isNearestCosine ? kMostFewDimsOfTop : kMostFewDims);
    if (!takes(p) || !(p.k > 1 || isCosine(p)) || !isOfDims || p.limits ||
        batchOf(p) <= kFewQueries) {
        return false;
    }
    // Of more dimensions there are images; of fewer strips the k-th least says
    // little.
    constexpr int kMostDimsOfLong = 3;
    constexpr idx_t kLeastStripsOfPlace = 2;
    if (hasLongList(p) &&
        (p.d > kMostDimsOfLong ||
         divUp(p.numVectors, idx_t(1) << logStripOf(p)) <
                 kLeastStripsOfPlace * p.k)) {
        return false;
    }
    const int dims = dimsOf(p);
    const OtherWay other = otherWay(p);
    // Where all inner products are equal, all are canonical here: no more than
    // tensor cores have to repeat of four dimensions, but more than all pairs.
    if (p.metric == Metric::InnerProduct && dims > 2 &&
        (dims > 4 || !other.isTensor)) {
        return false;
    }
    // They gain little there of ordinary data, and a query of zeros, which all
    // vectors are as near to, takes one warp here (docs/design).
    if (isCosine(p) && other.isTensor && dims > (p.k == 1 ? 4 : 6)) {
        return false;
    }
    // Where vectors have many others as near, as many strips again are met; it
    // costs all pairs nothing, and tensor cores little.
    const double more = other.isTensor ? meetMicroseconds(p) : 0;
    return fewDimsTopMicroseconds(p) + more < 0.95 * other.microseconds;
}

std::optional<FewDimsTopPlan> planFewDimsTop(
        const FlatKnnProblem& p,
        size_t maxBytes) {
    if (!takes(p)) {
        return {};
    }
    FewDimsTopPlan plan;
    plan.logStrip = logStripOf(p);
    plan.units = uint32_t(unitsOf(p));
    const idx_t values = idx_t(plan.units) * kFewDimsTopStrips;
    if (!setTileQueries<FewDimsTopScratch>(
                p, plan, kMostValues / values, maxBytes)) {
        return {};
    }
    return plan;
}

std::string FewDimsTopPlan::toString() const {
    return formatMessage(
            "few_dims_top: %lld strips of %d vectors, %lld queries a scan, %zu "
            "bytes",
            (long long)units * kFewDimsTopStrips,
            1 << logStrip,
            (long long)tileQueries,
            bytes);
}

void runFewDimsTop(
        const FewDimsTopPlan& plan,
        const FlatKnnProblem& p,
        Workspace workspace,
        cudaStream_t stream) {
    WorkspaceSlices slices(workspace);
    const FewDimsTopScratch scratch(p, plan, slices);
    Certifier certifier(p, 0, ErrorBound(), scratch.certified, stream);
    for (idx_t q = 0; q < p.numQueries; q += plan.tileQueries) {
        const idx_t count = std::min(plan.tileQueries, p.numQueries - q);
        FewDimsTopParams params = scratch.params;
        params.search = certifier.enter(q, count);
        params.scan = params.search;
        if (isCosine(p)) {
            // The vectors with the first queries.
            UnitRowSets sets;
            sets.vectors = {
                    params.search.vectors,
                    q == 0 ? p.numVectors : 0,
                    p.d,
                    scratch.unitVectors};
            sets.queries = {
                    {params.search.queries, DataType::Float32, p.d, 1},
                    count,
                    p.d,
                    scratch.unitQueries};
            launchUnitRows(sets, stream);
            params.scan.vectors = {
                    scratch.unitVectors, DataType::Float32, p.d, 1};
            params.scan.queries = scratch.unitQueries;
        }
        launchFewDimsTop(p.metric, params, stream);
    }
}

} // namespace faiss_bits
