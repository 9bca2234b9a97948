/// The launch; included by the generated sources only.
#pragma once

#include "kernels/common/CudaCheck.h"
#include "kernels/select/short_rows/ShortRows.cuh"

namespace faiss_bits {

template <class T, bool kHasBias, int kLanes, int kItems, int kSorted>
void launchShortRows(const ShortRowsParams& params, cudaStream_t stream) {
    constexpr unsigned kRows = kShortRowsThreads / kLanes;
    if constexpr (sizeof(T) == 2 && kItems % 2 == 0) {
        using Row = NarrowRow<T, kLanes, kItems, kSorted>;
        if (Row::takes(params.select.cols, params.select.k)) {
            narrowRowsKernel<T, kLanes, kItems, kSorted>
                    <<<(params.rows + kRows - 1) / kRows,
                       kShortRowsThreads,
                       0,
                       stream>>>(params);
            BITS_CUDA_CHECK(cudaGetLastError());
            return;
        }
    }
    shortRowsKernel<T, kHasBias, kLanes, kItems, kSorted>
            <<<(params.rows + kRows - 1) / kRows,
               kShortRowsThreads,
               0,
               stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits
