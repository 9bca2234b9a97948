/// The launch of rows by combs; included by the generated sources only.
#pragma once

#include "kernels/common/DynamicShared.h"
#include "kernels/common/Error.h"
#include "kernels/select/bits/BitsLaunch.cuh"
#include "kernels/select/threshold/CombLaunch.h"
#include "kernels/select/threshold/CombRows.cuh"

namespace faiss_bits {

template <class Keys, int Threads, int Room>
void launchCombRows(
        const ThresholdParams& params,
        unsigned blocks,
        cudaStream_t stream) {
    using Type = typename Keys::Type;
    using Body = CombRowsBody<Type, Threads, Room, false>;
    const auto kernel = params.signMask == 0
            ? combRowsKernel<Type, Threads, Room, false>
            : combRowsKernel<Type, Threads, Room, true>;
    const size_t bytes = 8 * Body::words(params.capacity);
    const size_t allowed = allowSharedBytes(kernel, bytes);
    BITS_THROW_IF_NOT_FMT(
            allowed == bytes,
            "the device has %zu bytes of shared memory a block, and the plan "
            "was made for one with %zu",
            allowed,
            bytes);
    kernel<<<blocks, Threads, bytes, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits
