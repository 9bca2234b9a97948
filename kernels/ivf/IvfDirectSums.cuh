/// Sums of canonical distances to vectors of lists, and what is kept of them.
#pragma once

#include "kernels/canonical/Distance.h"
#include "kernels/device/WarpReduce.cuh"
#include "kernels/ivf/IvfDirectParams.h"
#include "kernels/ivf/IvfFilter.cuh"
#include "kernels/ivf/IvfStagedParams.h"
#include "kernels/ivf/ListVectors.cuh"
#include "kernels/ivf/ScalarSteps.cuh"
#include "kernels/knn/certified/CanonicalPair.cuh"

namespace faiss_bits {

/// isScalar() for kernels.
template <ListCoding kCoding>
constexpr bool kIsScalar = isScalar(kCoding);

template <Metric kMetric, ListCoding kCoding>
struct IvfDirectSums {
    using Terms = canonical::Terms<kMetric>;
    static_assert(Terms::kSums == 1);
    static constexpr int kSlots = canonical::kSlots;

    /// Adds the components of a slot of vector x to the sums of some queries,
    /// which lie `stride` apart.
    template <int kQueries, class Vector>
    __device__ __forceinline__ static void addSlot(
            const Vector& x,
            int slot,
            const double* queries,
            int stride,
            const IvfParams& search,
            double (&sums)[kQueries]) {
        constexpr int kStep = kIvfDirectAhead * kSlots;
        for (int begin = slot; begin < search.d; begin += kStep) {
            float xs[kIvfDirectAhead];
            // A branch for each code, which takes more than one load, would
            // have one wait for the other.
            if (kCoding != ListCoding::Float32 &&
                begin - slot + kStep <= search.d) {
#pragma unroll
                for (int i = 0; i < kIvfDirectAhead; ++i) {
                    xs[i] = x(begin + i * kSlots);
                }
            } else {
#pragma unroll
                for (int i = 0; i < kIvfDirectAhead; ++i) {
                    const int c = begin + i * kSlots;
                    xs[i] = c < search.d ? x(c) : 0.0f;
                }
            }
            // Components beyond d are zeros, which no sum notices.
#pragma unroll
            for (int i = 0; i < kIvfDirectAhead; ++i) {
                const double value = double(xs[i]);
#pragma unroll
                for (int q = 0; q < kQueries; ++q) {
                    double one[] = {sums[q]};
                    Terms::add(
                            one,
                            value,
                            queries[q * stride + begin + i * kSlots],
                            search.power);
                    sums[q] = one[0];
                }
            }
        }
    }

    /// The key of a lane's vector, of the sums of all slots.
    __device__ __forceinline__ static uint32_t keyOf(
            const double (&sums)[kSlots][kWarpSize],
            uint32_t lane) {
        double slots[1][kSlots];
#pragma unroll
        for (int s = 0; s < kSlots; ++s) {
            slots[0][s] = sums[s][lane];
        }
        return keyOf(slots);
    }

    /// The key of a vector whose components this lane adds up alone.
    template <class Vector>
    __device__ __forceinline__ static uint32_t keyAlone(
            const Vector& x,
            const double* query,
            const IvfParams& search) {
        constexpr int kAhead = 4 * kSlots;
        double sums[1][kSlots] = {};
        const int d = search.d;
        const auto add = [&]<int kCount>(int c) {
            float xs[kCount];
            x.load(c, xs);
#pragma unroll
            for (int i = 0; i < kCount; ++i) {
                addTerm(xs[i], query[c + i], search, sums[0][i % kSlots]);
            }
        };
        int c = 0;
        for (; c + kAhead <= d; c += kAhead) {
            add.template operator()<kAhead>(c);
        }
        for (; c + kSlots <= d; c += kSlots) {
            add.template operator()<kSlots>(c);
        }
#pragma unroll
        for (int s = 0; s < kSlots; ++s) {
            if (c + s < d) {
                addTerm(x(c + s), query[c + s], search, sums[0][s]);
            }
        }
        return keyOf(sums);
    }

