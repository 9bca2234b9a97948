#include "research/benchs/FaissWarpQueues.h"

#include <faiss/gpu/utils/Limits.cuh>
#include <faiss/gpu/utils/Tensor.cuh>
#include <faiss/gpu/utils/WarpSelectKernel.cuh>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/Error.h"

namespace faiss_bits::bench {

namespace {

using gpu::ImplSize;
using Keys = faiss::gpu::Tensor<float, 2, true>;
using Ids = faiss::gpu::Tensor<ImplSize, 2, true>;

struct Kernel {
    int warpQueue, threadQueue;
    void (*launch)(Keys& in, Keys& out, Ids& ids, int k, cudaStream_t stream);
};

template <int WarpQueue, int ThreadQueue>
void launch(Keys& in, Keys& out, Ids& ids, int k, cudaStream_t stream) {
    constexpr int kThreads = 128; // as runWarpSelect: four rows a block
    constexpr int kRows = kThreads / 32;
    const auto blocks = unsigned((in.getSize(0) + kRows - 1) / kRows);
    faiss::gpu::
            warpSelect<float, ImplSize, false, WarpQueue, ThreadQueue, kThreads>
            <<<blocks, kThreads, 0, stream>>>(
                    in,
                    out,
                    ids,
                    faiss::gpu::Limits<float>::getMax(),
                    ImplSize(-1),
                    k);
}

template <int WarpQueue, int... ThreadQueues>
void add(std::vector<Kernel>& list) {
    (list.push_back({WarpQueue, ThreadQueues, launch<WarpQueue, ThreadQueues>}),
     ...);
}

const std::vector<Kernel>& kernels() {
    static const std::vector<Kernel> list = [] {
        std::vector<Kernel> all;
        add<32, 2, 3, 4, 6, 8, 10>(all);
        add<64, 2, 3, 4, 6, 8, 10>(all);
        add<128, 2, 3, 4, 6, 8, 10>(all);
        add<256, 2, 3, 4, 6, 8, 10>(all);
        add<512, 4, 6, 8, 10>(all);
        add<1024, 4, 6, 8>(all);
        add<2048, 4, 6, 8>(all);
        return all;
    }();
    return list;
}

/// The least warp queue that holds k.
int warpQueueOf(int k) {
    int size = 32;
    while (size < k) {
        size *= 2;
    }
    return size;
}

} // namespace

std::vector<int> faissThreadQueues(int k) {
    std::vector<int> sizes;
    for (const Kernel& kernel : kernels()) {
        if (kernel.warpQueue == warpQueueOf(k)) {
            sizes.push_back(kernel.threadQueue);
        }
    }
    return sizes;
}

void runFaissWarpSelectWith(
        int threadQueue,
        const float* keys,
        int64_t rows,
        int64_t cols,
        int k,
        float* outKeys,
        ImplSize* outIds,
        cudaStream_t stream) {
    Keys in(const_cast<float*>(keys), {ImplSize(rows), ImplSize(cols)});
    Keys out(outKeys, {ImplSize(rows), ImplSize(k)});
    Ids ids(outIds, {ImplSize(rows), ImplSize(k)});
    for (const Kernel& kernel : kernels()) {
        if (kernel.warpQueue == warpQueueOf(k) &&
            kernel.threadQueue == threadQueue) {
            kernel.launch(in, out, ids, k, stream);
            BITS_CUDA_CHECK(cudaGetLastError());
            return;
        }
    }
    throw Error(formatMessage(
            "no WarpSelect with thread queues of %d for k = %d is compiled",
            threadQueue,
            k));
}

} // namespace faiss_bits::bench
