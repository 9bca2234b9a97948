/// The same keys as DirectScan.cuh of several queries, by metrics of products:
/// eight lanes a pair, a slot each. A lane has four vectors, so that it reads a
/// query's component once for four, and converts a vector's once for all
/// queries. Of cosines the vectors' own sums are made once, and the queries'
/// once a block. Any layout of rows: lanes side by side read components side by
/// side.
///
/// Bound by: the sums in float64; of float32 vectors and up to four queries the
/// read of the vectors.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/device/WarpReduce.cuh"
#include "kernels/knn/certified/JoinSlots.cuh"
#include "kernels/knn/direct/DirectVector.cuh"

namespace faiss_bits {

/// Of a block, at most: two blocks have registers for the sums of so many
/// queries.
constexpr int directProductThreads(int queries) {
    return queries > 4 ? 192 : 256;
}

/// Vectors of a lane, and of a warp at a time.
constexpr int kDirectLaneVectors = 4;
constexpr int kDirectWarpVectors =
        kDirectLaneVectors * (kWarpSize / kPairLanes);
static_assert(kDirectUnit % kDirectWarpVectors == 0);

/// A warp at work. `queries` is shared memory.
template <Metric kMetric, int kQueries, class T>
class DirectProducts {
    static_assert(kMetric == Metric::InnerProduct || kMetric == Metric::Cosine);
    static constexpr bool kIsCosine = kMetric == Metric::Cosine;
    using Terms = canonical::Terms<kMetric>;
    static constexpr int kVectors = kDirectLaneVectors;
    static constexpr int kSums = kQueries * kVectors;
    /// That a lane has of the joined ones: of one query.
    static constexpr int kKept = kSums / kPairLanes;
    static_assert(kKept == 2 || kKept == 4);
    static constexpr int kSteps = kDirectProductStep / kPairLanes;

   public:
    __device__ DirectProducts(
            const DirectScanParams& params,
            const double* queries,
            const double* squares,
            uint32_t firstRow)
            : params_(params.search),
              out_(params.out),
              queries_(queries),
              squares_(squares),
              firstRow_(firstRow) {}

    /// The keys of a group and its least, by a warp. Returns this lane's share
    /// of the number of vectors.
    __device__ __forceinline__ uint32_t run(uint32_t group) const {
        const uint32_t row = firstRow_ + query();
        const uint32_t width = kDirectUnit << out_.logUnits;
        uint64_t least = kNoEntry;
        uint32_t present = 0;
        for (uint32_t at = 0; at < width; at += kDirectWarpVectors) {
            present += runVectors(group * width + at, row, least);
        }
        if (!out_.least) {
            return present;
        }
        // Over the lanes that have vectors of the same query.
        least = leastWith(least, 16);
        least = leastWith(least, 8);
        if constexpr (kKept < kVectors) {
            least = leastWith(least, 1);
        }
        const bool isFirst = threadIdx.x % kWarpSize < kPairLanes &&
                lane() * kKept % kVectors == 0;
        if (isFirst && row < params_.rows) {
            out_.least[int64_t(row) * out_.groups + group] = least;
        }
        return present;
    }

   private:
    /// Of the eight that share a pair.
    __device__ __forceinline__ static int lane() {
        return threadIdx.x % kPairLanes;
    }

    /// Of which this lane has joined sums.
    __device__ __forceinline__ static int query() {
        return lane() * kKept / kVectors;
    }

    __device__ __forceinline__ static uint64_t leastWith(
            uint64_t entry,
            int lanes) {
        return min(entry, __shfl_xor_sync(kFullWarp, entry, lanes));
    }

