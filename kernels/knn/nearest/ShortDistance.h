#pragma once

#include "kernels/canonical/Distance.h"

namespace faiss_bits {

/// canonical::distance of up to sixteen components, one or two a slot, without
/// sums of zeros: the same number, but that a zero may have a sign. Components
/// beyond d are zeros. Products of float32 are exact, so that those of inner
/// products are fused with the sum that they alone are added to.
template <Metric kMetric, int kDims>
BITS_HOST_DEVICE double shortDistance(
        const double (&x)[kDims],
        const double (&q)[kDims]) {
    static_assert(kDims % 2 == 0 && kDims >= 2 && kDims <= 16);
    static_assert(kMetric == Metric::L2 || kMetric == Metric::InnerProduct);
    const auto term = [&](int i) {
        const double factor = canonical::sub(x[i], q[i]);
        return canonical::mul(factor, factor);
    };
    /// s + the term i, where there is one.
    const auto plus = [&](double s, int i) {
        if (i >= kDims) {
            return s;
        }
        return kMetric == Metric::L2 ? canonical::add(s, term(i))
                                     : canonical::addProduct(s, x[i], q[i]);
    };
    const auto slot = [&](int i) {
        const double first =
                kMetric == Metric::L2 ? term(i) : canonical::mul(x[i], q[i]);
        return plus(first, i + canonical::kSlots);
    };
    /// s + slot i, where there is one.
    const auto join = [&](double s, int i) {
        return i + canonical::kSlots < kDims ? canonical::add(s, slot(i))
                                             : plus(s, i);
    };
    // Slots i and i + 4, then i + 2 and i + 6 to them.
    const auto half = [&](int i) {
        const double sum = join(slot(i), i + 4);
        return i + 6 < kDims ? canonical::add(sum, join(slot(i + 2), i + 6))
                             : join(sum, i + 2);
    };
    return kDims == 2 ? plus(slot(0), 1) : canonical::add(half(0), half(1));
}

/// The key of a canonical distance, the query of a similarity with its sign
/// turned: shortDistance(), or the cosine of that query, whose sums they are.
template <Metric kMetric, int kDims>
BITS_HOST_DEVICE double shortKey(
        const double (&x)[kDims],
        const double (&q)[kDims]) {
    if constexpr (kMetric == Metric::Cosine) {
        constexpr Metric kProduct = Metric::InnerProduct;
        const double sums[] = {
                shortDistance<kProduct>(x, q),
                shortDistance<kProduct>(x, x),
                shortDistance<kProduct>(q, q)};
        return canonical::Terms<Metric::Cosine>::finish(sums);
    } else {
        return shortDistance<kMetric>(x, q);
    }
}

} // namespace faiss_bits
