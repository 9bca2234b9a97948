#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Types.h"
#include "kernels/select/Select.h"
#include "kernels/select/large_k/MultiPassParams.h"

namespace faiss_bits {

/// Names of the compiled instances: types of rows of keys.
/// kernels/select/Select.cmake lists them.
struct MultiPassFloat;
struct MultiPassHalf;
struct MultiPassBFloat16;
struct MultiPassBiased;

/// The launches that depend on the type of the keys. Each enqueues one kernel
/// for a batch of rows.
struct MultiPassLaunches {
    using Launch = void (*)(const MultiPassParams&, cudaStream_t);

    Launch drawSplitters;  // one block a row
    Launch countSplitters; // rows * splits blocks
    Launch countDigits;    // rows * splits blocks
    Launch partition;      // rows * splits blocks
    Launch finish;         // one block a row
    Launch match;          // rows * tiles blocks
    Launch listAll;        // rows * splits blocks
    Launch bitsGlobal;     // rows * splits blocks
};

/// Columns that a block of `match` reads; a tile of every type of keys.
constexpr uint32_t kMatchTile = 4096;

template <class Keys>
void getMultiPassLaunches(MultiPassLaunches& launches);

/// Those for the problem's keys.
MultiPassLaunches multiPassLaunches(const SelectProblem& problem);

} // namespace faiss_bits
