#include <algorithm>
#include <cmath>

#include "kernels/knn/direct/DirectKnn.h"
#include "kernels/knn/direct/DirectTakes.h"
#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/fused/tensor/SearchImage.h"

// Microseconds here are as they were measured on an H200
// (docs/design/flat_few_pairs.md).

namespace faiss_bits {

namespace {

/// What a finish of a large k takes beside that of a small one.
double largeKMicroseconds(const FlatKnnProblem& p) {
    if (directMeetsAllKeys(p)) {
        return 1.2e-3 * double(directPlaces(p));
    }
    if (p.k <= kMostOfOneBlock) {
        return 0;
    }
    return isSpread(p, directGroups(p).count) ? 4 : 12.0 * p.k / 1024;
}

/// Of DirectProducts.cuh, without what finishes. Fitted to 582 searches of 2 to
/// 16 queries, 5,000 to 400,000 vectors of 17 to 2,816 dimensions.
double productsMicroseconds(const FlatKnnProblem& p) {
    const double part = p.device.multiprocessors / 132.0;
    const double d = double(p.d);
    const int ofBlock = directProductQueries(p.numQueries, p.d);
    const double sets = std::ceil(double(p.numQueries) / ofBlock);
    const bool isCosine = p.metric == Metric::Cosine;
    const bool isFloat = p.dataType == DataType::Float32;
    struct Cost {
        double vector;    // ends of all sums
        double component; // of a vector, for the queries of a block
        double latency;   // of a component
        double set;       // the same where blocks are few
    };
    const Cost cost = ofBlock == 8 ? Cost{isCosine ? 1.15e-4 : 0.85e-4,
                                          isFloat ? 1.33e-6 : 1.17e-6,
                                          isFloat ? 0.021 : 0.017,
                                          0}
                                   : Cost{isCosine ? 0.9e-4 : 0.78e-4,
                                          isFloat ? 0.78e-6 : 0.83e-6,
                                          isFloat ? 0.030 : 0.019,
                                          isFloat ? 0.016 : 0.011};
    const double vectors = double(directPlaces(p)) * sets *
            (cost.vector + cost.component * d) / part;
    return std::max(cost.latency * d + vectors, cost.set * d * sets);
}

/// Of a scan of few queries component by component, of a vector and a
/// component. Rows that do not begin on 16 bytes take a third longer.
double scanMicroseconds(
        const FlatKnnProblem& p,
        double vector,
        double component) {
    const double part = p.device.multiprocessors / 132.0;
    const bool isAligned = p.d * sizeOf(p.dataType) % 16 == 0;
    const double row = vector + (isAligned ? 1 : 1.33) * component * p.d;
    return double(directPlaces(p)) * row / part;
}

/// Inner products of few queries, but of one, by a fused search component by
/// component. These and cosines are fitted to 240 searches of 2 to 16 queries,
/// 131,072 and 400,000 vectors of 17 to 1,025 dimensions (products 32), k = 10.
double sampledProductMicroseconds(const FlatKnnProblem& p) {
    const bool areFew = batchOf(p) <= kDirectQueries;
    const double component =
            areFew ? 1.9e-6 : 2.4e-6 + 0.015e-6 * double(p.numQueries);
    return 36 + scanMicroseconds(p, areFew ? 2e-5 : 4e-5, component);
}

} // namespace

double directMicroseconds(const FlatKnnProblem& p) {
    const double part = p.device.multiprocessors / 132.0;
    const double q = double(p.numQueries);
    const double d = double(p.d);
    // A read of the vectors and the terms of up to four queries, of cosines of
    // one.
    const bool isBySlots = directShape(p) == DirectShape::Slots;
    const bool readsOften = p.metric == Metric::Cosine && !isBySlots;
    const double sharedReads = std::ceil(q / kDirectQueries);
    const double reads = readsOften ? q : sharedReads;
    // Queries have smaller blocks.
    const double slow = batchOf(p) <= kFewQueries || readsOften ? 1 : 1.45;
    const bool isFloat = p.dataType == DataType::Float32;
    const double pass = p.numQueries == 1 || readsOften
            ? 1e-5 + (isFloat ? 1.03e-6 : 0.78e-6) * d
            : 2.05e-5 + 1.13e-6 * d;
    // Of a few reads one after another, each a part of the first.
    const bool areFew = batchOf(p) <= kFewQueries && !isBySlots;
    const double latency = (isBySlots                   ? 0.4
                                    : p.numQueries == 1 ? 0.9
                                                        : 1.9) *
            d / 32 * (areFew ? 1 + 0.65 * (sharedReads - 1) : 1);
    const double finish =
            8 * (std::ceil(q / (2.0 * p.device.multiprocessors)) - 1);
    if (directShape(p) == DirectShape::Products) {
        return 9.3 + finish + largeKMicroseconds(p) + productsMicroseconds(p);
    }
    // Of three sums no block has several queries that share what it reads.
    const double alone = p.metric == Metric::Cosine && isBySlots
            ? 1.35e-6 * q * double(directPlaces(p)) * d / part
            : 0.0;
    return 9.3 + finish + largeKMicroseconds(p) +
            std::max(
                    {reads * slow * double(directPlaces(p)) * pass / part,
                     latency,
                     alone});
}

double sampledCosineMicroseconds(const FlatKnnProblem& p) {
    constexpr int kLeastFittedDims = 17;
    if (p.d < kLeastFittedDims || !enoughVectors(p, p.numVectors)) {
        const double rate = 3.4e-6 + 0.06e-6 * double(p.numQueries);
        return 55 +
                rate * double(directPlaces(p)) * p.d * 132.0 /
                p.device.multiprocessors;
    }
    const bool areFew = batchOf(p) <= kDirectQueries;
    const double component =
            (areFew ? 2.85e-6 : 3.3e-6) + 0.045e-6 * double(p.numQueries);
    return 45 + scanMicroseconds(p, areFew ? 8e-5 : 13e-5, component);
}

bool directPays(const FlatKnnProblem& p, bool withImage) {
    if (!takesDirect(p)) {
        return false;
    }
    // The launches of others keep the host busy for longer, too.
    constexpr double kHost = 8;
    constexpr int kLeastFittedDims = 32;
    constexpr double kBytes = 4e6; // in one
    const double part = p.device.multiprocessors / 132.0;
    const double n = double(p.numVectors);
    const double d = double(p.d);
    const double places = double(directPlaces(p));
    double other = kHost;
    if (p.metric == Metric::Cosine && batchOf(p) <= kFewQueries) {
        other += sampledCosineMicroseconds(p);
    } else if (batchOf(p) > kFewQueries) {
        other += 38 + double(p.numQueries) * places * (2e-6 + d / 100e6) / part;
    } else if (
            withImage && canUseSearchImage(p) && searchImageHelps(p) &&
            places > n / 4) {
        const bool addsNorms = p.metric == Metric::L2;
        if (p.k > kMostOfOneBlock) {
            other += 6 + 7.0 * p.k / 1024;
        }
        other += (addsNorms ? 36 : 27) +
                n * (2 * d + (addsNorms ? 32 : 0)) / kBytes / part;
    } else if (
            p.metric == Metric::InnerProduct && p.numQueries > 1 &&
            p.d >= kLeastFittedDims && enoughVectors(p, p.numVectors)) {
        other += sampledProductMicroseconds(p);
        if (p.k > kMostOfOneBlock) {
            other += 20 + 1e-6 * double(p.numQueries) * p.k * d / part;
        }
    } else {
        // Scans for inner products of few dimensions take longer than reads.
        constexpr int kFewDims = 8;
        constexpr idx_t kFew = 3;
        const bool areProducts = p.metric == Metric::InnerProduct &&
                p.d <= kFewDims && p.numQueries > kFew;
        other += 27 +
                places *
                        std::max(
                                areProducts ? 28e-6 : 0.0,
                                d * sizeOf(p.dataType) / kBytes) /
                        part;
        if (p.k > kMostOfOneBlock) {
            other += 20 + 1e-6 * double(p.numQueries) * p.k * d / part;
        }
    }
    // Copies by the thousand, which have others search again: one dimension has
    // no more than 65,536 vectors of 16 bits.
    const bool areCopies = p.d == 1 && p.dataType != DataType::Float32;
    return directMicroseconds(p) < (areCopies ? 3 : 1) * other;
}

} // namespace faiss_bits
