#include "kernels/knn/nearest/NearestOfStrips.h"

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/Error.h"
#include "kernels/knn/certified/RowBound.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;

/// Of the eight lanes of a group.
__device__ __forceinline__ float greatestOfGroup(float value) {
#pragma unroll
    for (int distance = kPairLanes / 2; distance >= 1; distance /= 2) {
        value = fmaxf(value, __shfl_xor_sync(kFullWarp, value, distance));
    }
    return value;
}

/// At most so large is the value that was numbered in its last bits.
__device__ __forceinline__ double mostOf(float value) {
    return double(value) + fabs(double(value)) * kNearestValueError + 0x1p-146;
}

/// pairDistance of several row-major vectors and one query.
template <Metric kMetric, int kCount, class T>
__device__ __forceinline__ void pairDistances(
        const T* const (&x)[kCount],
        const float* q,
        int d,
        double (&out)[kCount]) {
    using Terms = canonical::Terms<kMetric>;
    constexpr int kAhead = 4; // loads in flight, of each
    const int lane = threadIdx.x % kPairLanes;
    double sums[kCount][Terms::kSums] = {};
    for (int begin = lane; begin < d; begin += kPairLanes * kAhead) {
        float xs[kCount][kAhead];
        float qs[kAhead];
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            const int c = begin + i * kPairLanes;
            qs[i] = c < d ? q[c] : 0.0f;
#pragma unroll
            for (int v = 0; v < kCount; ++v) {
                xs[v][i] = c < d ? toFloat(x[v][c]) : 0.0f;
            }
        }
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            const double component = qs[i];
#pragma unroll
            for (int v = 0; v < kCount; ++v) {
                Terms::add(
                        sums[v],
                        double(xs[v][i]),
                        component,
                        canonical::Power{});
            }
        }
    }
#pragma unroll
    for (int v = 0; v < kCount; ++v) {
#pragma unroll
        for (int j = 0; j < Terms::kSums; ++j) {
#pragma unroll
            for (int distance = kPairLanes / 2; distance >= 1; distance /= 2) {
                const double other =
                        __shfl_xor_sync(kFullWarp, sums[v][j], distance);
                sums[v][j] = Terms::join(sums[v][j], other);
            }
        }
        out[v] = Terms::finish(sums[v]);
    }
}

/// Eight lanes a query.
template <Metric kMetric>
class NearestOfRow {
   public:
    __device__ NearestOfRow(const NearestParams& params, uint32_t row)
            : params_(params.search),
              strips_(params.nearest),
              rows_(params.rows),
              row_(row),
              present_(row < params.search.rows) {}

    /// All lanes of the warp call it. Returns the number of distances.
    __device__ __forceinline__ uint32_t run() {
        const RowBound<kMetric> bound =
                imageBound<kMetric>(params_, present_ ? row_ : 0);
        const uint32_t first = findFirst();
        uint64_t best = kNoEntry;
        uint32_t scored = 0;
        scoreFour(first, best, scored);
        // What has a value below `least` is farther than the best.
        const double key = keyValue(entryKey(best));
        const double limit = bound.limitOf(key);
        const double norm = kMetric != Metric::InnerProduct && present_
                ? double(params_.queryNorms[row_])
                : 0.0;
        const double least = norm - limit - (norm + fabs(limit)) * 0x1p-40;
        const bool known = best != kNoEntry && isfinite(limit);
        // Else it is searched again, whatever the others are: where thousands
        // are as near, these would be thousands too.
        const bool isEnough = known && mostOf(rest_) < least;
        for (uint32_t i = 0; i < strips_.perRow; i += kPairLanes) {
            for (int j = 0; j < 2; ++j) {
                uint32_t four = isEnough ? fourAt(i + lane(), j) : kNone;
                if (four == first || mostOf(valueAt_) < least) {
                    four = kNone;
                }
                scoreFours(four, best, scored);
            }
        }
        if (lane() != 0 || !present_) {
            return 0;
        }
        uint8_t* flags = params_.flags + 2 * int64_t(row_);
        const bool isNan = bound.norm != bound.norm;
        flags[0] = !(isNan || isEnough);
        flags[1] = 0;
        writePlace<kMetric>(params_, row_, 0, isNan ? kNoEntry : best);
        return scored;
    }

   private:
    static constexpr uint32_t kNone = 0xffffffffu;

    static __device__ __forceinline__ uint32_t lane() {
        return threadIdx.x % kPairLanes;
    }

    /// The first lane of the group for which it is true; kNone if it is for
    /// none. All lanes of the warp call it.
    static __device__ __forceinline__ uint32_t firstLane(bool isTrue) {
        const unsigned shift =
                threadIdx.x % kWarpSize / kPairLanes * kPairLanes;
        const unsigned lanes =
                __ballot_sync(kFullWarp, isTrue) >> shift & 0xffu;
        return lanes ? __ffs(lanes) - 1 : kNone;
    }

    /// The four at place j of a strip, and its value to valueAt_.
    __device__ __forceinline__ uint32_t fourAt(uint32_t i, int j) {
        if (!present_ || i >= strips_.perRow) {
            return kNone;
        }
        const NearestStrip& strip =
                strips_.strips[size_t(row_) * strips_.perRow + i];
        valueAt_ = strip.values[j];
        return valueAt_ > -__builtin_huge_valf() && strip.columns[j] < params_.n
                ? strip.columns[j]
                : kNone;
    }

    /// The four of the largest value; the greatest rest to rest_.
    __device__ __forceinline__ uint32_t findFirst() {
        float value = -__builtin_huge_valf();
        uint32_t four = kNone;
        rest_ = value;
        for (uint32_t i = lane(); i < strips_.perRow; i += kPairLanes) {
            const uint32_t candidate = fourAt(i, 0);
            if (candidate != kNone && valueAt_ > value) {
                value = valueAt_;
                four = candidate;
            }
            if (present_) {
                rest_ =
                        fmaxf(rest_,
                              strips_.rests[size_t(row_) * strips_.perRow + i]);
            }
        }
        rest_ = greatestOfGroup(rest_);
        const float greatest = greatestOfGroup(value);
        const uint32_t from = firstLane(four != kNone && value == greatest);
        four = __shfl_sync(
                kFullWarp, four, from == kNone ? 0 : from, kPairLanes);
        return from == kNone ? kNone : four;
    }

    /// The least of `best` and the entries of a four, by the group.
    __device__ __forceinline__ void scoreFour(
            uint32_t four,
            uint64_t& best,
            uint32_t& scored) const {
        constexpr uint32_t kFour = 4;
        const float* query =
                params_.queries + int64_t(present_ ? row_ : 0) * params_.d;
        withVectors(params_.vectors, [&](const auto* data) {
            using Vector = decltype(data);
            Vector vectors[kFour];
            uint32_t numbers[kFour];
            bool any[kFour];
#pragma unroll
            for (uint32_t i = 0; i < kFour; ++i) {
                const uint32_t row = nearestColumn(four, i);
                any[i] = four != kNone && row < params_.n;
                numbers[i] = any[i] ? rows_.vectorOf(row) : 0;
                vectors[i] =
                        data + int64_t(numbers[i]) * params_.vectors.rowStride;
            }
            double distances[kFour];
            pairDistances<kMetric>(
                    vectors, query, any[0] ? params_.d : 0, distances);
#pragma unroll
            for (uint32_t i = 0; i < kFour; ++i) {
                if (any[i]) {
                    best = min(
                            best,
                            distanceEntry<kMetric>(distances[i], numbers[i]));
                    ++scored;
                }
            }
        });
    }

    /// The same for the fours of all lanes of the group.
    __device__ __forceinline__ void scoreFours(
            uint32_t four,
            uint64_t& best,
            uint32_t& scored) const {
        while (__any_sync(kFullWarp, four != kNone)) {
            const uint32_t from = firstLane(four != kNone);
            const uint32_t next = __shfl_sync(
                    kFullWarp, four, from == kNone ? 0 : from, kPairLanes);
            scoreFour(from == kNone ? kNone : next, best, scored);
            if (lane() == from) {
                four = kNone;
            }
        }
    }

    const CertifiedParams& params_;
    const NearestStrips& strips_;
    const SpreadRows& rows_;
    const uint32_t row_;
    const bool present_;
    float valueAt_ = 0;
    float rest_ = 0;
};

template <Metric kMetric>
__global__ __launch_bounds__(kThreads) void nearestOfStripsKernel(
        const __grid_constant__ NearestParams params) {
    __shared__ unsigned scored;
    if (threadIdx.x == 0) {
        scored = 0;
    }
    __syncthreads();
    allowNext();
    waitForPrevious();
    constexpr uint32_t kRows = kThreads / kPairLanes;
    const uint32_t row = blockIdx.x * kRows + threadIdx.x / kPairLanes;
    const uint32_t count = NearestOfRow<kMetric>(params, row).run();
    if (!params.search.numRescored) {
        return;
    }
    if (count > 0) {
        atomicAdd(&scored, count);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(params.search.numRescored, (unsigned long long)scored);
    }
}

template <Metric kMetric>
void launch(const NearestParams& params, cudaStream_t stream) {
    constexpr unsigned kRows = kThreads / kPairLanes;
    launchAfterPrevious(
            nearestOfStripsKernel<kMetric>,
            (params.search.rows + kRows - 1) / kRows,
            kThreads,
            0,
            stream,
            params);
}

} // namespace

void launchNearestOfStrips(
        Metric metric,
        const NearestParams& params,
        cudaStream_t stream) {
    switch (metric) {
        case Metric::L2:
            return launch<Metric::L2>(params, stream);
        case Metric::InnerProduct:
            return launch<Metric::InnerProduct>(params, stream);
        case Metric::Cosine:
            return launch<Metric::Cosine>(params, stream);
        default:
            throw Error(formatMessage(
                    "metric = %d has no search of this kind", int(metric)));
    }
}

} // namespace faiss_bits
