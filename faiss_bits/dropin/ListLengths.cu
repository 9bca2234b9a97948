#include "faiss_bits/dropin/ListLengths.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "faiss_bits/dropin/Device.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::dropin {

namespace {

constexpr int kThreads = 256;
constexpr int kLanes = 32;
constexpr int kWarps = kThreads / kLanes;
constexpr unsigned kAllLanes = 0xffffffff;
constexpr idx_t kMostBlocks = 128;

using Count = unsigned long long;

/// What one block has found.
struct Found {
    Count mostProbed;
    Count longest;
    Count total;
};

/// Host memory that kernels write: scratch, a memset and a copy would take time
/// where a search takes little. Pieces are kept for later calls, of any thread
/// and device.
class HostPiece {
   public:
    HostPiece() {
        const std::lock_guard<std::mutex> lock(mutex());
        if (kept().empty()) {
            const RelaxedCapture relaxed;
            void* memory = nullptr;
            BITS_CUDA_CHECK(cudaHostAlloc(
                    &memory,
                    kMostBlocks * sizeof(Found),
                    cudaHostAllocMapped | cudaHostAllocPortable));
            kept().push_back(static_cast<Found*>(memory));
        }
        memory_ = kept().back();
        kept().pop_back();
    }
    ~HostPiece() {
        const std::lock_guard<std::mutex> lock(mutex());
        kept().push_back(memory_);
    }
    HostPiece(const HostPiece&) = delete;
    HostPiece& operator=(const HostPiece&) = delete;

    const Found* onHost() const {
        return memory_;
    }
    Found* onDevice() const {
        void* memory = nullptr;
        BITS_CUDA_CHECK(cudaHostGetDevicePointer(&memory, memory_, 0));
        return static_cast<Found*>(memory);
    }

   private:
    // Never destroyed: the CUDA driver may be gone by then.
    static std::mutex& mutex() {
        static auto& one = *new std::mutex;
        return one;
    }
    static std::vector<Found*>& kept() {
        static auto& all = *new std::vector<Found*>;
        return all;
    }

    Found* memory_ = nullptr;
};

__device__ Count sumOfWarp(Count value) {
    for (int step = kLanes / 2; step > 0; step /= 2) {
        value += __shfl_xor_sync(kAllLanes, value, step);
    }
    return value;
}

__device__ Count maxOfWarp(Count value) {
    for (int step = kLanes / 2; step > 0; step /= 2) {
        value = max(value, __shfl_xor_sync(kAllLanes, value, step));
    }
    return value;
}

/// A warp takes a query at a time, and then its part of the lists.
template <class Length>
__global__ void __launch_bounds__(kThreads) listLengthsKernel(
        const Length* lengths,
        idx_t numLists,
        const idx_t* probes,
        idx_t numQueries,
        int nprobe,
        Found* found) {
    const int lane = threadIdx.x % kLanes;
    const idx_t thread = idx_t(blockIdx.x) * kThreads + threadIdx.x;
    const idx_t threads = idx_t(gridDim.x) * kThreads;
    Count most = 0;
    for (idx_t query = thread / kLanes; query < numQueries;
         query += threads / kLanes) {
        Count sum = 0;
        for (int probe = lane; probe < nprobe; probe += kLanes) {
            const idx_t list = probes[query * nprobe + probe];
            if (list >= 0 && list < numLists) {
                sum += Count(lengths[list]);
            }
        }
        most = max(most, sumOfWarp(sum));
    }
    Count longest = 0;
    Count total = 0;
    for (idx_t list = thread; list < numLists; list += threads) {
        longest = max(longest, Count(lengths[list]));
        total += Count(lengths[list]);
    }
    __shared__ Found ofWarps[kWarps];
    longest = maxOfWarp(longest);
    total = sumOfWarp(total);
    if (lane == 0) {
        ofWarps[threadIdx.x / kLanes] = {most, longest, total};
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        Found all = {};
        for (const Found& one : ofWarps) {
            all.mostProbed = max(all.mostProbed, one.mostProbed);
            all.longest = max(all.longest, one.longest);
            all.total += one.total;
        }
        found[blockIdx.x] = all;
    }
}

/// Blocks for so much work.
unsigned blocksFor(idx_t numLists, idx_t numQueries) {
    const idx_t threads = std::max(numQueries * kLanes, numLists);
    return unsigned(std::clamp<idx_t>(
            (threads + kThreads - 1) / kThreads, 1, kMostBlocks));
}

} // namespace

ListLengths findListLengths(
        const IvfLists& lists,
        const idx_t* probes,
        idx_t numQueries,
        int nprobe,
        cudaStream_t stream) {
    const HostPiece piece;
    const unsigned blocks = blocksFor(lists.numLists, numQueries);
    const auto launch = [&](const auto* lengths) {
        listLengthsKernel<<<blocks, kThreads, 0, stream>>>(
                lengths,
                lists.numLists,
                probes,
                numQueries,
                nprobe,
                piece.onDevice());
    };
    lists.lengths64 ? launch(static_cast<const int64_t*>(lists.lengths))
                    : launch(static_cast<const int32_t*>(lists.lengths));
    BITS_CUDA_CHECK(cudaGetLastError());
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    ListLengths lengths;
    for (unsigned b = 0; b < blocks; ++b) {
        const Found& found = piece.onHost()[b];
        lengths.mostProbed =
                std::max(lengths.mostProbed, idx_t(found.mostProbed));
        lengths.longest = std::max(lengths.longest, idx_t(found.longest));
        lengths.total += idx_t(found.total);
    }
    return lengths;
}

} // namespace faiss_bits::dropin
