#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Workspace.h"
#include "kernels/knn/FlatKnn.h"
#include "kernels/range/RangeSink.h"

/// All vectors of a matrix that are near enough, exactly.
namespace faiss_bits {

/// How runFlatRange goes about a problem: made once from its shape, it says
/// what scratch to bring and then goes to the run.
/// kernels/range/FlatRangePlan.h has what is in it.
struct FlatRangePlan;

/// The plan of a range search. Of the problem k, mode, outputs and allowedIds
/// are not read. The plan whose scratch takes at most maxBytes, or that with
/// the least that works. Host only, no CUDA call. Throws what runFlatKnn throws
/// for a bad shape.
FlatRangePlan planFlatRange(const FlatKnnProblem& problem, size_t maxBytes);

/// Finds the vectors whose distance is below the radius (similarities: above
/// it) for every query, and hands them to `sink`, of each in ascending ids.
///
/// Result   canonical distances (kernels/canonical/Distance.h), compared
///          strictly; NaN is in no range; -0 equals +0. Ascending ids. The same
///          bits whatever the scratch, the batch and the device, which decide
///          the parts alone
/// Radius   any number; L2 has no result for one that is not above zero
/// Stream   waits for the device, once or more for every tile of queries
/// Memory   plan.bytes. A bit for every pair of a tile's queries and the
///          vectors, 8 bytes for each of some candidates, and what runFlatKnn
///          says of a search without a matrix (the image of the vectors, where
///          none is given)
/// Errors   throws Error on a bad argument (named), for a radius that is NaN, a
///          failed launch, and what `sink` throws
/// Cost     the scan of a k-NN search of the same batch (kernels/knn/fused),
///          with limits from the radius; for each vector within the proven
///          bound of it a read of 4 d bytes; or, of tiles where that is many
///          percent of all pairs, canonical distances of all of them
/// Source   Barrientos et al. 2012, IV-A (brute force; without its output)
void runFlatRange(
        const FlatRangePlan& plan,
        const FlatKnnProblem& problem,
        float radius,
        Workspace workspace,
        cudaStream_t stream,
        RangeSink& sink);

} // namespace faiss_bits
