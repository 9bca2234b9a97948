#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/common/Types.h"
#include "kernels/common/Workspace.h"
#include "kernels/ivf/IvfFilterBits.h"

/// Vectors of inverted lists by their ids. All pointers are on the device;
/// everything enqueues and never waits.
namespace faiss_bits {

/// Some ids that are looked for: keys [count], or first .. first + count - 1.
struct IvfKeys {
    const idx_t* keys = nullptr; ///< nullptr: those from `first` on
    idx_t first = 0;
    idx_t count = 0;
};

size_t ivfFindWorkspaceBytes(const IvfLists& lists, idx_t count);

/// Begins to look: nothing is found.
void runIvfBeginFind(
        const IvfKeys& keys,
        Workspace workspace,
        cudaStream_t stream);

/// Looks among some vectors: where two have an id, the one in the lower list,
/// at the lower place is found. Cost: all ids are read.
void runIvfFind(
        const IvfSlots& slots,
        const IvfKeys& keys,
        Workspace workspace,
        cudaStream_t stream);

/// Of the keys that are in no list, given keys of -1 aside, the least number,
/// firstNumber further, goes to *missing, if that is less.
void runIvfMissing(
        const IvfKeys& keys,
        Workspace workspace,
        idx_t firstNumber,
        uint64_t* missing,
        cudaStream_t stream);

/// The vectors that were found, decoded as searches decode them, to
/// out [count, d]; zeros for others.
void runIvfTakeFound(
        const IvfLists& lists,
        const IvfKeys& keys,
        Workspace workspace,
        float* out,
        cudaStream_t stream);

} // namespace faiss_bits
