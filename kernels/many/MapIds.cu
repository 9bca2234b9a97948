#include "kernels/many/MapIds.h"

#include <algorithm>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;

__global__ void mapIdsKernel(
        const IdSegment* segments,
        idx_t numSegments,
        idx_t* ids,
        idx_t count) {
    const idx_t step = idx_t(gridDim.x) * kThreads;
    for (idx_t i = idx_t(blockIdx.x) * kThreads + threadIdx.x; i < count;
         i += step) {
        const idx_t id = ids[i];
        if (id < 0) {
            continue;
        }
        // The last segment that does not begin behind it.
        idx_t low = 0;
        idx_t high = numSegments;
        while (high - low > 1) {
            const idx_t middle = low + (high - low) / 2;
            if (segments[middle].inPart <= id) {
                low = middle;
            } else {
                high = middle;
            }
        }
        ids[i] = segments[low].inWhole + (id - segments[low].inPart);
    }
}

} // namespace

void runMapIds(
        const IdSegment* segments,
        idx_t numSegments,
        idx_t* ids,
        idx_t count,
        cudaStream_t stream) {
    BITS_THROW_IF_NOT_FMT(
            count >= 0, "count = %lld is negative", (long long)count);
    if (count == 0) {
        return;
    }
    BITS_THROW_IF_NOT_FMT(
            numSegments >= 1,
            "numSegments = %lld is below 1",
            (long long)numSegments);
    BITS_THROW_IF_NOT_FMT(segments, "segments = nullptr");
    BITS_THROW_IF_NOT_FMT(ids, "ids = nullptr");
    constexpr idx_t kMostBlocks = 1 << 14;
    const idx_t blocks =
            std::min<idx_t>((count + kThreads - 1) / kThreads, kMostBlocks);
    mapIdsKernel<<<unsigned(blocks), kThreads, 0, stream>>>(
            segments, numSegments, ids, count);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits
