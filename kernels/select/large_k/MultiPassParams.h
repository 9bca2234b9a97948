#pragma once

#include <cstdint>

#include "kernels/select/SelectParams.h"
#include "kernels/select/large_k/CompositeLayout.h"

namespace faiss_bits {

/// Entries of a row that one block selects among without another pass.
constexpr uint32_t kMultiPassBase = 2048;
/// Buckets of Sample Select, one more than it has splitters.
constexpr int kSampleBuckets = 256;
/// Buckets of Radix Select: digits of 11 bits.
constexpr int kDigitBits = 11;
constexpr int kDigitBuckets = 1 << kDigitBits;

/// Where the candidates of a row are.
enum class CandidateSource : uint32_t { Keys, BufferA, BufferB };

/// What a row's passes hand on. It lives on the device: the host enqueues a
/// fixed number of passes, and rows that need fewer leave early.
struct RowState {
    uint64_t lo; // the candidates are the source's entries in [lo, hi]
    uint64_t hi;
    uint32_t count;  // of the candidates
    uint32_t wanted; // of them that belong to the result, 1 to count
    uint32_t taken;  // of the result that are written already (one stage)
    CandidateSource source;
    uint32_t sourceCount; // entries of the source
    uint32_t unused; // a state is read in words of 8 bytes: no part unwritten
};

/// What the multi-pass kernels get by value, for one batch of rows.
struct MultiPassParams {
    SelectParams select;  // firstRow: of the batch
    uint32_t rows = 0;    // of the batch
    uint32_t wanted = 0;  // min(k, cols), at least 1
    uint32_t splits = 1;  // blocks of a row
    uint32_t pass = 0;    // number of this pass
    bool oneStage = true; // writes what lies below the k-th's bucket at once
    uint64_t seed = 0;    // of the samples

    RowState* states[2] = {};        // [rows] before and after an even pass
    uint64_t* splitters = nullptr;   // [rows, kSampleBuckets]
    uint32_t* prefixes = nullptr;    // [rows, splits, buckets], inclusive sums
    uint32_t* lessOffsets = nullptr; // [rows, splits], places in the result
    uint32_t* sameOffsets = nullptr; // [rows, splits], places in the buffer
    uint64_t* buffers[2] = {};       // [rows, capacities[i]]
    uint32_t capacities[2] = {};

    uint64_t* limits = nullptr;     // [rows], the k-th entries (two stages)
    uint64_t* tileStates = nullptr; // [rows, tiles]
    uint32_t* ticket = nullptr;     // next tile of the batch
    uint32_t tiles = 0;             // of a row

    // Bits with its list in global memory.
    uint64_t* lists = nullptr; // [rows, splits, listCapacity]
    uint32_t listCapacity = 0;
    uint32_t segment = 0;           // columns, or entries of `from`, of a split
    const uint64_t* from = nullptr; // [rows, fromStride], the last pass's best
    uint32_t fromCount = 0;         // of a row
    uint32_t fromStride = 0;
    uint64_t* best = nullptr; // [rows, bestStride], wanted a split; else result
    uint32_t bestStride = 0;

    // Entries of the result for the sort, [rows, wanted], as composites if
    // `layout` says so. nullptr: straight to the caller.
    uint64_t* outEntries = nullptr;
    CompositeLayout layout;
};

/// Columns of one split when `count` are shared by `splits` blocks: whole
/// tiles, so that loads stay aligned.
constexpr uint32_t kSplitGrain = 4096;

} // namespace faiss_bits