    /// Likewise, of no more than kMost components, which it has already; zeros
    /// behind the last, and of the query up to whole slots.
    template <int kMost>
    __device__ __forceinline__ static uint32_t keyOfFew(
            const float (&xs)[kMost],
            const double* query,
            const IvfParams& search) {
        static_assert(kMost % kSlots == 0);
        double sums[1][kSlots] = {};
#pragma unroll
        for (int c = 0; c < kMost; c += kSlots) {
            if (c < search.d) {
#pragma unroll
                for (int s = 0; s < kSlots; ++s) {
                    addTerm(xs[c + s], query[c + s], search, sums[0][s]);
                }
            }
        }
        return keyOf(sums);
    }

   private:
    __device__ __forceinline__ static uint32_t keyOf(
            const double (&slots)[1][kSlots]) {
        return entryKey(
                distanceEntry<kMetric>(canonical::joinSlots<Terms>(slots), 0));
    }

    __device__ __forceinline__ static void addTerm(
            float x,
            double q,
            const IvfParams& search,
            double& sum) {
        double one[] = {sum};
        Terms::add(one, double(x), q, search.power);
        sum = one[0];
    }
};

/// The keys of 32 columns of a row, counted in 32s, and the least of them, by a
/// warp; or their distances.
template <Metric kMetric>
__device__ __forceinline__ void keepIvfKey(
        const IvfDirectParams& params,
        uint32_t row,
        uint32_t columns,
        uint32_t key,
        bool isThere) {
    const int64_t stride = params.search.stride;
    key = isThere ? key : kNanKey;
    const uint32_t lane = threadIdx.x % kWarpSize;
    const int64_t at =
            int64_t(row) * stride + int64_t(columns) * kListGroup + lane;
    if (!params.keys) {
        params.search.distances[at] = entryDistance<kMetric>(makeEntry(key, 0));
        return;
    }
    params.keys[at] = key;
    const uint32_t least = __reduce_min_sync(kFullWarp, key);
    if (lane == 0) {
        params.least[int64_t(row) * (stride / kListGroup) + columns] = least;
    }
}

/// NaN behind the last column of a row of distances, by some blocks.
__device__ __forceinline__ void fillIvfRow(
        const IvfDirectParams& params,
        uint32_t row,
        uint32_t numColumns,
        uint32_t block,
        uint32_t blocks) {
    if (params.keys) {
        return;
    }
    const int64_t stride = params.search.stride;
    float* distances = params.search.distances + int64_t(row) * stride;
    for (int64_t c = int64_t(numColumns) + block * blockDim.x + threadIdx.x;
         c < stride;
         c += int64_t(blocks) * blockDim.x) {
        distances[c] = NAN;
    }
}

/// The query of a block, asked for before the block waits for something else;
/// kThreads: of the block.
template <int kThreads>
struct IvfQueryAhead {
    const float* from;
    int d;
    float own; // this thread's first component

    __device__ __forceinline__
    IvfQueryAhead(const IvfParams& search, uint32_t row)
            : from(search.queries + int64_t(row) * search.d),
              d(search.d),
              own(int(threadIdx.x) < d ? from[threadIdx.x] : 0.0f) {}

    /// To shared memory, with zeros behind the last component.
    template <class T>
    __device__ __forceinline__ void write(T* to, int padded) const {
        for (int c = threadIdx.x; c < padded; c += kThreads) {
            to[c] = T(c < kThreads ? own : c < d ? from[c] : 0.0f);
        }
    }
};

/// Starts and steps of scalar codes, by a block, to memory of its own.
__device__ __forceinline__ void writeIvfSteps(
        const IvfParams& search,
        float* starts,
        float* steps) {
    IvfParams own = search;
    own.starts = starts;
    own.steps = steps;
    writeScalarSteps(own);
}

/// Calls body(vectors) with the vectors of the lists, which are rows where
/// interleaved ones come through shared memory (IvfGroupStages.cuh); starts and
/// steps are those that a block has of scalar codes.
template <ListCoding kCoding, class Body>
__device__ __forceinline__ void withIvfVectors(
        const IvfParams& search,
        float* starts,
        float* steps,
        const Body& body) {
    if constexpr (isStaged(kCoding)) {
        using Rows = typename VectorsOfLists<kCoding>::template ListOf<
                ListLayout::Rows>;
        IvfParams own = search;
        own.starts = starts;
        own.steps = steps;
        body(Rows(own));
    } else {
        VectorsOfLists<kCoding>::with(search, body);
    }
}

} // namespace faiss_bits