    /// Those of kDirectWarpVectors places.
    __device__ __forceinline__ uint32_t
    runVectors(uint32_t first, uint32_t row, uint64_t& least) const {
        const uint32_t place =
                first + threadIdx.x % kWarpSize / kPairLanes * kVectors;
        int32_t vectors[kVectors];
#pragma unroll
        for (int v = 0; v < kVectors; ++v) {
            vectors[v] = directVector(params_, out_, place + v);
        }
        double sums[kSums] = {};
        double squares[kVectors] = {};
        addAll(vectors, sums, squares);
        join<kPairLanes / 2>(sums);
        if constexpr (kIsCosine) {
#pragma unroll
            for (int v = 0; v < kVectors; ++v) {
                double joined[1] = {squares[v]};
                joinSlots<canonical::Terms<Metric::InnerProduct>>(joined);
                squares[v] = joined[0];
            }
        }
        // Selected by constants: an index would need memory.
        const bool isUpper = kKept < kVectors && lane() % 2 == 1;
        uint32_t keys[kKept];
        uint32_t present = 0;
#pragma unroll
        for (int i = 0; i < kKept; ++i) {
            const int upper = kVectors - kKept + i;
            const int32_t vector = isUpper ? vectors[upper] : vectors[i];
            const double square = isUpper ? squares[upper] : squares[i];
            const uint64_t entry = vector >= 0
                    ? distanceEntry<kMetric>(
                              distanceOf(sums[i], square), uint32_t(vector))
                    : kNoEntry;
            keys[i] = entryKey(entry);
            least = min(least, entry);
            present += vector >= 0 && row < params_.rows;
        }
        if (row < params_.rows) {
            uint32_t* to = out_.keys + int64_t(row) * out_.stride + place +
                    (isUpper ? kVectors - kKept : 0);
            if constexpr (kKept == 4) {
                *reinterpret_cast<uint4*>(to) =
                        make_uint4(keys[0], keys[1], keys[2], keys[3]);
            } else {
                *reinterpret_cast<uint2*>(to) = make_uint2(keys[0], keys[1]);
            }
        }
        return present;
    }

    __device__ __forceinline__ double distanceOf(double sum, double square)
            const {
        if constexpr (kIsCosine) {
            const double all[] = {sum, square, squares_[query()]};
            return Terms::finish(all);
        } else {
            return sum;
        }
    }

    /// This lane's slot of all sums. The components of the next steps come
    /// meanwhile.
    __device__ __forceinline__ void addAll(
            const int32_t (&vectors)[kVectors],
            double (&sums)[kSums],
            double (&squares)[kVectors]) const {
        const int d = params_.d;
        // What is not there, or not allowed, has components of another.
        const T* rows[kVectors];
#pragma unroll
        for (int v = 0; v < kVectors; ++v) {
            rows[v] = static_cast<const T*>(params_.vectors.data) +
                    int64_t(max(vectors[v], 0)) * params_.vectors.rowStride +
                    lane();
        }
        T next[kSteps][kVectors];
        const auto load = [&](int begin, int step) {
            // No branch: beyond the last component it comes again.
            const int c = min(begin + step * kPairLanes, d - 1 - lane());
#pragma unroll
            for (int v = 0; v < kVectors; ++v) {
                next[step][v] = rows[v][c];
            }
        };
#pragma unroll
        for (int s = 0; s < kSteps; ++s) {
            load(0, s);
        }
        int begin = 0;
        // More of it at a time takes more registers than there are.
#pragma unroll 1
        for (; begin + kDirectProductStep <= d; begin += kDirectProductStep) {
#pragma unroll
            for (int s = 0; s < kSteps; ++s) {
                double x[kVectors];
#pragma unroll
                for (int v = 0; v < kVectors; ++v) {
                    x[v] = double(toFloat(next[s][v]));
                }
                load(begin + kDirectProductStep, s);
                addStep(x, begin + s * kPairLanes + lane(), sums, squares);
            }
        }
        // Components beyond d are zeros, which no sum notices.
#pragma unroll
        for (int s = 0; s < kSteps; ++s) {
            const int c = begin + s * kPairLanes;
            if (c < d) {
                double x[kVectors];
#pragma unroll
                for (int v = 0; v < kVectors; ++v) {
                    x[v] = c + lane() < d ? double(toFloat(next[s][v])) : 0.0;
                }
                addStep(x, c + lane(), sums, squares);
            }
        }
    }

