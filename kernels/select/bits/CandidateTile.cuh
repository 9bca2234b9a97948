/// What later passes of a split row read in place of keys.
#pragma once

#include "kernels/device/KeyTile.cuh"
#include "kernels/select/SelectParams.h"

namespace faiss_bits {

/// A tile of the candidates that earlier blocks left.
struct CandidateTile {
    static constexpr int kItems = 8;

    const uint64_t* row;
    uint64_t values[kItems];

    __device__ CandidateTile(const SelectParams& p, uint32_t rowOfKeys)
            : row(p.candidates + uint64_t(rowOfKeys) * p.numCandidates) {}

    __device__ static uint32_t rowLength(const SelectParams& p) {
        return p.numCandidates;
    }

    __device__ __forceinline__ void load(uint32_t begin, uint32_t end) {
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const uint32_t at = begin + i * blockDim.x + threadIdx.x;
            values[i] = at < end ? row[at] : kNoEntry;
        }
        first_ = begin;
    }

    __device__ __forceinline__ uint32_t passing(const Radius& radius) const {
        uint32_t mask = 0;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            mask |= values[i] < radius.entryLimit ? 1u << i : 0u;
        }
        return mask;
    }

    __device__ __forceinline__ bool mayPass(const Radius& radius) const {
        return passing(radius) != 0;
    }

    __device__ __forceinline__ uint64_t entryAt(uint32_t at) const {
        return row[at];
    }

    __device__ __forceinline__ uint64_t entry(int i) const {
        return row[first_ + i * blockDim.x + threadIdx.x];
    }

    template <int Groups>
    __device__ __forceinline__ uint64_t leastOfGroup(int group) const {
        constexpr int kSize = kItems / Groups;
        uint64_t least = kNoEntry;
#pragma unroll
        for (int i = 0; i < kSize; ++i) {
            const uint64_t e = values[group * kSize + i];
            least = e < least ? e : least;
        }
        return least;
    }

   private:
    uint32_t first_ = 0;
};

} // namespace faiss_bits
