#pragma once

#include <cuda_runtime_api.h>

#include "kernels/survivors/ListParams.h"

namespace faiss_bits {

/// Enqueues the finish of `rows` lists by one block each, for params.k <=
/// kMaxFinishK. T: of keys. kernels/select/Select.cmake lists the instances.
template <class T>
void launchFinishLists(
        const FinishParams& params,
        unsigned rows,
        cudaStream_t stream);

} // namespace faiss_bits
