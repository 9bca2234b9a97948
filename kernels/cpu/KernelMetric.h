#pragma once

#include <cstdint>

namespace faiss_bits::cpu {

/// What a kernel accumulates. Keys are always "smaller is nearer": queries are
/// negated while they are packed where the metric is a similarity.
enum class KernelMetric : uint8_t {
    L2, ///< products; |x|^2 - 2 <q, x>, completed by |q|^2 at the selection
    Product, ///< products
    Cosine,  ///< products with unit queries, times 1 / |x|
    L1,      ///< |q - x|
    Linf,    ///< largest |q - x|; NaN wins
    Squares, ///< (q - x)^2: Lp with p = 2
    Power,   ///< |q - x|^p
    // Canonical distances alone (kernels/canonical/Distance.h): no other
    // arithmetic finds candidates.
    Canberra,
    BrayCurtis,
    JensenShannon,
    Jaccard,
};

/// True if every distance is computed as a canonical one.
constexpr bool isAlwaysCanonical(KernelMetric metric) {
    return metric >= KernelMetric::Canberra;
}

} // namespace faiss_bits::cpu
