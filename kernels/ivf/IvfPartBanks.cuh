/// Look-ups in a list's table, whose entries lie so that those of 32 lanes take
/// one turn of the banks, whatever the codes (IvfPartOrder.h). Where all lanes
/// look up one part, its entries are in any bank, and that takes 3.5 turns.
#pragma once

#include "kernels/device/WarpReduce.cuh"
#include "kernels/ivf/IvfPartOrder.h"

namespace faiss_bits {

/// Of a lane. kPartDims: components of a part, 2, 4, 8 or 16.
template <int kPartDims>
struct IvfPartBanks {
    using Order = IvfPartOrder<kPartDims>;
    /// A row has the entries of a code, of two lists.
    static constexpr int kListBytes = kIvfBanks * int(sizeof(float));
    static constexpr int kRowBytes = 2 * kListBytes;
    static constexpr int kRoundBytes = kIvfCodebookRows * kRowBytes;
    /// Of two rounds, or of a round and two lists more.
    static constexpr int kBytes = 2 * kRoundBytes;
    static_assert(
            kWarpSize == kIvfBanks && kRowBytes == 256 && kListBytes == 0x80 &&
            kRoundBytes == 1 << 16);

    bool beginsWithSecond; // piece of codes
    uint32_t firstWord;    // of a piece, in bytes
    uint32_t firstPlaces[2];
    uint32_t turned;

    __device__ __forceinline__ IvfPartBanks() {
        const int lane = int(threadIdx.x) % kWarpSize;
        const int word = Order::firstWord(lane);
        beginsWithSecond = word >= Order::kWordsOfPiece;
        firstWord = uint32_t(word) % Order::kWordsOfPiece * 4;
        firstPlaces[0] = Order::placesOf(lane, 0, 0);
        firstPlaces[1] = Order::placesOf(lane, 1, 0);
        turned = Order::turnedOf(lane);
    }

    /// Adds the entries of a round of a list to four sums. codes: in shared
    /// memory, of this lane's vector; second: from the first piece of them to
    /// the second one, or 0 if there is none, as its parts are zeros whatever
    /// the codes; tables: in shared memory; of: Order::tableOf().
    __device__ __forceinline__ void add(
            uint32_t codes,
            uint32_t second,
            uint32_t tables,
            uint32_t of,
            float (&sums)[4]) const {
        const uint32_t own = codes + (beginsWithSecond ? second : 0);
        const uint32_t other = codes + (beginsWithSecond ? 0 : second);
        uint32_t places[] = {firstPlaces[0] | of, firstPlaces[1] | of};
        // Else they are kept for each word, and take the registers of look-ups.
        asm volatile("" : "+r"(places[0]), "+r"(places[1]));
#pragma unroll
        for (int w = 0; w < Order::kWords; ++w) {
            const uint32_t from =
                    (w < Order::kWordsOfPiece ? own : other) + firstWord;
            const uint32_t four = __byte_perm(
                    loadWord(from ^ (w % Order::kWordsOfPiece * 4)), 0, turned);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                sums[i] += __uint_as_float(loadWord(
                        tables +
                        __byte_perm(
                                four,
                                places[i / 2] ^ (0x1010u * uint32_t(w)),
                                Order::offsetBy(i))));
            }
        }
    }

   private:
    __device__ __forceinline__ static uint32_t loadWord(uint32_t shared) {
        uint32_t word;
        asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(shared));
        return word;
    }
};

} // namespace faiss_bits
