#include "kernels/knn/all_pairs/digits/DigitPairs.cuh"

#include <algorithm>

#include "kernels/common/DynamicShared.h"
#include "kernels/common/Error.h"

namespace faiss_bits {

namespace {

template <int kDigits>
void launch(
        const DigitPairsParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    using Pairs = DigitPairs<kDigits>;
    const int64_t tiles = (int64_t(params.rows) + kDigitQueries - 1) /
            kDigitQueries * ((params.n + kDigitVectors - 1) / kDigitVectors);
    launchAfterPrevious(
            digitPairsKernel<kDigits>,
            unsigned(std::min<int64_t>(tiles, multiprocessors)),
            Pairs::kThreads,
            allowSharedBytes(
                    digitPairsKernel<kDigits>,
                    sizeof(typename Pairs::SharedStorage)),
            stream,
            params);
}

} // namespace

void launchDigitPairs(
        const DigitPairsParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    switch (params.digits) {
        case 4:
            return launch<4>(params, multiprocessors, stream);
        case 5:
            return launch<5>(params, multiprocessors, stream);
        default:
            throw Error(formatMessage(
                    "digits = %d are neither 4 nor 5", params.digits));
    }
}

} // namespace faiss_bits
