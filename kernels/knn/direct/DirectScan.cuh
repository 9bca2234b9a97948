/// Canonical distances of all pairs of a few queries and some vectors.
#pragma once

#include "kernels/device/WarpReduce.cuh"
#include "kernels/knn/certified/CanonicalPair.cuh"
#include "kernels/knn/direct/DirectParams.h"

namespace faiss_bits {

/// Eight lanes, one for each slot of the sums, have eight vectors at a time:
/// each ends with the distance of one of them.
template <Metric kMetric, int kQueries, class T>
class DirectScan {
    using Terms = canonical::Terms<kMetric>;
    static constexpr int kSums = Terms::kSums;
    static constexpr int kVectors = kPairLanes;          // of a group of lanes
    static constexpr int kAhead = kQueries == 1 ? 4 : 2; // loads of a vector

   public:
    /// Components of a query in shared memory, with zeros behind.
    static constexpr int kStep = kPairLanes * 4;
    BITS_HOST_DEVICE static int paddedDims(int d) {
        return (d + kStep - 1) / kStep * kStep;
    }

    __device__ DirectScan(
            const DirectScanParams& params,
            const double* queries,
            uint32_t firstRow)
            : params_(params.search),
              out_(params.out),
              vectors_(static_cast<const T*>(params.search.vectors.data)),
              queries_(queries),
              firstRow_(firstRow) {}

    /// The keys of a group and its least, by a warp. Returns the number of
    /// vectors.
    __device__ __forceinline__ uint32_t run(uint32_t group) const {
        uint64_t least[kQueries];
#pragma unroll
        for (int q = 0; q < kQueries; ++q) {
            least[q] = kNoEntry;
        }
        uint32_t present = 0;
        const uint32_t units = 1u << out_.logUnits;
        for (uint32_t u = 0; u < units; ++u) {
            const int64_t place =
                    ((int64_t(group) << out_.logUnits) + u) * kDirectUnit;
            present += runUnit(place, least);
        }
#pragma unroll
        for (int q = 0; q < kQueries; ++q) {
            least[q] = leastOfWarp(least[q]);
            if (threadIdx.x % kWarpSize == 0 && firstRow_ + q < params_.rows) {
                out_.least[int64_t(firstRow_ + q) * out_.groups + group] =
                        least[q];
            }
        }
        return present;
    }

   private:
    /// The vector at a place; -1 if there is none, or it is not allowed.
    __device__ __forceinline__ int32_t vectorAt(int64_t place) const {
        if (place >= out_.places) {
            return -1;
        }
        const int32_t vector = out_.ids ? out_.ids[place] : int32_t(place);
        const bool allowed = vector >= 0 &&
                (!params_.allowedBits || out_.ids ||
                 (params_.allowedBits[vector / 32] >> (vector % 32) & 1));
        return allowed ? vector : -1;
    }

    __device__ __forceinline__ uint32_t
    runUnit(int64_t first, uint64_t (&least)[kQueries]) const {
        const int lane = threadIdx.x % kWarpSize;
        const int32_t vector = vectorAt(first + lane);
        const unsigned all = __ballot_sync(kFullWarp, vector >= 0);
        double sums[kSums][kQueries][kVectors] = {};
        if (all) {
            addTerms(vector, sums);
            addUp(sums);
        }
#pragma unroll
        for (int q = 0; q < kQueries; ++q) {
            double joined[kSums];
#pragma unroll
            for (int j = 0; j < kSums; ++j) {
                joined[j] = sums[j][q][0];
            }
            const uint64_t entry = vector >= 0
                    ? distanceEntry<kMetric>(
                              Terms::finish(joined), uint32_t(vector))
                    : kNoEntry;
            least[q] = min(least[q], entry);
            if (firstRow_ + q < params_.rows) {
                out_.keys[int64_t(firstRow_ + q) * out_.stride + first + lane] =
                        entryKey(entry);
            }
        }
        return __popc(all);
    }

