#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Types.h"
#include "kernels/common/Workspace.h"
#include "kernels/ivf/IvfKnn.h"

/// Lists of the selected vectors alone, copied to scratch: a search of them
/// finds what a search by bits finds, and reads no other vector.
namespace faiss_bits {

/// Whether it pays to know how many vectors are selected, for which the host
/// waits for the device, some 45 us in all: where queries and lists meet in
/// tiles, or the search takes 0.6 ms by the rates below. Never of codes, which
/// are not copied. Reads the shape of the problem, its coding and mayWait.
bool countingSelectedPays(const IvfKnnProblem& problem);

/// Whether the copy pays, by what a search of all its queries saves. The rule:
/// pairs that are saved, times 0.05 ps for each component where queries and
/// lists meet in tiles and 0.9 ps where every query reads its lists, against
/// twice 15 us and 4 d bytes a vector, at 2.25e12 bytes a second, for each
/// selected one written and for eight read, or all.
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
    IvfLists lists; ///< of the copy: rows, int64 ids, no bits

    /// For numSelected vectors.
    IvfSelectedCopy(
            const IvfLists& all,
            idx_t numSelected,
            WorkspaceSlices& slices);

    float* vectors = nullptr; ///< [numSelected, d]
    idx_t* ids = nullptr;     ///< [numSelected]
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
