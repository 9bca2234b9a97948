#include "kernels/survivors/ProvenLists.h"

#include "kernels/survivors/FinishRows.cuh"

namespace faiss_bits {

namespace {

/// Of a row; and where most rows have few entries, and there are many rows.
constexpr int kThreads = 512;
constexpr int kFewThreads = 64;
constexpr idx_t kFewEntries = 256;
constexpr uint32_t kFewStaged = 512;
constexpr unsigned kManyRows = 1024;

__device__ bool isComplete(const ProvenListsParams& params, uint32_t row) {
    const float complete = params.complete[row];
    if (isnan(complete)) {
        return true;
    }
    if (params.counts[row] > params.capacity) {
        return false;
    }
    if (isinf(complete)) {
        return complete > 0; // minus infinity: nothing is known
    }
    const size_t last =
            size_t(params.firstRow + row) * params.outStride + params.k - 1;
    const int64_t id = params.ids64
            ? static_cast<const int64_t*>(params.outIds)[last]
            : int64_t(static_cast<const int32_t*>(params.outIds)[last]);
    const float result = static_cast<const float*>(params.outKeys)[last];
    return id >= 0 && (params.outSignMask ? -result : result) <= complete;
}

/// Lists are what they are.
struct OnlyProof {
    using Params = ProvenListsParams;
    struct SharedStorage {};

    __device__ static bool isNeeded(const Params&, uint32_t) {
        return false;
    }
    __device__ static void run(SharedStorage&, const Params&, uint32_t) {}
};

template <int Threads, int Room>
__global__ void __launch_bounds__(Threads, 1024 / Threads)
        provenListsKernel(const __grid_constant__ ProvenListsParams params) {
    allowNext();
    waitForPrevious();
    using Body = FinishRowsBody<float, OnlyProof, Threads, Room>;
    extern __shared__ uint64_t memory[];
    auto& shared = *reinterpret_cast<typename Body::SharedStorage*>(memory);
    Body{shared, memory + Body::kStorageWords, params}.run(blockIdx.x);
    // Its k-th result may have been written by any thread of the block.
    __syncthreads();
    if (threadIdx.x == 0) {
        params.flags[2 * size_t(blockIdx.x)] = !isComplete(params, blockIdx.x);
        params.flags[2 * size_t(blockIdx.x) + 1] = 0;
    }
}

template <int Threads, int Room>
void launch(
        const ProvenListsParams& params,
        unsigned rows,
        cudaStream_t stream) {
    using Body = FinishRowsBody<float, OnlyProof, Threads, Room>;
    const auto kernel = provenListsKernel<Threads, Room>;
    auto p = params;
    const size_t wanted = Body::words(p.staged) * 8;
    const size_t bytes = allowSharedBytes(kernel, wanted);
    p.staged -= uint32_t(std::min<size_t>(p.staged, (wanted - bytes + 7) / 8));
    launchAfterPrevious(kernel, rows, Threads, bytes, stream, p);
}

} // namespace

void launchProvenLists(
        const ProvenListsParams& params,
        unsigned rows,
        idx_t usual,
        cudaStream_t stream) {
    if (usual > 0 && usual <= kFewEntries && rows >= kManyRows) {
        ProvenListsParams few = params;
        few.staged = std::min(few.staged, kFewStaged);
        const auto one = params.k <= 32 ? launch<kFewThreads, 64>
                                        : launch<kFewThreads, 256>;
        return one(few, rows, stream);
    }
    const auto one = params.k <= 32 ? launch<kThreads, 64>
            : params.k <= 512       ? launch<kThreads, 512>
            : params.k <= 1024      ? launch<kThreads, 1024>
                                    : launch<kThreads, 2048>;
    one(params, rows, stream);
}

} // namespace faiss_bits
