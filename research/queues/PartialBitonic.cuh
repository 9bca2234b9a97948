/// Partial bitonic sort with list and segment in registers (Hanak 2023, 3.5.1
/// and 4.1.1 to 4.1.5), with or without a buffer before the sort.
#pragma once

#include "kernels/common/CudaCheck.h"
#include "kernels/device/Bitonic.cuh"
#include "research/queues/PartialBitonicLaunch.h"
#include "research/queues/SortRow.cuh"

namespace faiss_bits {

struct PlainEntryLess {
    __device__ __forceinline__ bool operator()(uint64_t a, uint64_t b) const {
        return a < b;
    }
};

template <int Threads, int Items>
struct PartialBitonicBody {
    static constexpr int kSize = Threads * Items;
    static constexpr int kMaxReads = 8;
    using Sort = BlockBitonic<Threads, Items>;

    struct SharedStorage {
        typename Sort::SharedStorage sort;
        uint64_t buffer[kSize];
        uint64_t limit; // the k-th best so far
        int count;      // entries that asked for a place in the buffer
    };

    const PartialBitonicParams& p;
    SharedStorage& shared;
    const SortRow source{p};

    uint64_t list[Items]; // ascending; item i of a thread is thread * Items + i
    uint64_t read[kMaxReads];
    unsigned waiting = 0; // bit i: read[i] has found no place yet
    bool retry = false;   // of all threads: the last scan filled the buffer
    idx_t next = 0;

    __device__ void run() {
        next = source.begin;
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            list[i] = kNoEntry;
        }
        if (p.buffered) {
            runBuffered();
        } else {
            for (; next < source.end; next += kSize) {
                uint64_t segment[Items];
                source.load(next + threadIdx.x, Threads, segment);
                merge(segment);
            }
        }
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            const int place = threadIdx.x * Items + i;
            if (place < p.select.k) {
                source.write(place, list[i]);
            }
        }
    }

   private:
    /// Sorts a segment and keeps the better half of both.
    __device__ __forceinline__ void merge(uint64_t (&segment)[Items]) {
        Sort sort{shared.sort};
        sort.sort(segment, false, PlainEntryLess{});
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            list[i] = min(list[i], segment[i]);
        }
        sort.sortBitonic(list, true, PlainEntryLess{});
    }

    __device__ void runBuffered() {
        if (threadIdx.x == 0) {
            shared.count = 0;
            shared.limit = kNoEntry;
        }
        __syncthreads();
        for (bool full = true; full;) {
            // One scan a number of reads, one merge for them all.
            switch (p.readsPerThread) {
                case 1:
                    full = fillBuffer<1>();
                    break;
                case 2:
                    full = fillBuffer<2>();
                    break;
                case 4:
                    full = fillBuffer<4>();
                    break;
                default:
                    full = fillBuffer<8>();
            }
            mergeBuffer();
        }
    }

    /// Scans until the buffer is full, or to the end: false. In step; every
    /// thread sees the whole buffer on return.
    template <int Reads>
    __device__ __forceinline__ bool fillBuffer() {
        const uint64_t limit = shared.limit;
        for (;;) {
            // A thread whose reads all found a place waits for the others, so
            // that `next` stays the same for all.
            if (!retry) {
                load<Reads>();
            }
            bool filled = false;
#pragma unroll
            for (int i = 0; i < Reads; ++i) {
                if (!((waiting >> i) & 1)) {
                    continue;
                }
                if (read[i] < limit) {
                    const int place = atomicAdd(&shared.count, 1);
                    filled |= place >= kSize - 1;
                    if (place >= kSize) {
                        continue;
                    }
                    shared.buffer[place] = read[i];
                }
                waiting &= ~(1u << i);
            }
            retry = __syncthreads_or(filled);
            if (retry) {
                return true;
            }
            if (next >= source.end) {
                return false;
            }
        }
    }

    template <int Reads>
    __device__ __forceinline__ void load() {
        uint64_t now[Reads];
        source.load(next + threadIdx.x, Threads, now);
#pragma unroll
        for (int i = 0; i < Reads; ++i) {
            read[i] = now[i];
        }
        waiting = (1u << Reads) - 1;
        next += Reads * Threads;
        if (p.prefetch) {
            source.template prefetch<Reads>(next + threadIdx.x, Threads);
        }
    }

    __device__ __forceinline__ void mergeBuffer() {
        const int count = shared.count;
        uint64_t segment[Items];
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            const int place = i * Threads + threadIdx.x;
            segment[i] = place < count ? shared.buffer[place] : kNoEntry;
        }
        merge(segment);
        const int kth = p.select.k - 1;
        // The sort may have had no barrier of its own: before the count is
        // set, everyone must have read it.
        __syncthreads();
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            if (threadIdx.x * Items + i == kth) {
                shared.limit = list[i];
            }
        }
        if (threadIdx.x == 0) {
            shared.count = 0;
        }
        __syncthreads();
    }
};

/// Enough registers for all sizes; without it the compiler spills some.
constexpr int bitonicBlocks(int threads) {
    return threads == 128 ? 4 : 2;
}

template <int Threads, int Items>
__global__ void __launch_bounds__(Threads, bitonicBlocks(Threads))
        partialBitonicKernel(const __grid_constant__ PartialBitonicParams p) {
    using Body = PartialBitonicBody<Threads, Items>;
    __shared__ typename Body::SharedStorage shared;
    Body{p, shared}.run();
}

template <int Threads, int Items>
void launchPartialBitonic(
        const PartialBitonicParams& params,
        unsigned blocks,
        cudaStream_t stream) {
    partialBitonicKernel<Threads, Items>
            <<<blocks, Threads, 0, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits
