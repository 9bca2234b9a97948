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
    Count numOthers; // lists that are not as they were; or that do not fit
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

template <class Length>
struct LengthsParams {
    const Length* lengths;
    const Length* known; // as long as `lengths`, or nullptr
    idx_t numLists;
    const idx_t* probes;
    idx_t numQueries;
    int nprobe;
    Found* found;
    // Of a search that is enqueued before lengths are known.
    Count mostProbed;
    int32_t* safeLengths; // nullptr: there is none
    idx_t* safeProbes;
};

/// A warp takes a query at a time, and then its part of the lists.
template <class Length>
__global__ void __launch_bounds__(kThreads)
        listLengthsKernel(const LengthsParams<Length> p) {
    const int lane = threadIdx.x % kLanes;
    const idx_t thread = idx_t(blockIdx.x) * kThreads + threadIdx.x;
    const idx_t threads = idx_t(gridDim.x) * kThreads;
    const Length* const lengths = p.lengths;
    const idx_t* const probes = p.probes;
    const idx_t numLists = p.numLists;
    const idx_t numQueries = p.numQueries;
    const int nprobe = p.nprobe;
    Count others = 0;
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
        sum = sumOfWarp(sum);
        most = max(most, sum);
        if (p.safeLengths) {
            // Of no lists, as there is no room for what they have.
            const bool fits = sum <= p.mostProbed;
            others += !fits && lane == 0 ? 1 : 0;
            for (int probe = lane; probe < nprobe; probe += kLanes) {
                p.safeProbes[query * nprobe + probe] =
                        fits ? probes[query * nprobe + probe] : -1;
            }
        }
    }
    Count longest = 0;
    Count total = 0;
    for (idx_t list = thread; list < numLists; list += threads) {
        const Length length = lengths[list];
        longest = max(longest, Count(length));
        total += Count(length);
        if (p.safeLengths) {
            const Length known = p.known[list];
            p.safeLengths[list] = int32_t(min(length, known));
            others += length > known ? 1 : 0;
        } else if (p.known) {
            others += length != p.known[list] ? 1 : 0;
        }
    }
    __shared__ Found ofWarps[kWarps];
    longest = maxOfWarp(longest);
    total = sumOfWarp(total);
    others = sumOfWarp(others);
    if (lane == 0) {
        ofWarps[threadIdx.x / kLanes] = {most, longest, total, others};
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        Found all = {};
        for (const Found& one : ofWarps) {
            all.mostProbed = max(all.mostProbed, one.mostProbed);
            all.longest = max(all.longest, one.longest);
            all.total += one.total;
            all.numOthers += one.numOthers;
        }
        p.found[blockIdx.x] = all;
    }
}

/// Blocks for so much work.
unsigned blocksFor(idx_t numLists, idx_t numQueries) {
    const idx_t threads = std::max(numQueries * kLanes, numLists);
    return unsigned(std::clamp<idx_t>(
            (threads + kThreads - 1) / kThreads, 1, kMostBlocks));
}

void launch(
        const ListProbes& p,
        const void* known,
        unsigned blocks,
        Found* found,
        idx_t mostProbed,
        int32_t* safeLengths,
        idx_t* safeProbes,
        cudaStream_t stream) {
    const auto of = [&]<class Length>(const Length* lengths) {
        LengthsParams<Length> params;
        params.lengths = lengths;
        params.known = static_cast<const Length*>(known);
        params.numLists = p.lists.numLists;
        params.probes = p.probes;
        params.numQueries = p.numQueries;
        params.nprobe = p.nprobe;
        params.found = found;
        params.mostProbed = Count(mostProbed);
        params.safeLengths = safeLengths;
        params.safeProbes = safeProbes;
        listLengthsKernel<<<blocks, kThreads, 0, stream>>>(params);
    };
    p.lists.lengths64 ? of(static_cast<const int64_t*>(p.lists.lengths))
                      : of(static_cast<const int32_t*>(p.lists.lengths));
    BITS_CUDA_CHECK(cudaGetLastError());
}

unsigned blocksFor(const ListProbes& p) {
    return blocksFor(p.lists.numLists, p.numQueries);
}

ListLengths sumUp(const Found* ofBlocks, unsigned blocks) {
    ListLengths lengths;
    for (unsigned b = 0; b < blocks; ++b) {
        const Found& found = ofBlocks[b];
        lengths.mostProbed =
                std::max(lengths.mostProbed, idx_t(found.mostProbed));
        lengths.longest = std::max(lengths.longest, idx_t(found.longest));
        lengths.total += idx_t(found.total);
        lengths.numOthers += idx_t(found.numOthers);
    }
    return lengths;
}

} // namespace

ListLengths findListLengths(
        const ListProbes& p,
        const void* known,
        cudaStream_t stream) {
    const HostPiece piece;
    const unsigned blocks = blocksFor(p);
    launch(p, known, blocks, piece.onDevice(), 0, nullptr, nullptr, stream);
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    return sumUp(piece.onHost(), blocks);
}

struct ListGuard::Memory {
    HostPiece piece;
};

ListGuard::ListGuard(
        const ListProbes& p,
        const void* known,
        idx_t mostProbed,
        int32_t* safeLengths,
        idx_t* safeProbes,
        cudaStream_t stream)
        : memory_(new Memory), blocks_(blocksFor(p)), stream_(stream) {
    launch(p,
           known,
           blocks_,
           memory_->piece.onDevice(),
           mostProbed,
           safeLengths,
           safeProbes,
           stream);
}

ListGuard::~ListGuard() {
    if (!isRead_) {
        // The next one who gets the memory must not see what comes late.
        (void)cudaStreamSynchronize(stream_);
    }
}

ListLengths ListGuard::read() {
    isRead_ = true;
    return sumUp(memory_->piece.onHost(), blocks_);
}

} // namespace faiss_bits::dropin
