#pragma once

#include "kernels/device/Hash.h"

#if defined(__CUDACC__)
#define BITS_PLACES __host__ __device__ __forceinline__
#else
#define BITS_PLACES inline
#endif

namespace faiss_bits {

/// A sample is drawn in runs of 32 neighbouring columns, four a thread: memory
/// is read in pieces of 128 bytes, so that so many cost what one does.
constexpr int kSampleItems = 4;
constexpr int kSampleRun = 32;

/// Four neighbouring columns that a thread draws at a time.
struct SamplePlace {
    uint32_t column; ///< the first of them
    uint32_t turn;   ///< places that they are moved on by, among the groups
};

/// Where the sample of a row looks: one run in each of as many pieces of even
/// length, the same every time. Neighbours in a row are drawn by other threads
/// and blocks, into other groups. The benches lay out keys against it.
struct SamplePlaces {
    float piece;   // columns, at least 2 kSampleRun
    uint32_t last; // the last run that is whole begins here
    uint32_t seed;

    /// `parts` blocks of so many threads draw `places` places a thread from
    /// `cols` columns, at least kSampleRun. `row` is the number in the call. A
    /// row that its sample misled is sampled again, in other places.
    BITS_PLACES SamplePlaces(
            uint32_t cols,
            int threads,
            int places,
            uint32_t parts,
            uint32_t row,
            bool isAgain = false)
            : piece(float(cols) * kThreads / (float(threads) * places * parts)),
              last((cols - kSampleRun) & ~(kSampleRun - 1u)),
              seed(row * 0x85EBCA77u + (isAgain ? 0xC2B2AE3Du : 1u)) {}

    /// Of run `number`, what thread `lane` modulo kThreads draws. There are
    /// threads * places * parts / kThreads runs.
    BITS_PLACES SamplePlace at(uint32_t number, uint32_t lane) const {
        const uint32_t hash = mixBits(number * 0x9E3779B1u + seed);
        // So that the runs of two pieces are never the same.
        const float begin =
                number * piece + fractionOf(hash) * (piece - kSampleRun);
        const uint32_t aligned = uint32_t(begin) & ~(kSampleRun - 1u);
        const uint32_t run = aligned < last ? aligned : last;
        // Not the same place of every run: columns that have the same
        // remainder by 32 would meet in few groups.
        return {run + (lane + hash) % kThreads * kSampleItems,
                hash / kThreads % kSampleItems};
    }

    /// Neighbours that draw a run together.
    static constexpr int kThreads = kSampleRun / kSampleItems;
};

} // namespace faiss_bits

#undef BITS_PLACES
