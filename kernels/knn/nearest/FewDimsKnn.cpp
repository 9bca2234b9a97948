#include "kernels/knn/nearest/FewDimsKnn.h"

#include <algorithm>
#include <limits>

#include "kernels/common/Error.h"
#include "kernels/knn/all_pairs/AllPairsKnn.h"
#include "kernels/knn/certified/Certified.h"
#include "kernels/knn/fused/FusedCost.h"
#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/nearest/FewDimsBound.h"
#include "kernels/knn/nearest/FewDimsKernels.h"
#include "kernels/knn/nearest/FewDimsTiles.h"
#include "kernels/knn/nearest/NearestKnn.h"

namespace faiss_bits {

namespace {

constexpr idx_t kMostFewDimsStrips = 4096;
/// Values of strips of one scan.
constexpr idx_t kMostValues = idx_t(1) << 24;

idx_t divUp(idx_t a, idx_t b) {
    return (a + b - 1) / b;
}

/// Components that the kernels have.
int paddedDims(int d) {
    return (d + 1) / 2 * 2;
}

/// Instructions of a pair: multiply-adds, a minimum, and its share of what all
/// queries of a thread read.
double instructionsOf(int d, int queriesOfThread) {
    const int dims = paddedDims(d);
    return dims + 1 + (dims > 4 ? 2.5 : 1.5) / queriesOfThread;
}

idx_t rowsOf(int queriesOfThread) {
    return idx_t(queriesOfThread) * kFewDimsThreads;
}

/// What the threads of all tiles do for a vector.
double workOf(idx_t queries, int d, int queriesOfThread) {
    const idx_t rows = rowsOf(queriesOfThread);
    return double(divUp(queries, rows) * rows) *
            instructionsOf(d, queriesOfThread);
}

idx_t stripsOf(idx_t numVectors, uint32_t logUnits) {
    return divUp(numVectors, idx_t(kFewDimsUnit) << logUnits);
}

/// Few where blocks are: these take as long as the queries of a thread.
int queriesOfThread(const FlatKnnProblem& p, idx_t queries, idx_t strips) {
    constexpr int kMost = kMostFewDimsQueries;
    const idx_t blocks = divUp(queries, rowsOf(kMost)) * strips;
    return blocks >= 2 * idx_t(p.device.multiprocessors) &&
                    workOf(queries, p.d, kMost) <=
                            workOf(queries, p.d, kMost / 2)
            ? kMost
            : kMost / 2;
}

bool takes(const FlatKnnProblem& p, int mostDims = kMostFewDims) {
    return p.mode != SearchMode::Plain && p.k == 1 && !p.allowedBits &&
            !p.allowedIds && p.d <= mostDims && p.numVectors > 0 &&
            p.numVectors <= std::numeric_limits<int32_t>::max() &&
            (p.metric == Metric::L2 || p.metric == Metric::InnerProduct) &&
            p.device.singleToDouble <= 2;
}

/// The shortest strips, of which up to `most` are.
void setStrips(FewDimsParams& params, idx_t numVectors, idx_t most) {
    while (stripsOf(numVectors, params.logUnits) > most) {
        ++params.logUnits;
    }
    params.strips = uint32_t(stripsOf(numVectors, params.logUnits));
}

struct FewDimsScratch {
    CertifiedScratch certified; // the widened queries
    FewDimsParams params;