    __device__ __forceinline__ void addStep(
            const double (&x)[kVectors],
            int c,
            double (&sums)[kSums],
            double (&squares)[kVectors]) const {
        const int padded = directProductPadded(params_.d);
        if constexpr (kIsCosine) {
#pragma unroll
            for (int v = 0; v < kVectors; ++v) {
                squares[v] = canonical::addProduct(squares[v], x[v], x[v]);
            }
        }
#pragma unroll
        for (int q = 0; q < kQueries; ++q) {
            const double y = queries_[q * padded + c];
#pragma unroll
            for (int v = 0; v < kVectors; ++v) {
                double& sum = sums[q * kVectors + v];
                sum = canonical::addProduct(sum, x[v], y);
            }
        }
    }

    /// Joins the slots as joinSlots() does; each lane hands half of the sums to
    /// its partner, so that lane i has the sums i kKept .. i kKept + kKept - 1.
    template <int kLanes>
    __device__ __forceinline__ static void join(double (&sums)[kSums]) {
        constexpr int kHalf = kKept * kLanes;
        const bool isUpper = lane() & kLanes;
#pragma unroll
        for (int i = 0; i < kHalf; ++i) {
            const double given = isUpper ? sums[i] : sums[i + kHalf];
            const double own = isUpper ? sums[i + kHalf] : sums[i];
            sums[i] =
                    Terms::join(own, __shfl_xor_sync(kFullWarp, given, kLanes));
        }
        if constexpr (kLanes > 1) {
            join<kLanes / 2>(sums);
        }
    }

    const CertifiedParams& params_;
    const DirectKeys& out_;
    const double* queries_; // [kQueries, directProductPadded(d)]
    const double* squares_; // [kQueries], of cosines
    const uint32_t firstRow_;
};

/// A warp a group (y), kQueries queries a block (x): blocks that read the same
/// vectors run side by side.
template <Metric kMetric, int kQueries, class T>
__global__ __launch_bounds__(
        directProductThreads(kQueries),
        2) void directProductsKernel(const __grid_constant__ DirectScanParams
                                             params) {
    __shared__ double squares[kQueries];
    // [kQueries, directProductPadded(d)]
    extern __shared__ __align__(16) double queries[];
    allowNext();
    waitForPrevious();
    const CertifiedParams& search = params.search;
    const uint32_t firstRow = blockIdx.x * kQueries;
    const int rows = int(min(uint32_t(kQueries), search.rows - firstRow));
    const int padded = directProductPadded(search.d);
    for (int c = threadIdx.x; c < padded; c += blockDim.x) {
        float values[kQueries];
#pragma unroll
        for (int q = 0; q < kQueries; ++q) {
            values[q] = q < rows && c < search.d
                    ? search.queries[int64_t(firstRow + q) * search.d + c]
                    : 0.0f;
        }
#pragma unroll
        for (int q = 0; q < kQueries; ++q) {
            queries[q * padded + c] = values[q];
        }
    }
    __syncthreads();
    const int warps = int(blockDim.x) / kWarpSize;
    const int warp = int(threadIdx.x) / kWarpSize;
    if constexpr (kMetric == Metric::Cosine) {
        constexpr int kAtOnce = kWarpSize / kPairLanes;
        static_assert(kQueries % kAtOnce == 0);
        for (int first = warp * kAtOnce; first < kQueries;
             first += warps * kAtOnce) {
            const int q = first + threadIdx.x % kWarpSize / kPairLanes;
            double sum[1] = {};
            for (int c = threadIdx.x % kPairLanes; c < search.d;
                 c += kPairLanes) {
                const double y = queries[q * padded + c];
                sum[0] = canonical::addProduct(sum[0], y, y);
            }
            joinSlots<canonical::Terms<Metric::InnerProduct>>(sum);
            if (threadIdx.x % kPairLanes == 0) {
                squares[q] = sum[0];
            }
        }
        __syncthreads();
    }
    const DirectProducts<kMetric, kQueries, T> products(
            params, queries, squares, firstRow);
    uint32_t scored = 0;
    for (uint32_t group = warp * gridDim.y + blockIdx.y;
         group < params.out.groups;
         group += warps * gridDim.y) {
        scored += products.run(group);
    }
    if (search.numRescored) {
        scored = __reduce_add_sync(kFullWarp, scored);
        if (threadIdx.x % kWarpSize == 0 && scored > 0) {
            atomicAdd(search.numRescored, (unsigned long long)scored);
        }
    }
}

} // namespace faiss_bits
