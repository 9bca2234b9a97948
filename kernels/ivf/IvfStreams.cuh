/// The matrix of canonical distances, pair by pair: a query and its list, for
/// queries so few that they seldom meet in a list.
///
/// A lane has a vector, and its eight slots in registers. Bound by: the reading
/// of the lists, or the wait for it where there is little to read.
#pragma once

#include <algorithm>

#include "kernels/canonical/Distance.h"
#include "kernels/common/DependentLaunch.h"
#include "kernels/ivf/IvfFilter.cuh"
#include "kernels/ivf/ListVectors.cuh"

namespace faiss_bits {

template <Metric kMetric, ListCoding kCoding>
struct IvfStreams {
    using Terms = canonical::Terms<kMetric>;
    static_assert(Terms::kSums == 1);
    static constexpr int kThreads = 128;
    static constexpr int kSlots = canonical::kSlots;
    static constexpr int kAhead = 4 * kSlots; // loads in flight
    /// Components of a query in shared memory at a time.
    static constexpr int kStaged = 1024;

    struct SharedStorage {
        double query[kStaged];
    };

    SharedStorage& shared;
    const IvfParams& params;

    /// Of pair blockIdx.x kThreads vectors at a time: chunk blockIdx.y, that
    /// + gridDim.y and so on.
    __device__ __forceinline__ void run() {
        const uint32_t row = blockIdx.x / params.nearProbes;
        const uint32_t probe = blockIdx.x % params.nearProbes;
        const uint32_t list = probedList(params, row, probe);
        if (list == params.lists.numLists) {
            return;
        }
        const uint32_t length = listLength(params.lists, list);
        float* out = params.distances + int64_t(row) * params.stride +
                params.columns[int64_t(row) * (params.nearProbes + 1) + probe];
        TilePlace place = {};
        place.last = length;
        place.list = params.lists.vectors[list];
        place.listNumber = list;
        const float* query = params.queries + int64_t(row) * params.d;
        for (uint32_t first = blockIdx.y * kThreads; first < length;
             first += gridDim.y * kThreads) {
            place.first = min(first + threadIdx.x, length - 1);
            // A warp's vectors share a word: where none is selected, nothing is
            // read.
            const uint32_t selected = selectedWord(
                    params.lists, list, uint32_t(place.first) / kListGroup);
            const double distance = distanceOf(
                    place,
                    query,
                    first == blockIdx.y * kThreads,
                    selected != 0);
            if (first + threadIdx.x < length) {
                // -0 counts as +0.
                out[first + threadIdx.x] =
                        selected >> (place.first % kListGroup) & 1
                        ? canonical::toFloat32(distance) + 0.0f
                        : NAN;
            }
        }
    }

   private:
    __device__ __forceinline__ double distanceOf(
            const TilePlace& place,
            const float* query,
            bool isFirst,
            bool isRead) {
        double sums[kSlots] = {};
        VectorsOfLists<kCoding>::with(params, [&](const auto& vectors) {
            const auto x = vectors.vector(place, 0);
            for (int begin = 0; begin < params.d; begin += kStaged) {
                const int end = min(params.d, begin + kStaged);
                if (isFirst || params.d > kStaged) {
                    __syncthreads();
                    for (int c = begin + int(threadIdx.x); c < end;
                         c += kThreads) {
                        shared.query[c - begin] = double(query[c]);
                    }
                    __syncthreads();
                }
                if (!isRead) {
                    continue;
                }
                int c = begin;
                for (; c + kAhead <= end; c += kAhead) {
                    addComponents<kAhead>(x, c, begin, sums);
                }
                for (; c + kSlots <= end; c += kSlots) {
                    addComponents<kSlots>(x, c, begin, sums);
                }
#pragma unroll
                for (int s = 0; s < kSlots; ++s) {
                    if (c + s < end) {
                        addTerm(x(c + s), shared.query[c + s - begin], sums[s]);
                    }
                }
            }
        });
        // Slots 0 and 4, then 2 and 6 to them, then the odd ones.
#pragma unroll
        for (int distance = kSlots / 2; distance >= 1; distance /= 2) {
#pragma unroll
            for (int s = 0; s < distance; ++s) {
                sums[s] = Terms::join(sums[s], sums[s + distance]);
            }
        }
        return Terms::finish(sums);
    }

    template <int kCount, class Vector>
    __device__ __forceinline__ void addComponents(
            const Vector& x,
            int c,
            int begin,
            double (&sums)[kSlots]) {
        float xs[kCount];
        x.load(c, xs);
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            addTerm(xs[i], shared.query[c + i - begin], sums[i % kSlots]);
        }
    }

    __device__ __forceinline__ void addTerm(float x, double q, double& sum) {
        double one[] = {sum};
        Terms::add(one, double(x), q, params.power);
        sum = one[0];
    }
};

template <Metric kMetric, ListCoding kCoding>
__global__ __launch_bounds__(
        IvfStreams<kMetric, kCoding>::
                kThreads) void ivfStreamsKernel(const __grid_constant__
                                                        IvfParams params) {
    using Streams = IvfStreams<kMetric, kCoding>;
    __shared__ typename Streams::SharedStorage shared;
    allowNext();
    waitForPrevious();
    Streams{shared, params}.run();
}

template <Metric kMetric, ListCoding kCoding>
void launchIvfStreams(
        const IvfParams& params,
        idx_t longestList,
        cudaStream_t stream) {
    using Streams = IvfStreams<kMetric, kCoding>;
    constexpr idx_t kMostBlocks = 64; // of a pair: more is done in turn
    const idx_t blocks =
            (longestList + Streams::kThreads - 1) / Streams::kThreads;
    if (blocks == 0) {
        return;
    }
    launchAfterPrevious(
            ivfStreamsKernel<kMetric, kCoding>,
            dim3(params.rows * params.nearProbes,
                 unsigned(std::min(blocks, kMostBlocks))),
            Streams::kThreads,
            0,
            stream,
            params);
}

} // namespace faiss_bits