    /// The terms of this lane's slot for the vectors of its group, of which
    /// each lane knows one.
    __device__ __forceinline__ void addTerms(
            int32_t vector,
            double (&sums)[kSums][kQueries][kVectors]) const {
        const T* x[kVectors];
        bool any[kVectors];
#pragma unroll
        for (int i = 0; i < kVectors; ++i) {
            const int32_t v = __shfl_sync(kFullWarp, vector, i, kPairLanes);
            any[i] = v >= 0;
            x[i] = vectors_ +
                    int64_t(any[i] ? v : 0) * params_.vectors.rowStride;
        }
        const int d = params_.d;
        const int padded = paddedDims(d);
        const int slot = threadIdx.x % kPairLanes;
        for (int begin = 0; begin < d; begin += kPairLanes * kAhead) {
            float xs[kAhead][kVectors];
#pragma unroll
            for (int a = 0; a < kAhead; ++a) {
                const int c = begin + a * kPairLanes + slot;
#pragma unroll
                for (int i = 0; i < kVectors; ++i) {
                    xs[a][i] = c < d && any[i] ? toFloat(x[i][c]) : 0.0f;
                }
            }
#pragma unroll
            for (int a = 0; a < kAhead; ++a) {
                const int c = begin + a * kPairLanes;
                if (c >= d) {
                    break;
                }
                double query[kQueries];
#pragma unroll
                for (int q = 0; q < kQueries; ++q) {
                    query[q] = queries_[q * padded + c + slot];
                }
                // Components beyond d are zeros, which no sum notices.
#pragma unroll
                for (int i = 0; i < kVectors; ++i) {
                    const double value = xs[a][i];
#pragma unroll
                    for (int q = 0; q < kQueries; ++q) {
                        double slots[kSums];
#pragma unroll
                        for (int j = 0; j < kSums; ++j) {
                            slots[j] = sums[j][q][i];
                        }
                        Terms::add(slots, value, query[q], canonical::Power{});
#pragma unroll
                        for (int j = 0; j < kSums; ++j) {
                            sums[j][q][i] = slots[j];
                        }
                    }
                }
            }
        }
    }

    /// Slots 0 and 4, then 2 and 6 to them, then the odd ones: at each step a
    /// lane hands half of its vectors to its partner. What is left, the first,
    /// is of the vector that the lane knew.
    __device__ __forceinline__ static void addUp(
            double (&sums)[kSums][kQueries][kVectors]) {
#pragma unroll
        for (int half = kVectors / 2; half >= 1; half /= 2) {
            const bool upper = threadIdx.x & half;
#pragma unroll
            for (int j = 0; j < kSums; ++j) {
#pragma unroll
                for (int q = 0; q < kQueries; ++q) {
#pragma unroll
                    for (int i = 0; i < half; ++i) {
                        double& low = sums[j][q][i];
                        const double high = sums[j][q][i + half];
                        const double other = __shfl_xor_sync(
                                kFullWarp, upper ? low : high, half);
                        low = Terms::join(upper ? high : low, other);
                    }
                }
            }
        }
    }

    const CertifiedParams& params_;
    const DirectKeys& out_;
    const T* vectors_;
    const double* queries_; // [kQueries, paddedDims(d)] in shared memory
    const uint32_t firstRow_;
};

/// A warp a group; kQueries queries a block (y).
template <Metric kMetric, int kQueries, class T>
__global__ __launch_bounds__(128) void directScanKernel(
        const __grid_constant__ DirectScanParams params) {
    using Scan = DirectScan<kMetric, kQueries, T>;
    extern __shared__ double queries[];
    allowNext();
    waitForPrevious();
    const CertifiedParams& search = params.search;
    const uint32_t firstRow = blockIdx.y * kQueries;
    const int padded = Scan::paddedDims(search.d);
    for (int i = threadIdx.x; i < kQueries * padded; i += blockDim.x) {
        const uint32_t row = firstRow + i / padded;
        const int c = i % padded;
        queries[i] = row < search.rows && c < search.d
                ? double(search.queries[int64_t(row) * search.d + c])
                : 0.0;
    }
    __syncthreads();
    const uint32_t warps = blockDim.x / kWarpSize;
    const Scan scan(params, queries, firstRow);
    uint32_t scored = 0;
    for (uint32_t group = blockIdx.x * warps + threadIdx.x / kWarpSize;
         group < params.out.groups;
         group += gridDim.x * warps) {
        scored += scan.run(group);
    }
    if (search.numRescored && threadIdx.x % kWarpSize == 0 && scored > 0) {
        const uint32_t rows = min(uint32_t(kQueries), search.rows - firstRow);
        atomicAdd(search.numRescored, (unsigned long long)scored * rows);
    }
}

} // namespace faiss_bits
