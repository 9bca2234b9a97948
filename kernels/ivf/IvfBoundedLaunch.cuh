/// The scans of direct searches by estimates; included by the generated
/// sources only.
#pragma once

#include "kernels/common/DynamicShared.h"
#include "kernels/common/Error.h"
#include "kernels/ivf/IvfProductScan.cuh"

namespace faiss_bits {

/// Calls body<kBytes, kPartDims>() with what lists have.
template <class Body>
void withIvfProductShape(const IvfLists& lists, const Body& body) {
    const int bytes = ivfProductReadOf(lists.decoding.numParts);
    const int dims = lists.d / lists.decoding.numParts;
    const auto take = [&]<int kBytes, int kPartDims>() {
        // A read of a quarter is no more than a quarter.
        if constexpr (4 * kBytes * kPartDims <= kIvfProductMostDims) {
            if (bytes == kBytes && dims == kPartDims) {
                body.template operator()<kBytes, kPartDims>();
                return true;
            }
        }
        return false;
    };
    const auto ofDims = [&]<int kPartDims>() {
        return take.template operator()<2, kPartDims>() ||
                take.template operator()<4, kPartDims>() ||
                take.template operator()<8, kPartDims>() ||
                take.template operator()<16, kPartDims>();
    };
    const bool isTaken = ofDims.template operator()<2>() ||
            ofDims.template operator()<4>() ||
            ofDims.template operator()<8>() || ofDims.template operator()<16>();
    if (!isTaken) {
        throw Error(formatMessage(
                "product codes of %d parts of %d components have no scan",
                lists.decoding.numParts,
                dims));
    }
}

template <Metric kMetric>
void launchIvfProductScan(
        const IvfDirectParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    withIvfProductShape(params.search.lists, [&]<int kBytes, int kPartDims>() {
        const auto kernel = ivfProductScanKernel<kMetric, kBytes, kPartDims>;
        launchAfterPrevious(
                kernel,
                dim3(unsigned(multiprocessors)),
                kIvfProductThreads,
                allowSharedBytes(
                        kernel, ivfProductSharedBytes(params.search.d)),
                stream,
                params);
    });
}

} // namespace faiss_bits
