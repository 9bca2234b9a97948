#pragma once

#include <cuda_runtime_api.h>

#include "kernels/select/SelectParams.h"

namespace faiss_bits {

constexpr int kShortRowsThreads = 128;

struct ShortRowsParams {
    SelectParams select;
    uint32_t rows = 0; // of this launch
};

/// Enqueues a launch. T: of keys; the rest as Policies.inc has it.
/// kernels/select/Select.cmake lists the instances.
template <class T, bool kHasBias, int kLanes, int kItems, int kSorted>
void launchShortRows(const ShortRowsParams& params, cudaStream_t stream);

} // namespace faiss_bits
