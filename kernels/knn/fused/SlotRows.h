#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/certified/CertifiedParams.h"

/// A copy of vectors from which eight lanes read what their slots of a
/// canonical sum take: 16 bytes a lane, whole lines a vector.
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

/// Components of the copy of n vectors.
constexpr size_t slotRowsSize(int64_t n, int d) {
    return size_t(n) * slotSteps(d) * kSlotStep;
}

/// The same with the squares of the norms, which lie behind the rows.
constexpr size_t slotCopySize(int64_t n, int d) {
    return slotRowsSize(n, d) + size_t(n) * (sizeof(double) / sizeof(float));
}

/// Enqueues the copy: rows [slotCopySize(n, d)], in float32, which all types of
/// vectors fit, and the squares in float64, of some error (PairEstimate.cuh).
///
/// Cost  a read of the vectors and a write of 128 to 512 bytes for each
void launchSlotRows(
        const VectorsParams& vectors,
        int64_t n,
        int d,
        float* rows,
        cudaStream_t stream);

} // namespace faiss_bits
