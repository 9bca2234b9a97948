/// Sums of the rows of every cluster, in a fixed order.
///
/// Entries (label in the upper word, row in the lower) come sorted by label,
/// rows of a label in their order. They are cut into chunks of a fixed number
/// of places. A few lanes walk a chunk and hold some components of the sum of
/// the label at hand. A label whose places all lie in the chunk is finished
/// there; else its part goes to one of the chunk's two slots: 0 if it holds the
/// chunk's first place, else 1. joinPartsKernel adds up the parts of a label,
/// chunk after chunk. So the order of additions is that of the places,
/// whatever the grid.
///
/// Bound by the memory: a row is read once, all of its bytes. With four rows on
/// their way, 32 warps a multiprocessor have 64 KB under way.
#pragma once

#include <cstdint>

#include "kernels/common/Types.h"

namespace faiss_bits {

struct ClusterChunks {
    const float* vectors;   // [n, d]
    const float* weights;   // [n] or nullptr
    const uint64_t* sorted; // [n] entries
    const uint32_t* starts; // [k + 1] first place of each label
    double* parts;          // [chunks, 2, d]
    double* weightParts;    // [chunks, 2], of weighted rows
    double* sums;           // [k, d], added to
    double* weightSums;     // [k], added to
    uint64_t* counts;       // [k], added to
    uint32_t n;
    uint32_t k;
    int d;
    uint32_t chunkRows;
    uint32_t chunks;
};

constexpr int kSumThreads = 256;
constexpr int kSumBlocks = 4;     // of a multiprocessor: 64 registers a thread
constexpr int kSumComponents = 4; // of a lane
constexpr int kSumUnroll = 4;     // rows on their way

/// What a lane holds of the label at hand.
template <int Lanes, bool Aligned, bool Weighted>
class ClusterSumBody {
   public:
    __device__ ClusterSumBody(
            const ClusterChunks& params,
            uint32_t chunk,
            int slice,
            int lane)
            : params_(params), chunk_(chunk), lane_(lane), slice_(slice) {}

    __device__ bool hasComponents() const {
        return component(0) < params_.d;
    }

    __device__ void run() {
        const uint32_t begin = chunk_ * params_.chunkRows;
        // Behind the last label lie rows without one.
        const uint32_t end =
                min(begin + params_.chunkRows, params_.starts[params_.k]);
        for (uint32_t at = begin; at < end; at += kSumUnroll) {
            uint64_t entry[kSumUnroll];
            float row[kSumUnroll][kSumComponents];
            float weight[kSumUnroll];
#pragma unroll
            for (int u = 0; u < kSumUnroll; ++u) {
                entry[u] = at + u < end ? params_.sorted[at + u] : 0;
            }
#pragma unroll
            for (int u = 0; u < kSumUnroll; ++u) {
                if (at + u < end) {
                    load(uint32_t(entry[u]), row[u], weight[u]);
                }
            }
#pragma unroll
            for (int u = 0; u < kSumUnroll; ++u) {
                if (at + u < end) {
                    add(uint32_t(entry[u] >> 32), row[u], weight[u]);
                }
            }
        }
        flush();
    }

   private:
    // Aligned: 4 components together; else those of the lanes side by side.
    __device__ int component(int i) const {
        const int first = slice_ * Lanes * kSumComponents;
        return Aligned ? first + lane_ * kSumComponents + i
                       : first + i * Lanes + lane_;
    }

    __device__ void load(
            uint32_t number,
            float (&row)[kSumComponents],
            float& weight) const {
        const float* from = params_.vectors + size_t(number) * params_.d;
        if constexpr (Aligned) {
            const float4 four = __ldcs(
                    reinterpret_cast<const float4*>(from + component(0)));
            row[0] = four.x;
            row[1] = four.y;
            row[2] = four.z;
            row[3] = four.w;
        } else {
#pragma unroll
            for (int i = 0; i < kSumComponents; ++i) {
                row[i] = component(i) < params_.d ? from[component(i)] : 0;
            }
        }
        weight = Weighted ? params_.weights[number] : 1;
    }

