#include "kernels/knn/all_pairs/AllPairsCost.h"

#include <algorithm>
#include <cmath>

#include "kernels/knn/all_pairs/AllPairsKnn.h"
#include "kernels/knn/all_pairs/AllPairsLaunch.h"
#include "kernels/knn/all_pairs/SplitPairs.h"
#include "kernels/knn/all_pairs/digits/DigitSearch.h"
#include "kernels/knn/certified/Certified.h"
#include "kernels/knn/direct/DirectKnn.h"
#include "kernels/knn/fused/FusedCost.h"
#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/nearest/NearestKnn.h"
#include "kernels/survivors/SurvivorSort.h"

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
/// Where so many are nearest that a sample makes no limits.
constexpr idx_t kMostVectorsOfNoSample = 32767;
/// Where queries are so few that all of the matrix stays in L2.
constexpr idx_t kMostVectorsAtOnce = 131072;
/// More were not measured; of few dimensions they took longer.
constexpr idx_t kMostVectorsOfCosine = idx_t(1) << 20;
constexpr idx_t kRowStep = 8; // elements: rows begin on 32 bytes

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

/// More vectors than others, of one of these two.
bool hasMoreOfTile(const FlatKnnProblem& p) {
    return p.numVectors > kMostVectors &&
            (isFewOfLargeK(p) || isFewOfCosine(p));
}

/// k up to which strips make limits.
constexpr int kMostOfStrips = 512;

/// Whether digits have a plan for more than kMostVectors, and are taken where
/// these two are not. Of the one nearest and of few queries others have less to
/// read.
bool takesMoreByDigits(const FlatKnnProblem& p) {
    const bool isLarge =
            p.k > kMostOfStrips || (p.k > 1 && batchOf(p) > kFewQueries);
    return p.numVectors > kMostVectors && isLarge && digitsMayPay(p);
}

/// More vectors than others, of which a k so large is wanted that candidates
/// come from a matrix in any case. By other metrics it was not measured.
bool hasNoSample(const FlatKnnProblem& p) {
    return isOfProducts(p.metric) && p.numVectors > kMostVectors &&
            p.numVectors <= kMostVectorsOfNoSample && p.k <= kMaxFinishK &&
            !enoughVectors(p, p.numVectors) && !takesMoreByDigits(p);
}

bool staysInL2(const FlatKnnProblem& p) {
    return double(p.numQueries) * double(strideOf(p)) <=
            double(kTileBytes / sizeof(float));
}

} // namespace

bool hasShortTerms(Metric metric) {
    return isOfProducts(metric) || metric == Metric::L1 ||
            metric == Metric::Linf;
}

bool areAllCandidates(const FlatKnnProblem& p) {
    return candidatesFor(p) >= p.numVectors;
}

int partsOf(const FlatKnnProblem& p, idx_t rows) {
    // Of fewer dimensions ends of tiles are most of their time, which others
    // have shorter. From some 96 on sums of L2 are halves between two of
    // float32 where vectors are far from the origin.
    const int least = p.metric == Metric::L2 ? 89 : 129;
    return isOfProducts(p.metric) && p.d >= least &&
                    !takesWideTiles(
                            rows, p.numVectors, p.device.multiprocessors)
            ? pairParts(rows, p.numVectors, p.d, p.device)
            : 0;
}

bool isOfFew(const FlatKnnProblem& p) {
    constexpr idx_t kLeast = 5;
    constexpr int kLong = 256;
    return batchOf(p) <= kFewQueries &&
            (isFewOfLargeK(p) || isFewOfCosine(p) ||
             (batchOf(p) >= kLeast && p.d >= kLong && isOfProducts(p.metric)));
}

idx_t mostVectorsOfFloat64(const FlatKnnProblem& p) {
    constexpr int kShort = 16;
    return isFewOfCosine(p)
            ? (p.d > kShort ? kMostVectorsOfCosine : kMostVectorsOfCosine / 2)
            : isFewOfLargeK(p)                      ? kMostVectorsOfLargeK
            : hasNoSample(p)                        ? kMostVectorsOfNoSample
            : staysInL2(p) && !takesMoreByDigits(p) ? kMostVectorsAtOnce
                                                    : kMostVectors;
}

idx_t mostVectors(const FlatKnnProblem& p) {
    const idx_t most = mostVectorsOfFloat64(p);
    return takesMoreByDigits(p) ? std::max(most, kMostVectorsOfDigits) : most;
}

idx_t strideOf(const FlatKnnProblem& p) {
    return (p.numVectors + kRowStep - 1) / kRowStep * kRowStep;
}

idx_t mostTileQueries(idx_t stride, bool byDigits) {
    const size_t bytes = byDigits ? kDigitTileBytes : kTileBytes;
    return std::max<idx_t>(bytes / (stride * sizeof(float)), kLeastTileQueries);
}

namespace {

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
    return hasMoreOfTile(p)
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

} // namespace

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

