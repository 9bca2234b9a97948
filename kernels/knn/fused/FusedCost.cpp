#include "kernels/knn/fused/FusedCost.h"

#include <algorithm>
#include <cmath>

#include "kernels/knn/fused/FusedLists.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/fused/ScoreFew.h"
#include "kernels/knn/fused/ScoreRows.h"
#include "kernels/knn/fused/SlotRows.h"
#include "kernels/knn/fused/tensor/ByteImage.h"
#include "kernels/knn/fused/tensor/PassAtOnce.h"
#include "kernels/knn/nearest/NearestKnn.h"

namespace faiss_bits {

namespace {

/// Of which clusters took less time than scans: 131,072 did, of 3,000 they took
/// a tenth longer; where few pass, 20,000 took a tenth to a quarter less.
constexpr idx_t kLeastClusterQueries = 65536;
constexpr idx_t kLeastClusterQueriesOfFew = 10000;
/// Vectors whose one nearest strips in registers find later than clusters do.
constexpr idx_t kMostNearestAtOnce = 2048;
/// Vectors between which clusters of eight blocks take longer than scans,
/// unless few pass: they take as long as for 4,096.
constexpr idx_t kMostOfFourBlocks = 2048;
constexpr idx_t kLeastOfEightBlocks = 2561;
constexpr int kFewPlacesBetween = 4;

double roundUp(double value, double step) {
    return std::ceil(value / step) * step;
}

/// Vectors within a limit that is the rank'th key of strips.
double withinStrips(uint32_t rank, const StripPlan& plan) {
    // Some strips have several of the nearest.
    const double strips = plan.perRow;
    return -strips * std::log1p(-std::min(rank / strips, 0.9));
}

bool isFew(const FlatKnnProblem& p) {
    return batchOf(p) <= kFewQueries;
}

/// Of all tiles of queries.
double scans(
        const FusedPlan& plan,
        const FlatKnnProblem& p,
        const DeviceSpeed& speed) {
    const double q = double(p.numQueries);
    const double columns = double(scannedVectors(p));
    const double width = tensorImageWidth(p);
    const double read = readMicroseconds(2 * columns * width, speed);
    const double copied = expectsBytes(plan, p) ? p.d : 2 * width;
    const double copy =
            scansList(p) ? 3 * readMicroseconds(columns * copied, speed) : 0;
    if (isFew(p)) {
        return copy + read + 1.8e-6 * q * columns / speed.arithmetic;
    }
    const double tiles = std::ceil(q / double(plan.tileQueries));
    // A tile of the scan has 256 queries.
    const double rows = std::max(256.0, roundUp(q / tiles, 256));
    const double products =
            2 * rows * columns * width / kTensorRate / speed.arithmetic;
    const double compares = 51e-9 * rows * columns / speed.arithmetic;
    // Samples are of all vectors.
    const double others =
            plan.strips.perRow > 0 ? 1.0 : double(plan.secondSamples) / columns;
    // What samples take again for each tile is more than the launches.
    const double tile = plan.strips.perRow > 0 ? 30 : 250;
    double scan = std::max(read, products) + compares;
    if (expectsBytes(plan, p)) {
        // Of queries that stay in shared memory, and of longer ones.
        const double rate = hasByteNorms(p.d) ? 1.87e9 : 1.4e9;
        const double components = roundUp(p.d, 32);
        scan = std::max(
                       readMicroseconds(columns * components, speed),
                       2 * rows * columns * components / rate /
                               speed.arithmetic) +
                93e-9 * rows * columns / speed.arithmetic;
    }
    return copy + tile * (tiles - 1) +
            tiles *
            (scan + std::max(read, products) * others +
             (plan.strips.perRow > 0 ? compares : 0));
}

} // namespace

uint32_t leastStripsOf(const FusedPlan& plan, const FlatKnnProblem& p) {
    // Half of those of 256 queries and a chunk, as planStrips() takes up to
    // twice as many chunks where that fills it.
    constexpr uint32_t kOfItem = 8;
    constexpr uint32_t kLeastStrips = 64; // whatever the queries
    const auto tiles = uint32_t((plan.tileQueries + 255) / 256);
    const uint32_t filling = kOfItem * uint32_t(p.device.multiprocessors);
    return std::clamp(
            std::max(kStripsOfPlace * plan.rank, filling / tiles),
            kLeastStrips,
            kMostStrips / 2);
}

bool atOncePays(const FlatKnnProblem& p) {
    if (takesNearest(p)) {
        return p.numVectors <= kMostNearestAtOnce;
    }
    if (p.numVectors <= kMostVectorsOfBlock) {
        return true;
    }
    const bool isFast = p.numVectors <= kMostOfFourBlocks ||
            p.numVectors >= kLeastOfEightBlocks || p.k <= kFewPlacesBetween;
    return p.numVectors <= kMostVectorsAtOnce && isFast &&
            kStripsAtOnce >= kStripsOfPlace * uint32_t(p.k) &&
            p.numQueries >= (p.k <= kMostFewK ? kLeastClusterQueriesOfFew
                                              : kLeastClusterQueries);
}

double tensorImageWidth(const FlatKnnProblem& p) {
    return roundUp(p.d, 16) + (p.metric == Metric::InnerProduct ? 0 : 16);
}

double secondReach(const FusedPlan& plan) {
    return plan.secondStrips.perRow > 0
            ? withinStrips(plan.secondRank, plan.secondStrips)
            : plan.secondRank;
}

double passingVectors(const FusedPlan& plan, const FlatKnnProblem& p) {
    const double n = double(p.numVectors);
    double passed = 0;
    if (plan.givenLimits) {
        passed = double(p.numWithin);
    } else if (plan.strips.perRow > 0) {
        passed = withinStrips(plan.rank, plan.strips);
    } else if (plan.secondRank) {
        passed = secondReach(plan) * n / double(plan.secondSamples);
    } else {
        passed = plan.rank * n / plan.samples;
    }
    return std::min(passed, n);
}

double searchImageMicroseconds(
        const FlatKnnProblem& p,
        const DeviceSpeed& speed) {
    const double n = double(p.numVectors);
    return 0.28e-3 * n + 4.25 * readMicroseconds(4 * n * p.d, speed);
}

double nearestMicroseconds(const FlatKnnProblem& p) {
    const double part = p.device.multiprocessors / 132.0;
    const double q = double(p.numQueries);
    const double pairs = q * double(p.numVectors);
    const bool areProducts = p.metric == Metric::InnerProduct;
    const double ofMetric = areProducts ? 1 : 1.15;
    // Of more than a step of the products. Candidates of a query are met one
    // after another, by eight lanes.
    const double longer = std::max(0, p.d - 16);
    const double scan = (0.207e-6 + 2.5e-9 * longer) * pairs;
    // Cosines make an image each time, in eight kernels.
    const double image =
            p.metric == Metric::Cosine ? 40 + searchImageMicroseconds(p) : 0;
    // The more there are, and the longer, the sooner 16 bits leave some query
    // to a second search, also of ordinary data.
    const double again =
            -std::expm1((areProducts ? -0.75e-6 : -1.5e-6) * longer * q);
    return 30 + 0.075 * longer + image + again * (15 + 0.08 * p.d) +
            ofMetric * (0.55e-3 * q + scan) / part;
}

double fusedTensorMicroseconds(
        const FusedPlan& plan,
        const FlatKnnProblem& p,
        const DeviceSpeed& speed) {
    const double q = double(p.numQueries);
    const double d = p.d;
    const double k = double(std::min<idx_t>(p.k, p.numVectors));
    if (plan.atOnce) {
        const double width = slotSteps(p.d) * kSlotStep;
        const double tiles = std::ceil(q / double(plan.tileQueries));
        // Clusters want images, and wait for one another.
        const double n = double(p.numVectors);
        if (p.k <= kMostFewK) {
            // Fitted to k = 1 to 8 of 256 to 4,096 vectors, d = 64 to 128.
            const double few = p.numVectors <= kMostVectorsOfBlock
                    ? 0.5e-3 + 1.1e-6 * width + (0.2e-6 + 4.8e-9 * width) * n +
                            passingVectors(plan, p) * (16e-6 + 0.5e-6 * width)
                    : 0.2e-3 + 5e-6 * width + (0.67e-6 + 2.7e-9 * width) * n +
                            passingVectors(plan, p) * (40e-6 + 0.8e-6 * width);
            return 24 + 30 * (tiles - 1) + q * few / speed.arithmetic +
                    (p.searchImage ? 0 : searchImageMicroseconds(p, speed));
        }
        double query =
                (p.numVectors <= kMostVectorsOfBlock ? 1.35e-3 + 0.55e-6 * n
                                                     : 2.1e-3 + 0.81e-6 * n) +
                passingVectors(plan, p) * (14e-6 + 0.34e-6 * width);
        ScoreSlotsParams score;
        score.passed.search.d = p.d;
        score.passed.search.rows = uint32_t(plan.tileQueries);
        if (p.numVectors <= kMostVectorsOfBlock && p.k <= kMostSlotK &&
            scoreRowsPays(score, p.device)) {
            // Fitted to k = 16 and 32 of 256 to 1,024 vectors, d = 64 to 128.
            query = 0.93e-3 + 0.78e-6 * n +
                    passingVectors(plan, p) * (7.8e-6 + 0.244e-6 * width);
        }
        return 33 + 30 * (tiles - 1) + q * query / speed.arithmetic +
                (p.searchImage ? 0 : searchImageMicroseconds(p, speed));
    }
    if (finishesByWarps(plan, p)) {
        // Images of the queries, limits, what passed, and the results.
        const double width = slotSteps(p.d) * kSlotStep;
        // Without a copy of the vectors (SlotRows.h) those of 16 bits take
        // longer: 10,003 x 1,025 1.3e-3 by L2 and cosine.
        const double component =
                p.dataType == DataType::Float32 ? 0.8e-6 : 1.25e-6;
        const double candidate = !scoresBySlots(plan, p)
                ? 65e-6 + component * d
                : (passesToBits(plan, p) ? 40e-6 : 65e-6) + 0.34e-6 * width;
        const double query = 0.83e-3 + 8.6e-6 * d +
                6.3e-6 * plan.strips.perRow +
                passingVectors(plan, p) * candidate;
        return 33 + scans(plan, p, speed) + q * query / speed.arithmetic +
                (p.searchImage ? 0 : searchImageMicroseconds(p, speed));
    }
    // Distances to the sample; or the k-th of the strips' keys.
    const uint32_t strips =
            std::max(plan.strips.perRow, plan.secondStrips.perRow);
    // Of strips of a second sample. The times that all this was fitted to are
    // of searches that met a first sample as well.
    const double ofSecond = plan.secondStrips.perRow > 0 ? 20e-6 * q * k : 0;
    const double limits = isFew(p) ? 0
            : strips > 0           ? 1.2e-6 * q * strips + ofSecond
                                   : 15e-6 * q * plan.samples;
    // The more dimensions, the more lets the bound of the scan pass besides.
    const double passing = passingVectors(plan, p) *
            (expectsBytes(plan, p) ? 1.3 + d / 750 : 1.0);
    const double scores = q * passing * (193e-6 + 2.43e-9 * d * d);
    return 52 + scans(plan, p, speed) +
            (limits + scores + 32e-3 * k) / speed.arithmetic +
            (p.searchImage ? 0 : searchImageMicroseconds(p, speed));
}

} // namespace faiss_bits
