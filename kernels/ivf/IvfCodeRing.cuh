/// The codes that the lanes of a warp look up (IvfHeldTables.cuh), some rounds
/// ahead of the look-ups, whatever list they are of: through shared memory,
/// where they take no registers until they are used. Codes of vectors that are
/// not selected come, too.
#pragma once

#include "kernels/device/AsyncCopy.cuh"
#include "kernels/ivf/IvfBoundedScans.h"

namespace faiss_bits {

/// Of a warp. A lane copies the codes of its own vectors, and reads no others:
/// nothing waits for other lanes. kPieces: of a round, of kIvfCodeBytes each,
/// which lie kIvfCodePieceBytes apart; the last round of a vector may have
/// fewer.
template <class LookUps, int kPieces>
struct IvfCodeRing {
    static constexpr int kStages = kIvfCodePieces / kPieces; // of rounds
    static_assert(kStages >= 3 && kStages * kPieces == kIvfCodePieces);
    static_assert(LookUps::kOfRead == kIvfCodeBytes);
    static_assert(LookUps::kThreads * kIvfCodeBytes == kIvfCodePieceBytes);

    using Place = typename LookUps::Place;

    const LookUps& lookUps;
    uint32_t pieces;                // this lane's first one, in shared memory
    Place place;                    // what is copied next
    const uint8_t* codes = nullptr; // of this lane's vector there
    int part = 0;
    int stage = 0; // of the next round that is taken

    /// With the block's first columns, which are of this probe.
    __device__ __forceinline__
    IvfCodeRing(const LookUps& ofLists, uint8_t* memory, uint32_t probe)
            : lookUps(ofLists),
              pieces(sharedAddress(memory) + threadIdx.x * kIvfCodeBytes),
              place(lookUps.firstOf(probe)) {
        goTo();
#pragma unroll
        for (int s = 0; s < kStages - 1; ++s) {
            copy(s);
        }
    }

    /// The next round of codes, of whatever place: where this lane's are in
    /// shared memory until the next call.
    __device__ __forceinline__ uint32_t take() {
        // And the stage before this one has been read.
        waitForCopies<kStages - 2>();
        const uint32_t from = addressOf(stage);
        copy(stage == 0 ? kStages - 1 : stage - 1);
        stage = stage == kStages - 1 ? 0 : stage + 1;
        return from;
    }

   private:
    __device__ __forceinline__ uint32_t addressOf(int ofStage) const {
        return pieces + uint32_t(ofStage * kPieces * kIvfCodePieceBytes);
    }

    __device__ __forceinline__ void goTo() {
        if (place.at < lookUps.end) {
            codes = lookUps.codesOf(place);
        }
    }

    __device__ __forceinline__ void copy(int to) {
        if (place.at < lookUps.end) {
            const int parts = lookUps.numParts();
#pragma unroll
            for (int p = 0; p < kPieces; ++p) {
                const int left = parts - part - p * kIvfCodeBytes;
                if (p == 0 || left > 0) {
                    copyPiece(
                            addressOf(to) + p * kIvfCodePieceBytes,
                            codes + part + p * kIvfCodeBytes,
                            left);
                }
            }
            part += kPieces * kIvfCodeBytes;
            if (part >= parts) {
                part = 0;
                lookUps.advance(place);
                goTo();
            }
        }
        endCopies();
    }

    /// Of which `left` codes are there.
    __device__ __forceinline__ static void copyPiece(
            uint32_t to,
            const uint8_t* from,
            int left) {
        if (left >= kIvfCodeBytes &&
            reinterpret_cast<uintptr_t>(from) % kIvfCodeBytes == 0) {
            copyAsync(to, from);
        } else {
            typename LookUps::Codes words;
            LookUps::loadCodes(from, left, false, words);
            asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to),
                         "r"(words[0]),
                         "r"(words[1]),
                         "r"(words[2]),
                         "r"(words[3])
                         : "memory");
        }
    }
};

} // namespace faiss_bits
