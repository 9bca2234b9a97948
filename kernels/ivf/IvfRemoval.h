#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/common/Types.h"
#include "kernels/common/Workspace.h"
#include "kernels/ivf/IvfSelectedCopy.h"

/// Vectors that leave inverted lists. All pointers are on the device;
/// everything enqueues and never waits.
namespace faiss_bits {

/// Bytes for the removal of so many vectors.
size_t ivfRemovalWorkspaceBytes(idx_t numRemoved);

/// Moves the vectors that are selected out of lists, in place: into the first
/// of their places go the last of the others, from the end, as in FAISS. So
/// each list begins with those that stay. Lengths are the caller's to change.
/// Ids move with the vectors where lists have them.
///
/// lists  with bits of what is removed
/// count  of them, made
/// Cost   what is moved, once: at most as many vectors as are removed
void runIvfRemoval(
        const IvfLists& lists,
        const IvfSelectedCount& count,
        Workspace workspace,
        cudaStream_t stream);

/// Where vectors share bytes (ListCodes.h): zero bits behind the last vector of
/// each list, to the end of its group of 32.
void runIvfClearBehind(const IvfLists& lists, cudaStream_t stream);

/// Takes vectors from place lengths [numLists] of their list on out of `bits`,
/// those of a filter of the lists.
void runIvfDropBehind(
        const IvfLists& lists,
        const idx_t* lengths,
        uint32_t* bits,
        cudaStream_t stream);

} // namespace faiss_bits
