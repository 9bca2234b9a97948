/// The components of a tile of products on their way to shared memory, in
/// float64, and what is found of each row meanwhile.
#pragma once

#include "kernels/knn/certified/HeldComponent.cuh"
#include "kernels/knn/certified/PairEstimate.cuh"
#include "kernels/knn/certified/ScanTile.cuh"

namespace faiss_bits {

/// Eight components of kVectors vectors and kQueries queries at a time, in two
/// buffers. In L2 the first query, the center, is subtracted from all: numbers
/// far from zero lose less then. Those far smaller than it lose more.
template <
        Metric kMetric,
        int kQueries,
        int kVectors,
        int kThreads,
        class Params>
struct ProductStaging {
    using Row = EstimateRow<kMetric>;
    static constexpr int kDepth = 8; // components at a time

   private:
    static constexpr int kRows = kVectors + kQueries;
    // Components of a row: with one of twice as many rows a lane has twice the
    // squares, for which there are no registers.
    static constexpr int kOfLane = 2;
    static constexpr int kLanes = kDepth / kOfLane; // that stage a row
    static constexpr int kRowStep = kThreads / kLanes;
    static constexpr int kStagedVectors = kVectors / kRowStep; // of a lane
    static constexpr int kStaged = kRows / kRowStep;
    static_assert(kVectors % kRowStep == 0 && kQueries % kRowStep == 0);

   public:
    struct SharedStorage {
        // The lanes of a product read sixteen bytes each, without conflicts of
        // banks.
        alignas(16) double vectors[2][kVectors][kDepth];
        // Queries i and i + 8 of sixteen side by side: queryPlace().
        alignas(16) double queries[2][kQueries * kDepth];
        double sizes[kRows]; // Row::sizeOf, of vectors, then queries
    };

    /// Components of this thread's rows on their way to shared memory.
    struct Components {
        uint32_t held[kStaged][kOfLane]; // HeldComponent; of queries, numbers
        float center[kOfLane];
    };

    SharedStorage& shared;
    const Params& params;
    bool hasCenter = kMetric == Metric::L2;
    double squares[kStaged];
    bool areIntegers; // those of squares, and the squares small
    uint32_t signs;   // of which the first bit is set if some are negative

    __device__ __forceinline__
    ProductStaging(SharedStorage& storage, const Params& parameters)
            : shared(storage), params(parameters) {}

    /// Components c and c + 1 of a vector.
    __device__ __forceinline__ double2
    vectorPair(int buffer, int vector, int c) const {
        return *reinterpret_cast<const double2*>(
                &shared.vectors[buffer][vector][c]);
    }

    /// Component c of a query and of the one eight places behind it.
    __device__ __forceinline__ double2
    queryPair(int buffer, int query, int c) const {
        return *reinterpret_cast<const double2*>(
                &shared.queries[buffer][queryPlace(query, c)]);
    }

    /// The queries of a tile that this thread stages, and the center.
    struct Queries {
        const float* staged[kStaged - kStagedVectors];
        const float* first;
    };
    __device__ __forceinline__ Queries queriesOf(const TilePlace& place) const {
        Queries queries;
        const int row = threadIdx.x / kLanes;
        const int last = min(int(place.numRows), kQueries) - 1;
#pragma unroll
        for (int i = 0; i < kStaged - kStagedVectors; ++i) {
            const int at = min(row + i * kRowStep, last);
            queries.staged[i] = params.queries + place.row(at) * params.d;
        }
        queries.first = params.queries + place.row(0) * params.d;
        return queries;
    }

    /// Components depth and on of this thread's rows, as store() takes them.
    /// Rows that there are not are others, and their pairs are not looked at.
    template <class Vectors>
    __device__ __forceinline__ Components
    fetch(const Vectors& vectors,
          const TilePlace& place,
          const Queries& queries,
          int depth) const {
        Components next;
        const int row = threadIdx.x / kLanes;
        const int lastVector =
                int(min(place.last - place.first, int64_t(kVectors))) - 1;
#pragma unroll
        for (int j = 0; j < kOfLane; ++j) {
            const int c = min(depth + firstComponent() + j, params.d - 1);
            const auto column = vectors.column(place, c);
#pragma unroll
            for (int i = 0; i < kStagedVectors; ++i) {
                const uint32_t at = min(row + i * kRowStep, lastVector);
                next.held[i][j] = HeldComponent<Vectors>::near(column, at);
            }
#pragma unroll
            for (int i = kStagedVectors; i < kStaged; ++i) {
                next.held[i][j] =
                        heldBits(queries.staged[i - kStagedVectors][c]);
            }
            next.center[j] = kMetric == Metric::L2 && hasCenter
                    ? queries.first[c]
                    : 0.0f;
        }
        return next;
    }

    /// Before the first components of a tile are stored.
    __device__ __forceinline__ void reset() {
#pragma unroll
        for (int i = 0; i < kStaged; ++i) {
            squares[i] = 0;
        }
        areIntegers = true;
        signs = 0;
    }

