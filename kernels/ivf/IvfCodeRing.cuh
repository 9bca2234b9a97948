/// The codes that the lanes of a warp look up (IvfHeldTables.cuh), some rounds
/// ahead of the look-ups, whatever list they are of: through shared memory,
/// where they take no registers until they are used. Codes of vectors that are
/// not selected come, too.
#pragma once

#include "kernels/device/AsyncCopy.cuh"
#include "kernels/device/WarpReduce.cuh"
#include "kernels/ivf/IvfBoundedScans.h"

namespace faiss_bits {

/// Of a warp. A lane copies the codes of its own vectors, and reads no others:
/// nothing waits for other lanes. Order: IvfPartOrder, of whose rounds each
/// piece has kIvfCodeBytes, and pieces lie kIvfCodePieceBytes apart; what is
/// behind the last code is anything.
template <class LookUps, class Order>
struct IvfCodeRing {
    static constexpr int kPieces = Order::kPieces;           // of a round
    static constexpr int kOfRound = Order::kSlots;           // codes
    static constexpr int kStages = kIvfCodePieces / kPieces; // of rounds
    static_assert(kStages >= 3 && kStages * kPieces == kIvfCodePieces);
    static_assert(LookUps::kThreads * kIvfCodeBytes == kIvfCodePieceBytes);
    static constexpr uint32_t kWarps = LookUps::kWarps;

    const LookUps& lookUps;
    int numParts;
    uint32_t pieces; // this lane's first one, in shared memory
    int stage = 0;   // of the next round that is taken
    // What is copied next: 32s of columns of the row, and where their list
    // ends.
    uint32_t at;
    uint32_t last;
    uint32_t probe;
    uint32_t left = 0;    // vectors of the list from this lane's on
    const uint8_t* codes; // of this lane's vector
    int part = 0;

    /// With the block's first columns, which are of this probe.
    __device__ __forceinline__
    IvfCodeRing(const LookUps& ofLists, uint8_t* memory, uint32_t first)
            : lookUps(ofLists),
              // As a parameter it is read again for every round: a wait.
              numParts(__reduce_max_sync(kFullWarp, ofLists.numParts())),
              pieces(sharedAddress(memory) + threadIdx.x * kIvfCodeBytes),
              at(lookUps.begin + threadIdx.x / kWarpSize),
              probe(first) {
        enter();
#pragma unroll 1
        for (int s = 0; s < kStages; ++s) {
            copy(s);
        }
    }

    /// The next round of codes, of whatever columns: where this lane's are in
    /// shared memory until drop().
    __device__ __forceinline__ uint32_t take() const {
        waitForCopies<kStages - 1>();
        return addressOf(stage);
    }

    /// What take() gave has been read.
    __device__ __forceinline__ void drop() {
        copy(stage);
        stage = stage == kStages - 1 ? 0 : stage + 1;
    }

   private:
    __device__ __forceinline__ uint32_t addressOf(int ofStage) const {
        return pieces + uint32_t(ofStage * kPieces * kIvfCodePieceBytes);
    }

    /// The list that has the columns, this lane's vector of it.
    __device__ __forceinline__ void enter() {
        last = lookUps.lastOf(probe);
        while (at >= last && last < lookUps.end) {
            last = lookUps.lastOf(++probe);
        }
        if (at < last) {
            const uint32_t vector = lookUps.vectorOf(at, probe);
            left = lookUps.leftOf(vector, probe);
            codes = static_cast<const uint8_t*>(lookUps.lists.vectors[probe]) +
                    int64_t(vector) * numParts;
        }
    }

    __device__ __forceinline__ void copy(int to) {
        if (at < last) {
            if (left > 0) {
                copyCodes(addressOf(to), numParts - part);
            }
            part += kOfRound;
            if (Order::kRounds == 1 || part >= numParts) {
                part = 0;
                at += kWarps;
                left = LookUps::afterTurn(left);
                codes += int64_t(LookUps::kThreads) * numParts;
                if (at >= last) {
                    enter();
                }
            }
        }
        endCopies();
    }

    /// Of this lane's vector a round, or the codes that are left.
    __device__ __forceinline__ void copyCodes(uint32_t to, int ofVector) const {
        const uint8_t* from = codes + part;
        // The same of all vectors of a list.
        const uint32_t unit = uint32_t(reinterpret_cast<uintptr_t>(from)) |
                uint32_t(ofVector);
        if (unit % kIvfCodeBytes == 0) {
            copyAsync(to, from);
            if (kPieces > 1 && ofVector > kIvfCodeBytes) {
                copyAsync(to + kIvfCodePieceBytes, from + kIvfCodeBytes);
            }
            return;
        }
        const int count = min(ofVector, kOfRound);
        const auto placeOf = [&](int code) {
            return to +
                    uint32_t(
                            code / kIvfCodeBytes * kIvfCodePieceBytes +
                            code % kIvfCodeBytes);
        };
        if (unit % 4 == 0) {
#pragma unroll 1
            for (int i = 0; i < count; i += 4) {
                copyAsyncByL1<4>(placeOf(i), from + i);
            }
        } else {
#pragma unroll 1
            for (int i = 0; i < count; ++i) {
                asm volatile("st.shared.u8 [%0], %1;" ::"r"(placeOf(i)),
                             "r"(uint32_t(from[i]))
                             : "memory");
            }
        }
    }
};

} // namespace faiss_bits