    __device__ void add(
            uint32_t label,
            const float (&row)[kSumComponents],
            float weight) {
        if (label != label_) {
            flush();
            label_ = label;
        }
#pragma unroll
        for (int i = 0; i < kSumComponents; ++i) {
            // The product of two floats is exact in float64.
            sum_[i] += Weighted ? double(row[i]) * weight : double(row[i]);
        }
        weightSum_ += weight;
    }

    __device__ void flush() {
        if (label_ == kNoLabel) {
            return;
        }
        const uint32_t begin = chunk_ * params_.chunkRows;
        const uint32_t first = params_.starts[label_];
        const bool isWhole = first >= begin &&
                params_.starts[label_ + 1] <= begin + params_.chunkRows;
        const size_t slot = size_t(chunk_) * 2 + (first <= begin ? 0 : 1);
        double* to = isWhole ? params_.sums + size_t(label_) * params_.d
                             : params_.parts + slot * params_.d;
#pragma unroll
        for (int i = 0; i < kSumComponents; ++i) {
            if (component(i) < params_.d) {
                to[component(i)] =
                        isWhole ? to[component(i)] + sum_[i] : sum_[i];
            }
            sum_[i] = 0;
        }
        if (Weighted && slice_ == 0 && lane_ == 0) {
            if (isWhole) {
                params_.weightSums[label_] += weightSum_;
            } else {
                params_.weightParts[slot] = weightSum_;
            }
        }
        weightSum_ = 0;
    }

    static constexpr uint32_t kNoLabel = ~0u;

    const ClusterChunks& params_;
    const uint32_t chunk_;
    const int lane_;
    const int slice_;
    uint32_t label_ = kNoLabel;
    double sum_[kSumComponents] = {};
    double weightSum_ = 0;
};

/// Lanes: of a chunk and slice of Lanes * kSumComponents components.
template <int Lanes, bool Aligned, bool Weighted>
__global__ void __launch_bounds__(kSumThreads, kSumBlocks)
        clusterChunksKernel(ClusterChunks params) {
    const int slices =
            (params.d + Lanes * kSumComponents - 1) / (Lanes * kSumComponents);
    const uint64_t task =
            (uint64_t(blockIdx.x) * kSumThreads + threadIdx.x) / Lanes;
    const uint64_t chunk = task / slices;
    if (chunk >= params.chunks) {
        return;
    }
    ClusterSumBody<Lanes, Aligned, Weighted> body(
            params,
            uint32_t(chunk),
            int(task % slices),
            int(threadIdx.x % Lanes));
    if (body.hasComponents()) {
        body.run();
    }
}

/// A block a label: adds up the parts that its chunks left, in their order, and
/// counts its rows.
template <bool Weighted>
__global__ void joinPartsKernel(ClusterChunks params) {
    const uint32_t label = blockIdx.x;
    const uint32_t begin = params.starts[label];
    const uint32_t end = params.starts[label + 1];
    if (begin == end) {
        return;
    }
    const uint32_t firstChunk = begin / params.chunkRows;
    const uint32_t lastChunk = (end - 1) / params.chunkRows;
    const auto slotOf = [&](uint32_t chunk) {
        const bool later = chunk == firstChunk && begin % params.chunkRows != 0;
        return size_t(chunk) * 2 + later;
    };
    const bool isWhole = firstChunk == lastChunk;
    for (int c = threadIdx.x; c < params.d && !isWhole; c += blockDim.x) {
        double sum = 0;
#pragma unroll 8
        for (uint32_t chunk = firstChunk; chunk <= lastChunk; ++chunk) {
            sum += params.parts[slotOf(chunk) * params.d + c];
        }
        params.sums[size_t(label) * params.d + c] += sum;
    }
    if (threadIdx.x == 0) {
        params.counts[label] += end - begin;
        if (!Weighted) {
            params.weightSums[label] += double(end - begin);
        } else if (!isWhole) {
            double sum = 0;
            for (uint32_t chunk = firstChunk; chunk <= lastChunk; ++chunk) {
                sum += params.weightParts[slotOf(chunk)];
            }
            params.weightSums[label] += sum;
        }
    }
}

} // namespace faiss_bits
