#pragma once

#include "kernels/ivf/IvfDirectParams.h"
#include "kernels/ivf/IvfEstimateBound.h"

/// Direct searches whose scan writes estimates of keys in place of the keys;
/// the finish makes keys of those that may be among the nearest. For queries
/// that share what is read of a list.
namespace faiss_bits {

// Of a tile of product codes, which a warp has (IvfProductScan.cuh).
constexpr int kIvfProductQueries = 8;
constexpr int kIvfProductVectors = 256;
/// Threads of a block, one of a multiprocessor.
constexpr int kIvfProductThreads = 512;
constexpr int kIvfProductMostDims = 256;
/// Rows of a part of the codebook.
constexpr int kIvfCodebookRows = 256;
/// Parts that a block converts (IvfCodebook.cuh).
constexpr int kIvfCodebookParts = 8;

/// That of a codebook; longest: the sum over parts of the greatest square of a
/// row. Beyond its greatest there are no estimates.
BITS_HOST_DEVICE float ivfCodebookScale(float longest) {
    return longest <= ivf_estimate::kGreatest ? ivf_estimate::scaleOf(longest)
                                              : 1.0f;
}

/// The codebook in float16, and the fragments of a warp's queries: bytes.
BITS_HOST_DEVICE constexpr size_t ivfProductCodebookBytes(int d) {
    return size_t(d) * kIvfCodebookRows * 2;
}
BITS_HOST_DEVICE constexpr size_t ivfProductWarpBytes(int d) {
    return size_t(d) * kIvfProductQueries * 2;
}
constexpr size_t ivfProductSharedBytes(int d) {
    constexpr int kWarpsOfBlock = kIvfProductThreads / 32;
    return ivfProductCodebookBytes(d) + kWarpsOfBlock * ivfProductWarpBytes(d);
}

/// Codes of a quarter of a vector that are read at a time: 2, 4, 8 or 16; 0 if
/// it has an odd number.
constexpr int ivfProductReadOf(int parts) {
    const int quarter = parts / 4;
    return quarter % 16 == 0   ? 16
            : quarter % 8 == 0 ? 8
            : quarter % 4 == 0 ? 4
            : quarter % 2 == 0 ? 2
                               : 0;
}

/// Whether the scan takes such lists: rows of bytes whose quarters are of even
/// numbers of parts, of 2, 4, 8 or 16 components each, with a codebook on
/// sixteen bytes.
inline bool hasIvfProductScan(
        const IvfLists& lists,
        const DeviceTraits& device) {
    constexpr size_t kReserved = 2048; // of a block, by CUDA and by the kernel
    const int parts = lists.decoding.numParts;
    if (lists.coding != ListCoding::Product ||
        lists.layout != ListLayout::Rows || lists.decoding.partBits != 8 ||
        reinterpret_cast<uintptr_t>(lists.decoding.codebook) % 16 != 0 ||
        lists.d > kIvfProductMostDims || parts < 8 || parts % 4 != 0 ||
        ivfProductReadOf(parts) == 0 ||
        ivfProductSharedBytes(lists.d) + kReserved > device.sharedBytes) {
        return false;
    }
    const int dims = lists.d / parts;
    return dims == 2 || dims == 4 || dims == 8 || dims == 16;
}

/// Estimates of keys, of tiles of kIvfProductQueries and kIvfProductVectors;
/// after launchIvfDirectLists and, where there is no counter, launchIvfPairs.
/// Of lists that hasIvfProductScan().
template <Metric kMetric>
void launchIvfProductScan(
        const IvfDirectParams& params,
        int multiprocessors,
        cudaStream_t stream);

/// The k <= kMostFinishedK nearest of each query, of estimates of keys, which
/// may be overwritten.
void launchIvfBoundedFinish(const IvfDirectParams& params, cudaStream_t stream);

} // namespace faiss_bits
