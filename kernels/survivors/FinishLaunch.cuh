/// The launches that finish lists as they are; included by the generated
/// sources only.
#pragma once

#include "kernels/survivors/FinishLaunch.h"
#include "kernels/survivors/FinishRows.cuh"

namespace faiss_bits {

template <class T>
void launchFinishLists(
        const FinishParams& params,
        unsigned rows,
        cudaStream_t stream) {
    constexpr int kThreads = 512;
    const auto launch = params.k <= 32
            ? launchFinishKernel<T, NoRowsAgain, kThreads, 64>
            : params.k <= 512
            ? launchFinishKernel<T, NoRowsAgain, kThreads, 512>
            : params.k <= 1024
            ? launchFinishKernel<T, NoRowsAgain, kThreads, 1024>
            : launchFinishKernel<T, NoRowsAgain, kThreads, 2048>;
    launch(params, rows, stream);
}

} // namespace faiss_bits
