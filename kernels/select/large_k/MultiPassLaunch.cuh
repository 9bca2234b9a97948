/// What an instance name stands for, and the launches; included by the
/// generated sources only.
#pragma once

#include "kernels/common/CudaCheck.h"
#include "kernels/select/large_k/BitsGlobal.cuh"
#include "kernels/select/large_k/MultiPassLaunch.h"
#include "kernels/select/large_k/RowPasses.cuh"

namespace faiss_bits {

struct MultiPassFloat {
    using Row = KeyRow<float, false>;
};

struct MultiPassHalf {
    using Row = KeyRow<__half, false>;
};

struct MultiPassBFloat16 {
    using Row = KeyRow<__nv_bfloat16, false>;
};

struct MultiPassBiased {
    using Row = KeyRow<float, true>;
};

using MultiPassKernel = void (*)(MultiPassParams);

template <MultiPassKernel Kernel, unsigned (*Blocks)(const MultiPassParams&)>
void launchMultiPass(const MultiPassParams& params, cudaStream_t stream) {
    Kernel<<<Blocks(params), kMultiPassThreads, 0, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

inline unsigned blocksByRow(const MultiPassParams& p) {
    return p.rows;
}

inline unsigned blocksBySplit(const MultiPassParams& p) {
    return p.rows * p.splits;
}

inline unsigned blocksByTile(const MultiPassParams& p) {
    return p.rows * p.tiles;
}

template <class Keys>
void getMultiPassLaunches(MultiPassLaunches& to) {
    using Row = typename Keys::Row;
    static_assert(Row::Tile::kSize == kMatchTile);
    to.drawSplitters = launchMultiPass<drawSplittersKernel<Row>, blocksByRow>;
    to.countSplitters =
            launchMultiPass<countKernel<Row, SplitterBuckets>, blocksBySplit>;
    to.countDigits =
            launchMultiPass<countKernel<Row, DigitBuckets>, blocksBySplit>;
    to.partition = launchMultiPass<partitionKernel<Row>, blocksBySplit>;
    to.finish = launchMultiPass<finishKernel<Row>, blocksByRow>;
    to.match = launchMultiPass<matchKernel<Row>, blocksByTile>;
    to.listAll = launchMultiPass<listAllKernel<Row>, blocksBySplit>;
    to.bitsGlobal = launchMultiPass<bitsGlobalKernel<Row>, blocksBySplit>;
}

} // namespace faiss_bits
