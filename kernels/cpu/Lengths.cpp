#include "kernels/cpu/Lengths.h"

#include <algorithm>
#include <cmath>

namespace faiss_bits::cpu {

namespace {

/// True for a vector of zeros, whose cosine is exact, and for one with NaN.
template <class T>
bool isZeroOrNan(const T* row, int depth) {
    bool zero = true, nan = false;
    for (int i = 0; i < depth; ++i) {
        zero = zero && row[i] == 0;
        nan = nan || std::isnan(row[i]);
    }
    return zero || nan;
}

} // namespace

template <class T>
void noteLengths(
        Lengths<T>& lengths,
        KernelMetric metric,
        const RowView<T>& vectors,
        int depth,
        idx_t begin,
        idx_t count,
        const T* terms) {
    if (metric == KernelMetric::Product) {
        T largest = 0;
        for (idx_t i = 0; i < count; ++i) {
            largest = largest < terms[i] ? terms[i] : largest;
        }
        raiseTo(lengths.largestSquare, largest);
    }
    if (metric == KernelMetric::Cosine) {
        // Squares from 2^-90 to 2^120: no sum of them is far from what it is.
        // float64: nor is the product with that of a query.
        constexpr T kLeast = sizeof(T) == 4 ? T(0x1p-60) : T(0x1p-200);
        constexpr T kMost = sizeof(T) == 4 ? T(0x1p45) : T(0x1p200);
        for (idx_t i = 0; i < count; ++i) {
            const bool inRange = terms[i] >= kLeast && terms[i] <= kMost;
            if (!inRange && !isZeroOrNan(vectors.row(begin + i), depth)) {
                lengths.outOfRange.store(true, std::memory_order_relaxed);
            }
        }
    }
}

#define INSTANTIATE(T)         \
    template void noteLengths( \
            Lengths<T>&,       \
            KernelMetric,      \
            const RowView<T>&, \
            int,               \
            idx_t,             \
            idx_t,             \
            const T*);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

} // namespace faiss_bits::cpu
