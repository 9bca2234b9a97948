#pragma once

#include <algorithm>

#include "kernels/knn/DistanceMethod.h"

namespace faiss_bits {

/// Fewest vectors of a product: gemm/Product.cpp has tried its algorithm at
/// this width (kLeastVectors there). A list of fewer is filled up with zeros.
constexpr idx_t kLeastGatheredVectors = 8192;

/// Vectors of the product over that many of a list: as many, in eights, and at
/// least kLeastGatheredVectors.
constexpr idx_t gatheredWidth(idx_t listed) {
    return std::max(kLeastGatheredVectors, (listed + 7) / 8 * 8);
}

/// Whether a search by FlatKnnProblem::allowedIds is expected to take less time
/// than one by the bits. It decides time, never a result. False where there is
/// no list, or where it cannot serve: column-major vectors, methods that do not
/// know lists, and products of so few vectors that it would save nothing.
///
/// sharing  queries of the products for which vectors are copied together once
bool listPays(
        const FlatKnnProblem& problem,
        const DistanceMethod& method,
        idx_t sharing);

} // namespace faiss_bits