    /// What fetch() brought, with zeros behind the last component, which only
    /// the last components of a tile have: kIsLast.
    template <class Vectors, bool kIsLast>
    __device__ __forceinline__ void store(
            const Components& next,
            int buffer,
            int depth) {
        float components[kStaged][kOfLane];
        float finite[kOfLane];
#pragma unroll
        for (int j = 0; j < kOfLane; ++j) {
            const bool isThere =
                    !kIsLast || depth + firstComponent() + j < params.d;
            // Of others than L2 it is 0: nothing is to be subtracted.
            finite[j] =
                    kMetric == Metric::L2 && isThere && isfinite(next.center[j])
                    ? next.center[j]
                    : 0.0f;
#pragma unroll
            for (int i = 0; i < kStaged; ++i) {
                const float number = i < kStagedVectors
                        ? HeldComponent<Vectors>::numberOf(next.held[i][j])
                        : heldNumber<float>(next.held[i][j]);
                components[i][j] = isThere ? number : 0.0f;
            }
        }
        // Mostly the first components say that not all are.
        if (__any_sync(kFullWarp, areIntegers)) {
#pragma unroll
            for (int j = 0; j < kOfLane; ++j) {
                areIntegers = areIntegers && isInteger(finite[j]);
#pragma unroll
                for (int i = 0; i < kStaged; ++i) {
                    areIntegers = areIntegers && isInteger(components[i][j]);
                }
            }
        }
        const int c = firstComponent();
#pragma unroll
        for (int i = 0; i < kStaged; ++i) {
            double values[kOfLane];
#pragma unroll
            for (int j = 0; j < kOfLane; ++j) {
                const float component = components[i][j];
                if constexpr (kMetric != Metric::L2) {
                    signs |= __float_as_uint(component);
                }
                values[j] = double(component) - double(finite[j]);
                squares[i] = __fma_rn(values[j], values[j], squares[i]);
            }
            const int row = threadIdx.x / kLanes + i * kRowStep;
            if (i < kStagedVectors) {
                *reinterpret_cast<double2*>(&shared.vectors[buffer][row][c]) =
                        make_double2(values[0], values[1]);
            } else {
                const int query = row - kVectors;
                shared.queries[buffer][queryPlace(query, c)] = values[0];
                shared.queries[buffer][queryPlace(query, c + 1)] = values[1];
            }
        }
    }

    /// Whether none that this thread has stored is negative. If no thread has
    /// one, a sum of products that is 0 is so in whatever order, as all of them
    /// are 0: the smallest of float32 do not vanish in float64.
    __device__ __forceinline__ bool areNonnegative() const {
        return int32_t(signs) >= 0;
    }

    /// Of the rows' squares, of which four lanes each have a part. After
    /// the last components. Whether those that this lane stores are finite.
    __device__ __forceinline__ bool storeSizes() {
        // Each step hands half of the first rows to the partner, and adds up
        // what is not divided further.
        constexpr int kDivided = kStaged >= kLanes ? kLanes : kLanes / 2;
        static_assert(kStaged >= kDivided);
        const int lane = threadIdx.x % kLanes;
        const int row = threadIdx.x / kLanes;
#pragma unroll
        for (int distance = kLanes / 2; distance >= 1; distance /= 2) {
            const bool upper = lane & distance;
            const int half = distance * kDivided / kLanes;
#pragma unroll
            for (int i = 0; i < half; ++i) {
                const double keep = upper ? squares[i + half] : squares[i];
                const double give = upper ? squares[i] : squares[i + half];
                squares[i] = keep + __shfl_xor_sync(kFullWarp, give, distance);
            }
#pragma unroll
            for (int i = half == 0 ? 0 : kDivided; i < kStaged; ++i) {
                if (i == 0 || i >= kDivided) {
                    squares[i] +=
                            __shfl_xor_sync(kFullWarp, squares[i], distance);
                }
            }
        }
        bool allFinite = true;
        const auto keep = [&](int i, double square) {
            shared.sizes[row + i * kRowStep] = Row::sizeOf(square);
            allFinite = allFinite && isfinite(square);
            areIntegers = areIntegers && square < Row::kExactSquares;
        };
        keep(lane * kDivided / kLanes, squares[0]);
#pragma unroll
        for (int i = kDivided; i < kStaged; ++i) {
            if (lane == 0) {
                keep(i, squares[i]);
            }
        }
        return allFinite;
    }

   private:
    /// That this lane stages, of eight.
    __device__ __forceinline__ static int firstComponent() {
        return threadIdx.x % kLanes * kOfLane;
    }

    /// Not of large ones.
    __device__ __forceinline__ static bool isInteger(float value) {
        constexpr float kInteger = 1.5f * (1 << 23); // its last bit is 1
        return value + kInteger - kInteger == value;
    }

    /// Where component c of a query lies.
    __device__ __forceinline__ static int queryPlace(int query, int c) {
        const int pair = query / 16 * 8 + query % 8;
        return (pair * kDepth + (c ^ (pair & 1))) * 2 + query / 8 % 2;
    }
};

} // namespace faiss_bits
