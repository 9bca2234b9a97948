/// A set of ids in memory: open addressing, at most half full.
#pragma once

#include <cstdint>

#include "kernels/common/Types.h"

namespace faiss_bits {

struct IvfIdTable {
    /// What an empty place holds, made by cudaMemset of kEmptyByte. The id of
    /// that number is kept apart.
    static constexpr int kEmptyByte = 0x80;
    static constexpr uint64_t kEmpty = 0x8080808080808080u;

    uint64_t* places = nullptr; // [mask + 1], a power of two
    uint64_t mask = 0;
    uint32_t* hasEmpty = nullptr; // not 0: the id kEmpty is there

    static idx_t capacityFor(idx_t numIds) {
        idx_t capacity = 64;
        while (capacity < 2 * numIds) {
            capacity *= 2;
        }
        return capacity;
    }

#ifdef __CUDACC__
    __device__ __forceinline__ static uint64_t hash(uint64_t id) {
        id ^= id >> 33;
        id *= 0xff51afd7ed558ccdu;
        id ^= id >> 33;
        id *= 0xc4ceb9fe1a85ec53u;
        return id ^ id >> 33;
    }

    /// Where the id is now; the place behind the last for kEmpty.
    __device__ __forceinline__ uint64_t insert(int64_t number) const {
        const uint64_t id = uint64_t(number);
        if (id == kEmpty) {
            *hasEmpty = 1;
            return mask + 1;
        }
        uint64_t at = hash(id) & mask;
        for (;; at = (at + 1) & mask) {
            const uint64_t before = atomicCAS(
                    reinterpret_cast<unsigned long long*>(places + at),
                    kEmpty,
                    id);
            if (before == kEmpty || before == id) {
                return at;
            }
        }
    }

    static constexpr uint64_t kNowhere = ~uint64_t(0);

    /// Where the id is, or kNowhere.
    __device__ __forceinline__ uint64_t find(int64_t number) const {
        const uint64_t id = uint64_t(number);
        if (id == kEmpty) {
            return *hasEmpty ? mask + 1 : kNowhere;
        }
        uint64_t at = hash(id) & mask;
        for (;; at = (at + 1) & mask) {
            const uint64_t there = places[at];
            if (there == id) {
                return at;
            }
            if (there == kEmpty) {
                return kNowhere;
            }
        }
    }
#endif
};

} // namespace faiss_bits
