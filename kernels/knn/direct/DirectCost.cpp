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

/// Of DirectProducts.cuh, without what finishes. Not fitted: by arithmetic,
/// sums and conversions of float64 one after the other, or a read. Large
/// searches took 1.4 to 1.8 times as long (an H200, flat_few_pairs.md).
double productsMicroseconds(const FlatKnnProblem& p) {
    const double part = p.device.multiprocessors / 132.0;
    const double d = double(p.d);
    const int ofBlock = directProductQueries(p.numQueries, p.d);
    const double sets = std::ceil(double(p.numQueries) / ofBlock);
    const double ends = p.metric == Metric::Cosine ? 1 : 0.4; // of all sums
    const double pass = ends * (ofBlock == 8 ? 5e-5 : 3e-5) +
            (ofBlock == 8 ? 1.0e-6 : 0.65e-6) * d;
    const double read =
            (p.dataType == DataType::Float32 ? 1.03e-6 : 0.52e-6) * d;
    const double latency = 0.9 * d / kDirectProductStep;
    return 2 +
            std::max(
                    double(directPlaces(p)) * std::max(sets * pass, read) /
                            part,
                    latency);
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
    const double part = p.device.multiprocessors / 132.0;
    const double rate = 3.4e-6 + 0.06e-6 * double(p.numQueries);
    return 55 + rate * double(directPlaces(p)) * double(p.d) / part;
}

bool directPays(const FlatKnnProblem& p, bool withImage) {
    if (!takesDirect(p)) {
        return false;
    }
    // The launches of others keep the host busy for longer, too.
    constexpr double kHost = 8;
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
