#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Types.h"
#include "kernels/common/Workspace.h"
#include "kernels/ivf/IvfKnn.h"
#include "kernels/ivf/IvfLists.h"

/// Lists of the selected vectors alone, copied to scratch: a search of them
/// finds what a search by bits finds, and reads no other vector.
namespace faiss_bits {

/// Whether it pays to count what is selected, for which the host waits for the
/// device, some 45 us in all: where a copy would pay if it was as much as is
/// expected, or the search takes long. Never of codes, which are not copied.
/// Reads the shape of the problem, its coding and mayWait.
bool countingSelectedPays(const IvfKnnProblem& problem, idx_t expected);

/// Whether the copy pays: whether it takes less than 1 / 1.2 of what a search
/// of all its queries saves. Rules fitted to times of an H200, of the vectors n
/// and the selected part s of them:
///
///     saved where queries and lists meet in tiles, of each vector that is not
///     selected: to read it at 1.8e12 bytes a second, and 0.0125 ps for each
///     component and query
///     else of each pair 0.7 ps a component, for 1 - (1 - s)^32 - s: groups of
///     which none is selected are skipped in any case
///     copy: 15 us, and at 2.25e12 bytes a second each selected vector that is
///     written and the sectors of 8 vectors that are read, n (1 - (1 - s)^8)
bool copyingSelectedPays(const IvfKnnProblem& problem, idx_t numSelected);

/// What is selected of lists with bits, counted. On the device.
struct IvfSelectedCount {
    uint32_t* beforeWords = nullptr; ///< selected before each word, [words + 1]
    uint32_t* beforeLists = nullptr; ///< and before each list, [numLists + 1]
    Workspace scan;

    /// Of lists of fewer than 2^32 vectors.
    IvfSelectedCount(const IvfLists& lists, WorkspaceSlices& slices);
};

void runIvfCountSelected(
        const IvfLists& lists,
        const IvfSelectedCount& count,
        cudaStream_t stream);

/// Memory of the copy. On the device.
struct IvfSelectedCopy {
    IvfLists lists; ///< of the copy: int64 ids, no bits

    /// For numSelected vectors. Interleaved, each list takes up to 32 vectors
    /// more, of zeros behind its last one.
    IvfSelectedCopy(
            const IvfLists& all,
            idx_t numSelected,
            ListLayout layout,
            WorkspaceSlices& slices);

    idx_t numGroups = 0;      ///< of 32 vectors, interleaved
    float* vectors = nullptr; ///< [numSelected or 32 numGroups, d]
    idx_t* ids = nullptr;     ///< of as many
    const void** listVectors = nullptr;
    const void** listIds = nullptr;
    int64_t* lengths = nullptr;
};

/// After the count: copies what is selected of float32 lists, in the order of
/// the lists. ids: those that the lists have, as their kind says.
void runIvfCopySelected(
        const IvfLists& all,
        const IvfSelectedCount& count,
        const IvfSelectedCopy& copy,
        cudaStream_t stream);

} // namespace faiss_bits
