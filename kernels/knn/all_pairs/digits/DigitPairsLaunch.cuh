/// The launch; included by the generated sources only.
#pragma once

#include <algorithm>

#include "kernels/common/DynamicShared.h"
#include "kernels/common/Error.h"
#include "kernels/knn/all_pairs/AllPairsLaunch.h"
#include "kernels/knn/all_pairs/digits/DigitPairs.cuh"

namespace faiss_bits {

template <Metric kMetric, int kDigits>
void launchDigitPairsOf(
        const DigitPairsParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    using Pairs = DigitPairs<kMetric, kDigits>;
    const int64_t tiles = allPairsTiles(
            params.search.rows, params.search.n, kDigitQueries, kDigitVectors);
    launchAfterPrevious(
            digitPairsKernel<kMetric, kDigits>,
            unsigned(std::min<int64_t>(tiles, multiprocessors)),
            Pairs::kThreads,
            allowSharedBytes(
                    digitPairsKernel<kMetric, kDigits>,
                    sizeof(typename Pairs::SharedStorage)),
            stream,
            params);
}

template <Metric kMetric>
void launchDigitPairs(
        const DigitPairsParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    switch (params.digits) {
        case 4:
            return launchDigitPairsOf<kMetric, 4>(
                    params, multiprocessors, stream);
        case 5:
            return launchDigitPairsOf<kMetric, 5>(
                    params, multiprocessors, stream);
        default:
            throw Error(formatMessage(
                    "digits = %d are neither 4 nor 5", params.digits));
    }
}

} // namespace faiss_bits