    FewDimsScratch(
            const FlatKnnProblem& p,
            const FewDimsPlan& plan,
            WorkspaceSlices& slices) {
        params.strips = uint32_t(plan.strips);
        params.logUnits = plan.logUnits;
        params.least =
                slices.take<float>(size_t(plan.strips) * plan.tileQueries);
        params.limits = slices.take<uint32_t>(plan.tileQueries);
        params.best = slices.take<uint64_t>(plan.tileQueries);
        certified.take(p, 0, plan.tileQueries, slices);
    }
};

/// So many strips that blocks of all tiles run at once, up to eight.
uint32_t stripsOfBlock(
        const FewDimsPlan& plan,
        const FlatKnnProblem& p,
        idx_t queries) {
    constexpr idx_t kMost = 8;
    const idx_t tiles = divUp(queries, rowsOf(plan.queriesOfThread));
    const idx_t resident = idx_t(p.device.multiprocessors) *
            fewDimsBlocks(paddedDims(p.d), plan.queriesOfThread);
    return uint32_t(
            std::clamp<idx_t>(divUp(plan.strips * tiles, resident), 1, kMost));
}

/// The longest that it may take in place of the best other certified search.
double mostMicroseconds(const FlatKnnProblem& p) {
    const double part = p.device.multiprocessors / 132.0;
    const double q = double(p.numQueries);
    const double pairs = q * double(p.numVectors);
    const double ofMetric = (p.metric == Metric::L2 ? 1.15 : 1) / part;
    const bool isNearest = takesNearest(p);
    // Others find lists overfull, or search again, where the data are hard: of
    // two or three dimensions most are. So some of the time of data that are
    // not is given, but for a scan of five dimensions or more, after which it
    // is twice the time at worst.
    // Inner products of small integers have the most equals.
    const double given =
            !isNearest && p.metric == Metric::InnerProduct ? 1.4 : 1.25;
    constexpr int kLeastTensorDims = 4;
    const double other = isNearest ? nearestMicroseconds(p)
            : p.d < kLeastTensorDims // component by component
            ? 45 + 0.4e-6 * pairs / part
            : 40 +
                    ofMetric *
                            std::min(
                                    3.5e-3 * q + 0.206e-6 * pairs,
                                    14.7e-3 * q + 0.125e-6 * pairs);
    const double most =
            isNearest && p.d > kLeastTensorDims ? other : given * other;
    return allPairsPays(p) ? std::min(most, 0.88 * allPairsMicroseconds(p))
                           : most;
}

} // namespace

// Fitted to ordinary data of 300 to 1,048,576 vectors on an H200
// (docs/design/flat_few_dimensions.md).

double fewDimsMicroseconds(const FlatKnnProblem& p) {
    const double part = p.device.multiprocessors / 132.0;
    const double n = double(std::max<idx_t>(p.numVectors, kFewDimsUnit));
    const double q = double(p.numQueries);
    const int dims = paddedDims(p.d);
    const int ofThread =
            queriesOfThread(p, p.numQueries, stripsOf(p.numVectors, 0));
    const double rate = dims > 6 ? 2.1e7 : 2.3e7; // instructions of pairs
    const double scan = n * workOf(p.numQueries, p.d, ofThread) / rate;
    // A strip of each query is met again, or little more.
    const double exact = (0.2e-3 + 0.04e-3 * dims) * q;
    return 20 + (scan + exact) / part;
}

bool fewDimsPays(const FlatKnnProblem& p) {
    return takes(p) && batchOf(p) > kFewQueries && !p.limits &&
            fewDimsMicroseconds(p) < mostMicroseconds(p);
}

std::optional<FewDimsPlan> planFewDims(
        const FlatKnnProblem& p,
        size_t maxBytes) {
    if (!takes(p)) {
        return {};
    }
    FewDimsPlan plan;
    FewDimsParams params;
    setStrips(params, p.numVectors, kMostFewDimsStrips);
    plan.strips = params.strips;
    plan.logUnits = params.logUnits;
    if (!setTileQueries<FewDimsScratch>(
                p, plan, kMostValues / plan.strips, maxBytes)) {
        return {};
    }
    plan.queriesOfThread = queriesOfThread(p, plan.tileQueries, plan.strips);
    return plan;
}

std::string FewDimsPlan::toString() const {
    return formatMessage(
            "few_dims: %lld strips of %u vectors, %lld queries a scan, %d a "
            "thread, %zu bytes",
            (long long)strips,
            kFewDimsUnit << logUnits,
            (long long)tileQueries,
            queriesOfThread,
            bytes);
}

bool searchesFewDimsAgain(const FlatKnnProblem& p) {
    return takes(p, kMostFewDimsAgain) && batchOf(p) > kFewQueries && !p.limits;
}

FewDimsParams takeFewDimsAgain(
        const FlatKnnProblem& p,
        idx_t tileQueries,
        WorkspaceSlices& slices) {
    FewDimsParams params;
    setStrips(
            params,
            p.numVectors,
            std::clamp<idx_t>(
                    kMostValues / tileQueries, 1, kMostFewDimsStrips));
    params.least = slices.take<float>(size_t(params.strips) * tileQueries);
    params.limits = slices.take<uint32_t>(tileQueries);
    params.best = slices.take<uint64_t>(tileQueries);
    params.flagged = slices.take<uint32_t>(tileQueries);
    params.numFlagged = slices.take<uint32_t>(1);
    return params;
}

void runFewDims(
        const FewDimsPlan& plan,
        const FlatKnnProblem& p,
        Workspace workspace,
        cudaStream_t stream) {
    WorkspaceSlices slices(workspace);
    const FewDimsScratch scratch(p, plan, slices);
    Certifier certifier(p, 0, ErrorBound(), scratch.certified, stream);
    for (idx_t q = 0; q < p.numQueries; q += plan.tileQueries) {
        const idx_t count = std::min(plan.tileQueries, p.numQueries - q);
        FewDimsParams params = scratch.params;
        params.search = certifier.enter(q, count);
        params.stripsOfBlock = stripsOfBlock(plan, p, count);
        launchFewDims(p.metric, params, plan.queriesOfThread, stream);
    }
}

} // namespace faiss_bits
