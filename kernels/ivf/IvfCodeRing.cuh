/// The codes that the lanes of a warp look up (IvfBookLookUps.cuh), some steps
/// ahead of the look-ups, whatever list they are of: through shared memory,
/// where they take no registers until they are used. Codes of vectors that are
/// not selected come, too.
#pragma once

#include "kernels/device/AsyncCopy.cuh"
#include "kernels/ivf/IvfBoundedScans.h"

namespace faiss_bits {

/// Of a warp. A lane copies the codes of its own vectors, and reads no others:
/// nothing waits for other lanes.
template <class LookUps>
struct IvfCodeRing {
    static constexpr int kStages = kIvfCodeStages;
    static constexpr int kStageBytes = kIvfCodeStageBytes; // of a block
    static_assert(LookUps::kOfRead == kIvfCodeBytes);
    static_assert(LookUps::kThreads * kIvfCodeBytes == kStageBytes);

    using Place = typename LookUps::Place;

    const LookUps& lookUps;
    uint4* stages;                  // this lane's place in the first stage
    Place place;                    // what is copied next
    const uint8_t* codes = nullptr; // of this lane's vector there
    int part = 0;
    int stage = 0; // of the next step that is taken

    /// With the block's first columns, which are of this probe.
    __device__ __forceinline__
    IvfCodeRing(const LookUps& ofLists, uint8_t* memory, uint32_t probe)
            : lookUps(ofLists),
              stages(reinterpret_cast<uint4*>(memory) + threadIdx.x),
              place(lookUps.firstOf(probe)) {
        goTo();
#pragma unroll
        for (int s = 0; s < kStages - 1; ++s) {
            copy(s);
        }
    }

    /// As LookUps::HeldCodes: the next codes, of whatever place.
    __device__ __forceinline__ void take(
            const Place&,
            int,
            const Place&,
            typename LookUps::Codes& words) {
        waitForCopies<kStages - 2>();
        const uint4 four = stages[stage * LookUps::kThreads];
        words[0] = four.x;
        words[1] = four.y;
        words[2] = four.z;
        words[3] = four.w;
        goOn();
    }

    __device__ __forceinline__ void skip(const Place&) {
        for (int p = 0; p < lookUps.numParts(); p += kIvfCodeBytes) {
            // Before another copy goes to where it goes.
            waitForCopies<kStages - 2>();
            goOn();
        }
    }

   private:
    /// To the next step, and copies into the stage of the one before this.
    __device__ __forceinline__ void goOn() {
        copy(stage == 0 ? kStages - 1 : stage - 1);
        stage = stage == kStages - 1 ? 0 : stage + 1;
    }

    __device__ __forceinline__ void goTo() {
        if (place.at < lookUps.end) {
            codes = lookUps.codesOf(place);
        }
    }

    __device__ __forceinline__ void copy(int to) {
        if (place.at < lookUps.end) {
            const int parts = lookUps.numParts();
            const uint8_t* from = codes + part;
            uint4* slot = stages + to * LookUps::kThreads;
            if (parts - part >= kIvfCodeBytes &&
                reinterpret_cast<uintptr_t>(from) % kIvfCodeBytes == 0) {
                copyAsync(sharedAddress(slot), from);
            } else {
                typename LookUps::Codes words;
                LookUps::loadCodes(from, parts - part, false, words);
                *slot = make_uint4(words[0], words[1], words[2], words[3]);
            }
            part += kIvfCodeBytes;
            if (part >= parts) {
                part = 0;
                lookUps.advance(place);
                goTo();
            }
        }
        endCopies();
    }
};

} // namespace faiss_bits
