#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Types.h"

namespace faiss_bits {

/// Vectors that follow each other in a part of a collection and in the whole.
struct IdSegment {
    idx_t inPart = 0;  ///< number of the first, in the part
    idx_t inWhole = 0; ///< in the whole
};

/// Numbers of vectors in a part become those in the whole, in place; -1 stays.
///
/// Shapes   segments [numSegments], ascending by both members, the first with
///          inPart = 0; a segment ends where the next one begins. ids [count],
///          below the part's size. All on the device
/// Stream   enqueues and never waits
/// Errors   throws Error on a bad argument (named) or a failed launch
/// Cost     16 bytes an id, and log2(numSegments) reads that lie in a cache
void runMapIds(
        const IdSegment* segments,
        idx_t numSegments,
        idx_t* ids,
        idx_t count,
        cudaStream_t stream);

} // namespace faiss_bits
