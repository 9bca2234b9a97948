#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/certified/CertifiedParams.h"

/// A copy of vectors from which eight lanes read what their slots of a
/// canonical sum take, 16 bytes a lane and whole lines a vector, in words that
/// become float64 without a conversion (SlotQuery.cuh).
namespace faiss_bits {

/// Components of a step, in which lane l of eight has l, l + 8, l + 16, l + 24.
constexpr int kSlotStep = 32;
constexpr int kMostSlotSteps = 4;

/// Steps of a row of the copy, zeros behind component d; 0: there is no copy of
/// so many dimensions.
constexpr int slotSteps(int d) {
    return d <= kSlotStep                     ? 1
            : d <= 2 * kSlotStep              ? 2
            : d <= kMostSlotSteps * kSlotStep ? kMostSlotSteps
                                              : 0;
}

/// The copy. A word has the bits of a float32: its sign, the last three bits,
/// and the 28 others.
struct SlotRows {
    uint32_t* words = nullptr; // [n, slotSteps, kSlotStep]; nullptr: none
    /// [n]: 1 where a component is no number, or infinite. Such words mean
    /// nothing.
    uint8_t* areOdd = nullptr;
};

/// Words of a copy.
constexpr size_t slotWords(int64_t n, int d) {
    return size_t(n) * slotSteps(d) * kSlotStep;
}

/// Enqueues the making of a copy.
///
/// Cost  a read of the vectors and a write of 128 to 512 bytes for each
void launchSlotRows(
        const VectorsParams& vectors,
        int64_t n,
        int d,
        const SlotRows& rows,
        cudaStream_t stream);

} // namespace faiss_bits
