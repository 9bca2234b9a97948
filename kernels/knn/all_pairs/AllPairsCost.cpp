#include <algorithm>
#include <cmath>

#include "kernels/knn/all_pairs/AllPairsKnn.h"
#include "kernels/knn/all_pairs/AllPairsLaunch.h"
#include "kernels/knn/all_pairs/AllPairsShape.h"
#include "kernels/knn/certified/Certified.h"
#include "kernels/knn/fused/FusedCost.h"
#include "kernels/knn/fused/FusedMethod.h"
#include "kernels/knn/nearest/NearestKnn.h"

namespace faiss_bits {

// Microseconds here are as they were measured on an H200
// (docs/design/flat_few_vectors.md).

namespace {

double tilesMicroseconds(const FlatKnnProblem& p) {
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
    const idx_t most = mostPairQueries(allPairsStride(p), AllPairsBy::Tiles);
    const idx_t launches = (p.numQueries + most - 1) / most;
    const idx_t rows = (p.numQueries + launches - 1) / launches;
    const bool isWide =
            takesWideTiles(rows, p.numVectors, p.device.multiprocessors);
    const double tiles = double(allPairsTiles(
            rows,
            p.numVectors,
            kProductQueries,
            isWide ? kWideTile : kNarrowTile));
    const double steps = double(launches) * std::ceil(tiles / multiprocessors) *
            std::ceil(d / 8);
    const double time = 8.3 * double(launches) +
            (isWide ? 1.01 : 0.29) * steps + 2.4e-6 * n * d +
            q * ((isWide ? 3.45e-6 : 1.62e-6) * n + 25.4e-6 * k) / part;
    return p.metric == Metric::Cosine ? 1.08 * time : time;
}

double productsMicroseconds(const FlatKnnProblem& p) {
    const double q = double(p.numQueries);
    const double n = double(p.numVectors);
    const double d = double(p.d);
    const double k = double(std::min<idx_t>(p.k, p.numVectors));
    const double part = double(p.device.multiprocessors) / 132.0;
    const idx_t most = mostPairQueries(allPairsStride(p), AllPairsBy::Products);
    const idx_t launches = (p.numQueries + most - 1) / most;
    return 20 + 20 * double(launches) + 5e-6 * (n + q) * d +
            q * (n * (40e-9 * d + 9e-6) + 25.4e-6 * k) / part;
}

} // namespace

double allPairsMicroseconds(const FlatKnnProblem& p, AllPairsBy by) {
    const double byTiles =
            by != AllPairsBy::Products && takesAllPairs(p, AllPairsBy::Tiles)
            ? tilesMicroseconds(p)
            : INFINITY;
    const double byProducts = (by == AllPairsBy::Products ||
                               (kChoosesProducts && by == AllPairsBy::Best)) &&
                    takesAllPairs(p, AllPairsBy::Products)
            ? productsMicroseconds(p)
            : INFINITY;
    return std::min(byTiles, byProducts);
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

bool allPairsPays(const FlatKnnProblem& p) {
    if (!takesAllPairs(p)) {
        return false;
    }
    if (p.numVectors > kMostPairVectors) {
        // The component by component way of few dimensions has no such model,
        // and takes less.
        return fusedMethodFor(p) == &kTensorFusedMethod && p.k > 1 &&
                allPairsMicroseconds(p) < 0.9 *
                        std::min(candidatesMicroseconds(p),
                                 sampledMicroseconds(p));
    }
    if (takesNearest(p)) {
        // Strips of one tile, whose queries are often searched again.
        return isOfProducts(p.metric) &&
                p.numVectors <= (p.d < 512 ? 192 : 256);
    }
    return allPairsMicroseconds(p) < 0.9 * candidatesMicroseconds(p);
}

} // namespace faiss_bits
