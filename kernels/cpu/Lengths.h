#pragma once

#include <atomic>

#include "kernels/cpu/KernelTypes.h"

namespace faiss_bits::cpu {

/// What bounds of errors need to know of all vectors; filled in by a sweep.
/// Vectors with NaN do not count: they are in no result.
template <class T>
struct Lengths {
    /// At least |x|^2: Product, and 16-bit integers.
    std::atomic<T> largestSquare{0};
    std::atomic<double> roundingShare{0}; ///< PackJob, of 16-bit integers
    /// Cosine: some length is no number that T can square and invert.
    std::atomic<bool> outOfRange{false};
};

/// Takes in the terms [count] that packing or scanning made of the vectors from
/// row `begin` on: |x|^2 for Product, 1 / |x| for Cosine.
template <class T>
void noteLengths(
        Lengths<T>& lengths,
        KernelMetric metric,
        const RowView<T>& vectors,
        int depth,
        idx_t begin,
        idx_t count,
        const T* terms);

/// Raises `largest` to a value; NaN does not.
template <class T>
void raiseTo(std::atomic<T>& largest, T value) {
    T known = largest.load(std::memory_order_relaxed);
    while (known < value &&
           !largest.compare_exchange_weak(
                   known, value, std::memory_order_relaxed)) {
    }
}

} // namespace faiss_bits::cpu
