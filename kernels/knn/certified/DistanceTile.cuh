/// The tile that computes the canonical distances of a metric.
#pragma once

#include <type_traits>

#include "kernels/knn/certified/ProductTile.cuh"

namespace faiss_bits {

/// Across: the width of a ProductTile. 8 is the fastest, 6 for kernels that
/// need registers for more than that, 2 where there are few tiles. Vectors:
/// where they are found (TileVectors.cuh).
template <Metric kMetric, int Across, class Vectors = MatrixOfVectors>
using DistanceTile = std::conditional_t<
        isOfProducts(kMetric),
        ProductTile<kMetric, Across, Vectors>,
        ScanTile<kMetric, Vectors>>;

} // namespace faiss_bits
