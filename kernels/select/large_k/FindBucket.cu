/// Between counting and partitioning: which bucket of a row holds the k-th
/// entry, and where each block of the row writes (Hanak 2023, 3.7.1, "Scan"
/// and "Select").

#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include "kernels/common/CudaCheck.h"
#include "kernels/select/large_k/BlockOps.cuh"
#include "kernels/select/large_k/FindBucket.h"

namespace faiss_bits {

namespace {

__global__ void __launch_bounds__(kMultiPassThreads)
        beginRowsKernel(const __grid_constant__ MultiPassParams p) {
    const uint32_t row = blockIdx.x * kMultiPassThreads + threadIdx.x;
    if (row < p.rows) {
        RowState state;
        state.lo = 0;
        state.hi = kLastEntry;
        state.count = p.select.cols;
        state.wanted = p.wanted;
        state.taken = 0;
        state.source = CandidateSource::Keys;
        state.sourceCount = p.select.cols;
        state.unused = 0;
        p.states[0][row] = state;
    }
}

struct FindBucket {
    using Reduce = cub::BlockReduce<uint32_t, kMultiPassThreads>;
    using Scan = cub::BlockScan<uint64_t, kMultiPassThreads>;

    struct SharedStorage {
        union {
            typename Reduce::TempStorage reduce;
            typename Scan::TempStorage scan;
        };
        uint32_t sum;
    };

    SharedStorage& shared;
    const MultiPassParams& p;
    const uint32_t buckets;
    const uint32_t splits; // that have counted
    const uint32_t* prefixes;

    /// Candidates in the buckets up to b.
    __device__ uint32_t upTo(uint32_t b) {
        uint32_t mine = 0;
        for (uint32_t s = threadIdx.x; s < splits; s += kMultiPassThreads) {
            mine += prefixes[uint64_t(s) * buckets + b];
        }
        const uint32_t sum = Reduce(shared.reduce).Sum(mine);
        if (threadIdx.x == 0) {
            shared.sum = sum;
        }
        __syncthreads();
        const uint32_t result = shared.sum;
        __syncthreads();
        return result;
    }

    /// The lowest bucket that brings the count to `wanted`.
    __device__ uint32_t holding(uint32_t wanted) {
        uint32_t low = 0;
        uint32_t high = buckets - 1;
        while (low < high) {
            const uint32_t middle = (low + high) / 2;
            if (upTo(middle) >= wanted) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        return low;
    }

    __device__ void writeOffsets(
            uint32_t row,
            uint32_t bucket,
            uint32_t taken) {
        uint64_t before = 0; // less in the upper half, same in the lower
        for (uint32_t at = 0; at < splits; at += kMultiPassThreads) {
            const uint32_t s = at + threadIdx.x;
            uint64_t mine = 0;
            if (s < splits) {
                const uint32_t* counts = prefixes + uint64_t(s) * buckets;
                const uint32_t less = bucket > 0 ? counts[bucket - 1] : 0;
                mine = (uint64_t(less) << 32) | (counts[bucket] - less);
            }
            uint64_t offset;
            uint64_t total;
            Scan(shared.scan).ExclusiveSum(mine, offset, total);
            __syncthreads();
            if (s < splits) {
                const uint64_t to = uint64_t(row) * p.splits + s;
                offset += before;
                p.lessOffsets[to] = taken + uint32_t(offset >> 32);
                p.sameOffsets[to] = uint32_t(offset);
            }
            before += total;
        }
    }
};

__device__ DigitRange
rangeOf(const MultiPassParams& p,
        bool bySplitters,
        uint32_t row,
        const RowState& state,
        uint32_t bucket) {
    if (!bySplitters) {
        return DigitRange{state.lo, state.hi}.of(bucket, p.select.cols - 1);
    }
    const uint64_t* splitters = p.splitters + uint64_t(row) * kSampleBuckets;
    DigitRange range{state.lo, state.hi};
    if (bucket > 0) {
        range.lo = splitters[bucket - 1];
    }
    if (bucket < kSampleBuckets - 1 && splitters[bucket] - 1 < range.hi) {
        range.hi = splitters[bucket] - 1;
    }
    return range;
}

/// One block a row.
__global__ void __launch_bounds__(kMultiPassThreads) findBucketKernel(
        const __grid_constant__ MultiPassParams p,
        bool bySplitters) {
    __shared__ FindBucket::SharedStorage shared;
    const uint32_t row = blockIdx.x;
    const RowState state = p.states[p.pass & 1][row];
    RowState next = state;
    if (state.count > kMultiPassBase) {
        const uint32_t buckets = bySplitters ? kSampleBuckets : kDigitBuckets;
        FindBucket find{
                shared,
                p,
                buckets,
                SplitRange::active(state.sourceCount, p.splits),
                p.prefixes + uint64_t(row) * p.splits * buckets};
        const uint32_t bucket = find.holding(state.wanted);
        const uint32_t less = bucket > 0 ? find.upTo(bucket - 1) : 0;
        next.count = find.upTo(bucket) - less;
        next.wanted -= less;
        next.taken += less;
        const DigitRange range = rangeOf(p, bySplitters, row, state, bucket);
        next.lo = range.lo;
        next.hi = range.hi;
        // Candidates move where they fit and where it saves reading.
        const bool fromKeys = state.source == CandidateSource::Keys;
        const bool toA = state.source != CandidateSource::BufferA;
        if (next.count <= p.capacities[toA ? 0 : 1] &&
            (fromKeys || next.count <= state.sourceCount / 2)) {
            next.source =
                    toA ? CandidateSource::BufferA : CandidateSource::BufferB;
            next.sourceCount = next.count;
        }
        find.writeOffsets(row, bucket, state.taken);
    }
    if (threadIdx.x == 0) {
        p.states[(p.pass + 1) & 1][row] = next;
    }
}

} // namespace

void launchBeginRows(const MultiPassParams& p, cudaStream_t stream) {
    const unsigned blocks =
            (p.rows + kMultiPassThreads - 1) / kMultiPassThreads;
    beginRowsKernel<<<blocks, kMultiPassThreads, 0, stream>>>(p);
    BITS_CUDA_CHECK(cudaGetLastError());
}

void launchFindBucket(
        const MultiPassParams& p,
        bool bySplitters,
        cudaStream_t stream) {
    findBucketKernel<<<p.rows, kMultiPassThreads, 0, stream>>>(p, bySplitters);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits
