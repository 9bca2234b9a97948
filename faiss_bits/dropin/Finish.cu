#include "faiss_bits/dropin/Finish.h"

#include <cfloat>

#include <algorithm>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits::dropin {

namespace {

constexpr int kThreads = 256;
constexpr int kLanes = 32;
constexpr idx_t kMaxBlocks = idx_t(1) << 20;

/// FAISS's queues start full of (worst, -1) and take only what is better.
struct Better {
    bool largest;

    __device__ float worst() const {
        return largest ? -FLT_MAX : FLT_MAX;
    }
    __device__ bool operator()(float key) const {
        return largest ? key > -FLT_MAX : key < FLT_MAX;
    }
};

/// One warp a row. The keys are sorted, so the last one tells whether any has
/// to go; places behind `filled` are empty already.
template <class Id>
__global__ void __launch_bounds__(kThreads) dropWorstKernel(
        float* keys,
        idx_t keyStride,
        Id* ids,
        idx_t idStride,
        idx_t rows,
        int filled,
        Better better) {
    const int lane = threadIdx.x % kLanes;
    const idx_t warps = idx_t(gridDim.x) * (kThreads / kLanes);
    for (idx_t row = (idx_t(blockIdx.x) * kThreads + threadIdx.x) / kLanes;
         row < rows;
         row += warps) {
        float* rowKeys = keys + row * keyStride;
        Id* rowIds = ids + row * idStride;
        if (better(rowKeys[filled - 1])) {
            continue;
        }
        __syncwarp();
        for (int place = lane; place < filled; place += kLanes) {
            if (!better(rowKeys[place])) {
                rowKeys[place] = better.worst();
                rowIds[place] = -1;
            }
        }
    }
}

template <class Id>
struct MoveParams {
    const float* keys;
    idx_t keyStride;
    const Id* ids;
    idx_t idStride;
    float* outKeys;
    idx_t outKeyStride;
    Id* outIds;
    idx_t outIdStride;
    idx_t rows;
    int k;
    Better better;
};

/// One thread a place.
template <class Id>
__global__ void __launch_bounds__(kThreads) moveKernel(MoveParams<Id> p) {
    const idx_t places = p.rows * p.k;
    for (idx_t i = idx_t(blockIdx.x) * kThreads + threadIdx.x; i < places;
         i += idx_t(gridDim.x) * kThreads) {
        const idx_t row = i / p.k;
        const idx_t place = i - row * p.k;
        float key = p.keys[row * p.keyStride + place];
        Id id = p.ids[row * p.idStride + place];
        if (!p.better(key)) {
            key = p.better.worst();
            id = -1;
        }
        p.outKeys[row * p.outKeyStride + place] = key;
        p.outIds[row * p.outIdStride + place] = id;
    }
}

unsigned blocksFor(idx_t threads) {
    return unsigned(std::min((threads + kThreads - 1) / kThreads, kMaxBlocks));
}

template <class Id>
void finish(const FinishProblem& problem, cudaStream_t stream) {
    const Request& r = problem.request;
    const Better better{r.largest};
    float* outKeys = static_cast<float*>(r.outKeys);
    Id* outIds = static_cast<Id*>(r.outIds);
    if (problem.keys != r.outKeys) {
        const MoveParams<Id> params{
                static_cast<const float*>(problem.keys),
                problem.keyStride,
                static_cast<const Id*>(problem.ids),
                problem.idStride,
                outKeys,
                r.outKeyStride,
                outIds,
                r.outIdStride,
                r.rows,
                r.k,
                better};
        moveKernel<<<blocksFor(r.rows * r.k), kThreads, 0, stream>>>(params);
    } else if (r.cols > 0) {
        dropWorstKernel<<<blocksFor(r.rows * kLanes), kThreads, 0, stream>>>(
                outKeys,
                r.outKeyStride,
                outIds,
                r.outIdStride,
                r.rows,
                int(std::min<idx_t>(r.k, r.cols)),
                better);
    }
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace

void runFinish(const FinishProblem& problem, cudaStream_t stream) {
    problem.request.idType == IdType::Int64 ? finish<int64_t>(problem, stream)
                                            : finish<int32_t>(problem, stream);
}

void dropWorst(Request results, cudaStream_t stream) {
    results.outKeyStride = results.outIdStride = results.k;
    runFinish(FinishProblem(results), stream);
}

void checkKernelsLoad() {
    cudaFuncAttributes attributes;
    BITS_CUDA_CHECK(
            cudaFuncGetAttributes(&attributes, dropWorstKernel<int64_t>));
}

} // namespace faiss_bits::dropin
