#include "kernels/knn/fused/FusedLists.h"

#include "kernels/knn/fused/FinishPassed.h"
#include "kernels/knn/fused/FusedCost.h"
#include "kernels/knn/fused/NearLists.h"
#include "kernels/knn/fused/SlotRows.h"
#include "kernels/knn/fused/tensor/SearchImage.h"
#include "kernels/knn/fused/tensor/TensorScan.h"

namespace faiss_bits {

namespace {

/// Lists that a warp each finishes, at least.
constexpr idx_t kLeastWarpLists = 1024;
/// Bytes of vectors that stay in L2 while lists are finished.
constexpr double kMostCachedBytes = 0x1p25;
/// Of bits that one kernel writes and one reads: some may leave L2, as more
/// queries are fewer launches.
constexpr double kMostBytesAtOnce = 0x1p26;
/// Components of what passes, of a query: of fewer a copy of the vectors, and a
/// kernel more, cost as much as they save.
constexpr double kLeastScored = 1000;
/// Dimensions of lists that are cut by their products.
constexpr int kLeastCutDims = 33;
/// Vectors for each one that passes, at most, where a scan sets bits.
constexpr double kMostBitsShare = 128;

/// Whether it pays to cut lists by their products. Of short vectors what is cut
/// is soon scored, and a kernel more takes some 20 us: of many queries, whose
/// limits come from strips. By inner product the nearest one took longer so.
bool cutsPay(const FusedPlan& plan, const FlatKnnProblem& p) {
    constexpr idx_t kLeastComponents = 65536; // of the queries
    constexpr double kLeastPassing = 64;
    return isStreamedScan(p.d) ||
            (plan.secondStrips.perRow > 0 && p.d >= kLeastCutDims &&
             plan.tileQueries * p.d >= kLeastComponents &&
             (p.metric == Metric::L2 ||
              passingVectors(plan, p) >= kLeastPassing));
}

bool mayKeepProducts(const FusedPlan& plan, const FlatKnnProblem& p) {
    return plan.method == &kTensorFusedMethod &&
            (p.metric == Metric::L2 || p.metric == Metric::InnerProduct) &&
            canKeepProducts(p.device);
}

} // namespace

bool finishesByWarps(const FusedPlan& plan, const FlatKnnProblem& p) {
    return plan.strips.perRow > 0 && p.k <= kMostWarpK &&
            plan.tileQueries >= kLeastWarpLists &&
            double(p.numVectors) * p.d * double(sizeOf(p.dataType)) <=
            kMostCachedBytes;
}

bool keepsProducts(const FusedPlan& plan, const FlatKnnProblem& p) {
    constexpr double kMostListed = 0.75 * kMostNearEntries;
    return plan.secondSamples > 0 && mayKeepProducts(plan, p) &&
            cutsPay(plan, p) &&
            plan.secondRank * (double(p.numVectors) / plan.secondSamples) <=
            kMostListed;
}

bool answersByKeys(const FusedPlan& plan, const FlatKnnProblem& p) {
    return p.mode == SearchMode::Fast && batchOf(p) > kFewQueries &&
            !plan.givenLimits && mayKeepProducts(plan, p) &&
            !finishesByWarps(plan, p) && !expectsBytes(plan, p);
}

bool expectsBytes(const FusedPlan& plan, const FlatKnnProblem& p) {
    return plan.method == &kTensorFusedMethod && plan.secondStrips.perRow > 0 &&
            takesBytes(p) &&
            passingVectors(plan, p) * kByteShare *
                    double(byteVectorsOfOne(p.d)) <=
            double(scannedVectors(p));
}

bool scoresBySlots(const FusedPlan& plan, const FlatKnnProblem& p) {
    const double components =
            passingVectors(plan, p) * slotSteps(p.d) * kSlotStep;
    return finishesByWarps(plan, p) &&
            (plan.atOnce || components >= kLeastScored) &&
            double(slotRowsSize(p.numVectors, p.d)) * sizeof(float) <=
            kMostCachedBytes;
}

bool passesToBits(const FusedPlan& plan, const FlatKnnProblem& p) {
    return scoresBySlots(plan, p) &&
            (plan.atOnce ||
             passingVectors(plan, p) * kMostBitsShare >=
                     double(p.numVectors)) &&
            plan.tileQueries <= mostQueriesOfBits(p, plan.atOnce);
}

idx_t mostQueriesOfBits(const FlatKnnProblem& p, bool atOnce) {
    return idx_t(atOnce ? kMostBytesAtOnce : kMostCachedBytes) /
            idx_t(wordsOf(p) * sizeof(uint32_t));
}

bool finishesBySlots(const FusedPlan& plan, const FlatKnnProblem& p) {
    return scoresBySlots(plan, p) && p.k <= kMostSlotK;
}

ListPlaces listPlaces(const FusedPlan& plan, const FlatKnnProblem& p) {
    ListPlaces places{plan.capacity, plan.capacity};
    if (passesToBits(plan, p) || answersByKeys(plan, p)) {
        places.columns = 0;
    }
    if (finishesBySlots(plan, p)) {
        places.entries = 0;
    }
    return places;
}

uint32_t wordsOf(const FlatKnnProblem& p) {
    return uint32_t((p.numVectors + 31) / 32);
}

} // namespace faiss_bits
