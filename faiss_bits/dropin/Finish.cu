#include "faiss_bits/dropin/Finish.h"

#include <cfloat>

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/device/Entry.cuh"

namespace faiss_bits::dropin {

namespace {

constexpr int kThreads = 256;
constexpr int kLanes = 32;
constexpr idx_t kMaxBlocks = idx_t(1) << 20;

/// FAISS's queues start full of (worst, -1) and take only what is better.
template <class Key>
struct Better {
    bool largest;

    __device__ static float limit() {
        return sizeof(Key) == 4 ? FLT_MAX : 65504.0f;
    }
    __device__ Key worst() const {
        return Key(largest ? -limit() : limit());
    }
    __device__ bool operator()(Key key) const {
        const float value = toFloat(key);
        return largest ? value > -limit() : value < limit();
    }
};

/// One warp a row. The keys are sorted, so the last one tells whether any has
/// to go; places behind `filled` are empty already.
template <class Key, class Id>
__global__ void __launch_bounds__(kThreads) dropWorstKernel(
        Key* keys,
        idx_t keyStride,
        Id* ids,
        idx_t idStride,
        idx_t rows,
        int filled,
        Better<Key> better) {
    const int lane = threadIdx.x % kLanes;
    const idx_t warps = idx_t(gridDim.x) * (kThreads / kLanes);
    for (idx_t row = (idx_t(blockIdx.x) * kThreads + threadIdx.x) / kLanes;
         row < rows;
         row += warps) {
        Key* rowKeys = keys + row * keyStride;
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

template <class Key, class Id>
struct MoveParams {
    const Key* keys;
    idx_t keyStride;
    const Id* ids;
    idx_t idStride;
    Key* outKeys;
    idx_t outKeyStride;
    Id* outIds;
    idx_t outIdStride;
    idx_t rows;
    int k;
    Better<Key> better;
};

/// One thread a place.
template <class Key, class Id>
__global__ void __launch_bounds__(kThreads) moveKernel(MoveParams<Key, Id> p) {
    const idx_t places = p.rows * p.k;
    for (idx_t i = idx_t(blockIdx.x) * kThreads + threadIdx.x; i < places;
         i += idx_t(gridDim.x) * kThreads) {
        const idx_t row = i / p.k;
        const idx_t place = i - row * p.k;
        Key key = p.keys[row * p.keyStride + place];
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

template <class Key, class Id>
void finish(const FinishProblem& problem, cudaStream_t stream) {
    const Request& r = problem.request;
    const Better<Key> better{r.largest};
    Key* outKeys = static_cast<Key*>(r.outKeys);
    Id* outIds = static_cast<Id*>(r.outIds);
    if (problem.keys != r.outKeys) {
        const MoveParams<Key, Id> params{
                static_cast<const Key*>(problem.keys),
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
    const bool isFloat = problem.request.keyType == DataType::Float32;
    if (problem.request.idType == IdType::Int64) {
        isFloat ? finish<float, int64_t>(problem, stream)
                : finish<__half, int64_t>(problem, stream);
    } else {
        isFloat ? finish<float, int32_t>(problem, stream)
                : finish<__half, int32_t>(problem, stream);
    }
}

void checkKernelsLoad() {
    cudaFuncAttributes attributes;
    BITS_CUDA_CHECK(cudaFuncGetAttributes(
            &attributes, dropWorstKernel<float, int64_t>));
}

} // namespace faiss_bits::dropin
