/// What an instance name stands for, and the launches; included by the
/// generated sources only.
#pragma once

#include "kernels/common/CudaCheck.h"
#include "kernels/select/bits/BitsLaunch.h"
#include "kernels/select/bits/BitsSelect.cuh"

namespace faiss_bits {

struct FloatKeys {
    using Type = float;
    using Tile = KeyTile<float, false>;
};

struct HalfKeys {
    using Type = __half;
    using Tile = KeyTile<__half, false>;
};

struct BFloat16Keys {
    using Type = __nv_bfloat16;
    using Tile = KeyTile<__nv_bfloat16, false>;
};

struct BiasedKeys {
    using Type = float;
    using Tile = KeyTile<float, true>;
};

struct FloatCandidates {
    using Type = float;
    using Tile = CandidateTile;
};

struct HalfCandidates {
    using Type = __half;
    using Tile = CandidateTile;
};

struct BFloat16Candidates {
    using Type = __nv_bfloat16;
    using Tile = CandidateTile;
};

template <class Keys, int Items>
void launchBitsSelect(
        const SelectParams& params,
        unsigned blocks,
        cudaStream_t stream) {
    bitsSelectKernel<typename Keys::Type, typename Keys::Tile, Items>
            <<<blocks, kBitsThreads, 0, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits
