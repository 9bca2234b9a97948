#pragma once

#include "kernels/ivf/IvfDirectParams.h"
#include "kernels/ivf/IvfEstimateBound.h"
#include "kernels/ivf/IvfFloors.h"
#include "kernels/ivf/IvfTableBound.h"

/// Direct searches whose scan writes estimates of keys in place of the keys;
/// the finish makes keys of those that may be among the nearest. For queries
/// that share what is read of a list: by products of decoded vectors, or by
/// look-ups in tables of each query.
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

/// What a block of these scans has of shared memory beside its arrays: by CUDA,
/// and by the kernel.
constexpr size_t kIvfBoundedReserved = 2048;

/// Whether the scan takes such lists: rows of bytes whose quarters are of even
/// numbers of parts, of 2, 4, 8 or 16 components each, with a codebook on
/// sixteen bytes.
inline bool hasIvfProductScan(
        const IvfLists& lists,
        const DeviceTraits& device) {
    const int parts = lists.decoding.numParts;
    if (lists.coding != ListCoding::Product ||
        lists.layout != ListLayout::Rows || lists.decoding.partBits != 8 ||
        reinterpret_cast<uintptr_t>(lists.decoding.codebook) % 16 != 0 ||
        lists.d > kIvfProductMostDims || parts < 8 || parts % 4 != 0 ||
        ivfProductReadOf(parts) == 0 ||
        ivfProductSharedBytes(lists.d) + kIvfBoundedReserved >
                device.sharedBytes) {
        return false;
    }
    const int dims = lists.d / parts;
    return dims == 2 || dims == 4 || dims == 8 || dims == 16;
}

// Of queries by themselves, with the codebook of product codes in float32 in
// shared memory (IvfBookScan.cuh): threads of a block, one of a multiprocessor;
// queries at most, each of which has a block or more; and bytes to find lists.
constexpr int kIvfBookThreads = 512;
constexpr uint32_t kMostBookRows = 128;
constexpr size_t kIvfBookListBytes = 12 * 1024;
constexpr size_t ivfBookSharedBytes(int d, uint32_t nprobe) {
    return size_t(d) * (kIvfCodebookRows * sizeof(float) + sizeof(double)) +
            kIvfBookListBytes +
            nprobe * (sizeof(void*) + 3 * sizeof(uint32_t)) + sizeof(uint32_t);
}

/// The same of estimates by tables of a list (IvfBookTables.cuh).
constexpr int kMostBookTableDims = 512;
constexpr size_t kIvfBookTableListBytes = 3 * 4 * kMostBookTableDims;
constexpr size_t ivfBookTableBytes(int d, int parts, uint32_t nprobe) {
    return ivfBookSharedBytes(d, nprobe) +
            size_t(parts) * kIvfCodebookRows * sizeof(float) +
            kIvfBookTableListBytes;
}

/// Of a scan whose codes come through shared memory (IvfCodeRing.cuh): of a
/// vector in a piece, pieces that are on their way or taken, and of a block's
/// piece.
constexpr int kIvfCodeBytes = 16;
constexpr int kIvfCodePieces = 8;
constexpr int kIvfCodePieceBytes = kIvfBookThreads * kIvfCodeBytes;

/// Of up to so many dimensions the codebook is in registers. In shared memory
/// are the tables of four lists, of two of more parts than there are banks,
/// with copies of parts that are fewer (IvfHeldTables.cuh).
constexpr int kMostHeldDims = 128;
constexpr int kIvfBanks = 32;
constexpr size_t kIvfHeldListBytes = 6 * 4 * kMostHeldDims;
constexpr size_t ivfHeldTableBytes(uint32_t nprobe) {
    return 4 * size_t(kIvfBanks) * kIvfCodebookRows * sizeof(float) +
            size_t(kIvfCodePieces) * kIvfCodePieceBytes + kIvfHeldListBytes +
            kIvfBookListBytes +
            nprobe * (sizeof(void*) + 3 * sizeof(uint32_t)) + sizeof(uint32_t);
}

/// Whether that scan takes such lists: rows of bytes, of parts of 2, 4, 8 or 16
/// components, with a codebook on sixteen bytes that shared memory has room
/// for, and centroids of which twos of components are read.
inline bool hasIvfBookScan(
        const IvfLists& lists,
        idx_t rows,
        int nprobe,
        const DeviceTraits& device) {
    const ListDecoding& decoding = lists.decoding;
    if (lists.coding != ListCoding::Product ||
        lists.layout != ListLayout::Rows || decoding.partBits != 8 ||
        reinterpret_cast<uintptr_t>(decoding.codebook) % 16 != 0 ||
        reinterpret_cast<uintptr_t>(decoding.centroids) % 8 != 0 ||
        lists.d % canonical::kSlots != 0 || rows > idx_t(kMostBookRows) ||
        ivfBookSharedBytes(lists.d, uint32_t(nprobe)) + kIvfBoundedReserved >
                device.blockSharedBytes) {
        return false;
    }
    const int dims = lists.d / decoding.numParts;
    return dims == 2 || dims == 4 || dims == 8 || dims == 16;
}

