/// Codes of product quantization in registers, and what they look up in the
/// table of their list (IvfBookTables.cuh). Those of the next columns, whatever
/// list they are of, are on their way while others are looked up.
#pragma once

#include "kernels/ivf/IvfBookLookUps.cuh"

namespace faiss_bits {

/// Of a lane.
template <Metric kMetric>
struct IvfBookCodes {
    using LookUps = IvfBookLookUps<kMetric>;
    using Place = typename LookUps::Place;
    static constexpr int kRows = LookUps::kRows;
    static constexpr int kOfRead = 16;   // codes
    using Codes = uint32_t[kOfRead / 4]; // of a vector, as words

    const LookUps& lookUps;
    const float* table; // [parts, kRows]
    Codes next;

    __device__ __forceinline__ IvfBookCodes(
            const LookUps& ofLists,
            const float* ofTable,
            const Place& first)
            : lookUps(ofLists), table(ofTable) {
        ask(first);
    }

    /// Of this lane's vector of a place. after: the warp's next place.
    __device__ __forceinline__ float sumOf(
            const Place& now,
            const Place& after) {
        const int parts = lookUps.numParts();
        float sums[4] = {};
        for (int part = 0; part < parts; part += kOfRead) {
            Codes words;
            take(now, part, after, words);
            add(words, table + part * kRows, parts - part, sums);
        }
        return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }

    /// The first codes of a place, if there is one.
    __device__ __forceinline__ void ask(const Place& place) {
        if (place.at < lookUps.end) {
            load(codesOf(place), lookUps.numParts(), areTogether(place.probe));
        }
    }

   private:
    /// The codes of this lane's vector of a place, from a part on; of fewer
    /// parts more, which mean nothing.
    __device__ __forceinline__ void take(
            const Place& now,
            int part,
            const Place& after,
            Codes& words) {
#pragma unroll
        for (int w = 0; w < kOfRead / 4; ++w) {
            words[w] = next[w];
        }
        const int left = lookUps.numParts() - part - kOfRead;
        if (left > 0) {
            load(codesOf(now) + part + kOfRead, left, areTogether(now.probe));
        } else {
            ask(after);
        }
    }

    /// This lane's codes of a place.
    __device__ __forceinline__ const uint8_t* codesOf(
            const Place& place) const {
        const auto& lists = lookUps.lists;
        const uint32_t vector = lookUps.vectorOf(place.at, place.probe);
        return static_cast<const uint8_t*>(lists.vectors[place.probe]) +
                int64_t(min(vector, lists.lengths[place.probe] - 1)) *
                lookUps.numParts();
    }

    /// Whether all codes of a list's vectors are read as words.
    __device__ __forceinline__ bool areTogether(uint32_t probe) const {
        const void* vectors = lookUps.lists.vectors[probe];
        return lookUps.numParts() % kOfRead == 0 &&
                reinterpret_cast<uintptr_t>(vectors) % kOfRead == 0;
    }

    /// Sixteen codes, `left` of which are there.
    __device__ __forceinline__ void load(
            const uint8_t* from,
            int left,
            bool together) {
        if (together) {
            loadCodeWords<kOfRead>(from, next);
            return;
        }
#pragma unroll
        for (int w = 0; w < kOfRead / 4; ++w) {
            next[w] = 0;
#pragma unroll
            for (int b = 0; b < 4; ++b) {
                if (4 * w + b < left) {
                    next[w] |= uint32_t(from[4 * w + b]) << 8 * b;
                }
            }
        }
    }

    /// Entries of some codes, `left` of which are there, to four sums.
    __device__ __forceinline__ static void add(
            const Codes& words,
            const float* from,
            int left,
            float (&sums)[4]) {
        const auto addAll = [&](auto isThere) {
#pragma unroll
            for (int i = 0; i < kOfRead; ++i) {
                if (isThere(i)) {
                    const uint32_t code = words[i / 4] >> i % 4 * 8 & 0xff;
                    sums[i % 4] += from[i * kRows + code];
                }
            }
        };
        if (left >= kOfRead) {
            addAll([](int) { return true; });
        } else {
            addAll([&](int i) { return i < left; });
        }
    }
};

} // namespace faiss_bits
