#pragma once

#include "kernels/select/Select.h"
#include "kernels/select/short_rows/NarrowChunksLaunch.h"

namespace faiss_bits {

/// Numbers of a lane of NarrowChunks.cuh where it takes a problem, as it is
/// faster than the kernels that halve
/// (docs/design/selection_narrow_chunks.md); or 0.
int narrowChunksSorted(const SelectProblem& problem);

/// Its launch.
using NarrowChunksLaunch = void (*)(const ShortRowsParams&, cudaStream_t);
NarrowChunksLaunch narrowChunksLaunch(DataType type, int sorted);

} // namespace faiss_bits