/// Whether its estimates by tables do, whether it pays or not.
inline bool hasIvfBookTables(
        const IvfLists& lists,
        idx_t rows,
        int nprobe,
        int k,
        const DeviceTraits& device) {
    if (!hasIvfBookScan(lists, rows, nprobe, device) || k > kMostFloorK ||
        lists.d > kMostBookTableDims) {
        return false;
    }
    const int parts = lists.decoding.numParts;
    const size_t bytes = lists.d <= kMostHeldDims
            ? ivfHeldTableBytes(uint32_t(nprobe))
            : ivfBookTableBytes(lists.d, parts, uint32_t(nprobe));
    return bytes + kIvfBoundedReserved <= device.blockSharedBytes;
}

// Of tiles of product codes by tables (IvfTableScan.cuh), which a block has.
constexpr int kIvfTableQueries = 8;
constexpr int kIvfTableVectors = 512;
constexpr int kIvfTableThreads = 512;
/// Blocks of a multiprocessor, where their tables leave room.
constexpr int kIvfTableBlocks = 2;
/// Neighbours that the finish finds of the estimates of these.
constexpr int kMostTableK = 2048;
/// Vectors that the finish of so many has room for at a time: more than k. A
/// few numbers of neighbours have kernels.
constexpr int ivfBoundedRoom(int k) {
    return k <= kMostFinishedK ? 512 : k <= 512 ? 2048 : 4096;
}

/// Of a block: the tables, of two bytes a query, and what they are made of.
constexpr size_t ivfTableSharedBytes(const IvfLists& lists) {
    const size_t parts = size_t(lists.decoding.numParts);
    const size_t rows = size_t(1) << lists.decoding.partBits;
    const size_t components = size_t(lists.d) * sizeof(float);
    return parts * rows * kIvfTableQueries * sizeof(uint16_t) +
            (components + parts * sizeof(float)) * kIvfTableQueries;
}

/// Whether the scan by tables takes such lists: product codes of any layout and
/// number of bits, with parts of any length.
inline bool hasIvfTableScan(const IvfLists& lists, const DeviceTraits& device) {
    return lists.coding == ListCoding::Product && lists.d <= kMostSharedDims &&
            lists.decoding.numParts <= ivf_table::kMostParts &&
            ivfTableSharedBytes(lists) + kIvfBoundedReserved <=
            device.blockSharedBytes;
}

/// What entries that are sums of two terms have of a query or of a list:
/// numbers. And the lists that have terms, one for all where vectors are no
/// residuals; of inner products a list adds nothing.
constexpr size_t ivfTermsOf(const IvfLists& lists) {
    return size_t(lists.decoding.numParts) << lists.decoding.partBits;
}
constexpr idx_t ivfListsOfTerms(const IvfLists& lists) {
    return lists.decoding.centroids ? lists.numLists : 1;
}
/// Of lists, at most.
constexpr size_t kMostTermBytes = size_t(112) << 20;

/// Estimates of keys, of tiles of kIvfProductQueries and kIvfProductVectors;
/// after launchIvfDirectLists and, where there is no counter, launchIvfPairs.
/// Of lists that hasIvfProductScan().
template <Metric kMetric>
void launchIvfProductScan(
        const IvfDirectParams& params,
        int multiprocessors,
        cudaStream_t stream);

/// Keys of the vectors of each query's lists, and the columns, as
/// launchIvfDirectScan; of lists that hasIvfBookScan(). With bounds, which were
/// zeros, estimates as launchIvfCodeFloors, of lists that hasIvfBookTables().
template <Metric kMetric>
void launchIvfBookScan(
        const IvfDirectParams& params,
        int multiprocessors,
        cudaStream_t stream);

/// The same by tables, of tiles of kIvfTableQueries and kIvfTableVectors. Of
/// lists that hasIvfTableScan().
template <Metric kMetric>
void launchIvfTableScan(
        const IvfDirectParams& params,
        const DeviceTraits& device,
        cudaStream_t stream);

/// queryTerms and, of lists that any query probes, listTerms. After
/// launchIvfDirectLists, which makes turnedCodebook, and launchIvfPairs.
void launchIvfTableTerms(const IvfDirectParams& params, cudaStream_t stream);

/// The k nearest of each query, k <= kMostFinishedK, or kMostTableK, of
/// estimates of keys, which may be overwritten.
void launchIvfBoundedFinish(const IvfDirectParams& params, cudaStream_t stream);

} // namespace faiss_bits
