#include "kernels/select/large_k/RadixSort.h"

#include <cub/device/device_radix_sort.cuh>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits {

// Per tile CUB keeps 1 KiB; its tiles hold at least 2560 keys of 64 bits on
// every architecture that we compile for. The rest are histograms.
size_t radixSortTempBytes(size_t items) {
    constexpr size_t kLeastTile = 2048;
    const size_t portions = items / (size_t(1) << 27) + 1;
    return (items / kLeastTile + 2) * 1024 + portions * 32 * 1024;
}

uint64_t* radixSort(
        uint64_t* keys,
        uint64_t* other,
        uint32_t items,
        int beginBit,
        int endBit,
        void* temp,
        size_t tempBytes,
        cudaStream_t stream) {
    cub::DoubleBuffer<uint64_t> buffers(keys, other);
    size_t needed = 0;
    BITS_CUDA_CHECK(cub::DeviceRadixSort::SortKeys(
            nullptr, needed, buffers, items, beginBit, endBit, stream));
    BITS_THROW_IF_NOT_FMT(
            needed <= tempBytes,
            "CUB needs %zu bytes to sort %u keys, expected at most %zu",
            needed,
            items,
            tempBytes);
    BITS_CUDA_CHECK(cub::DeviceRadixSort::SortKeys(
            temp, needed, buffers, items, beginBit, endBit, stream));
    return buffers.Current();
}

} // namespace faiss_bits