bool digitsPay(const FlatKnnProblem& p) {
    if (!digitsMayPay(p)) {
        return false;
    }
    if (p.numVectors > kMostVectors) {
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

// Microseconds here are as they were measured on an H200
// (docs/design/flat_few_vectors_lists.md).

double allPairsMicroseconds(const FlatKnnProblem& p) {
    const double q = double(p.numQueries);
    const double n = double(p.numVectors);
    const double d = double(p.d);
    const double k = double(std::min<idx_t>(p.k, p.numVectors));
    const double multiprocessors = double(p.device.multiprocessors);
    const double part = multiprocessors / 132.0;
    if (!hasShortTerms(p.metric)) {
        // A component of a pair, and the end of one.
        const double component =
                p.metric == Metric::JensenShannon ? 9e-6 : 2.4e-6;
        return 10 + q * (n * (component * d + 10e-6) + 26e-6 * k) / part;
    }
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
    const bool isOneTile = hasMoreOfTile(p);
    // What selections of wider rows take besides, at most.
    const bool isWider = p.numVectors > kMostVectors && !isOneTile;
    const double time = launchesMicroseconds(p, byDigits, rows) +
            (isWider && !byDigits ? 30 : 0) +
            (byDigits || isOneTile ? 0.0 : 2.4e-6 * n * d) +
            q * ((isWide ? 3.45e-6 : 1.62e-6) * n + 25.4e-6 * k) / part;
    return p.metric == Metric::Cosine && !isOneTile ? 1.08 * time : time;
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

/// The same of limits from strips, at least: two scans, and candidates that are
/// read from memory. 95 searches of the random cells (k up to 512, 16,385 to
/// 65,536 vectors, H200, benchs/results/h200/flat_sweep*.json) took 0.78 times
/// as long and more, half of them 1.24.
double stripsMicroseconds(const FlatKnnProblem& p) {
    const double q = double(p.numQueries);
    const double n = double(p.numVectors);
    const double k = double(p.k);
    const double bytes = double(p.d) * double(sizeOf(p.dataType));
    const double image =
            p.metric == Metric::Cosine ? searchImageMicroseconds(p) : 0.0;
    const double pair = 4 * tensorImageWidth(p) / kTensorRate + 0.1e-6;
    return 45 + image + q * n * pair + q * k * (120e-6 + 0.29e-6 * bytes);
}

/// Few queries by a kept image, of no fewer vectors than a sample is taken of.
double fewByImageMicroseconds(const FlatKnnProblem& p) {
    constexpr idx_t kLeastVectors = 8192;
    const double part = p.device.multiprocessors / 132.0;
    return p.numVectors < kLeastVectors
            ? INFINITY
            : 36 + double(p.numVectors) * (2 * p.d + 32) / 4e6 / part;
}

/// Scans with a kept image of more vectors for so few queries that all pairs
/// stay in L2, of shapes that were timed beside these.
bool isMeasuredScan(const FlatKnnProblem& p) {
    return (p.metric == Metric::L2 || p.metric == Metric::InnerProduct) &&
            p.searchImage && p.d >= 4 && p.d <= 32 && p.k <= 1000;
}

/// Of these, and what all pairs take less there than their model says. Fitted
/// to 21 searches (H200, docs/design/flat_few_vectors_lists.md).
double scannedMicroseconds(const FlatKnnProblem& p) {
    return 60 + 0.3e-3 * double(p.numQueries) * double(p.k);
}

} // namespace

bool allPairsPays(const FlatKnnProblem& p) {
    if (!takesAllPairs(p)) {
        return false;
    }
    if (!hasShortTerms(p.metric)) {
        return true; // what candidates would take, without their order
    }
    const bool isNearest = takesNearest(p);
    if (isNearest && p.numVectors <= (p.d < 512 ? 192 : 256)) {
        return true; // strips of one tile, often searched again
    }
    const double time = allPairsMicroseconds(p);
    if (isFewOfLargeK(p)) {
        return time < directMicroseconds(p);
    }
    if (isOfFew(p)) {
        constexpr double kSelection = 5; // what models of more queries have
        const double others = !enoughVectors(p, p.numVectors) ? INFINITY
                : p.metric == Metric::Cosine ? sampledCosineMicroseconds(p)
                                             : fewByImageMicroseconds(p);
        return time + kSelection < std::min(directMicroseconds(p), others);
    }
    if (isFewOfCosine(p) && p.numVectors > kMostVectors) {
        return true;
    }
    if (p.numVectors <= kMostVectors || hasNoSample(p)) {
        // Some of the time of data that are not hard is given to the nearest,
        // which takes up to six times as long where they are.
        return isNearest ? time < 1.05 * nearestMicroseconds(p)
                         : time < 0.9 * candidatesMicroseconds(p);
    }
    if (takesMoreByDigits(p)) {
        // What selections of wider rows take besides.
        constexpr double kWideRows = 30;
        return time + kWideRows < (p.k > kMostOfStrips
                                           ? 0.9 * sampledMicroseconds(p)
                                           : stripsMicroseconds(p));
    }
    return isMeasuredScan(p) && !isNearest && time < scannedMicroseconds(p);
}

} // namespace faiss_bits
