#pragma once

#include <faiss/gpu/GpuDistance.h>

#include "faiss_bits/range/GpuRangeResult.h"
#include "kernels/common/Types.h"

namespace faiss {
struct RangeSearchResult;
}

namespace faiss_bits::gpu {

/// All vectors of a matrix that are nearer than a radius to each of some
/// queries, without an index: GpuIndexBitsFlat::range_search for the arguments
/// of bfKnnBits.
///
/// Shapes   vectors [numVectors, dims], or [dims, numVectors] if not
///          vectorsRowMajor; queries [numQueries, dims], row-major
/// Types    vectorType and queryType equal: F32, F16 (and BF16 where FAISS has
///          it)
/// Metric   in place of args.metric, which is not read; args.metricArg is the
///          p of Lp
/// Radius   as GpuIndexBitsFlat::range_search: any number but NaN
/// Result   new, for numQueries queries, on the host; canonical distances of
///          vectors and queries as they are given, in their type
/// maxResults  of all queries together: where more are in range it throws,
///          with their number; 0 (default): no limit
/// Ignored  args.k, the outputs, vectorNorms
/// Others   as GpuIndexBitsFlat::range_search, and the pointers, device and
///          errors of bfKnnBits
void bfRangeBits(
        faiss::gpu::GpuResourcesProvider* provider,
        const faiss::gpu::GpuDistanceParams& args,
        Metric metric,
        float radius,
        faiss::RangeSearchResult* result,
        idx_t maxResults = 0);

/// The same with results that stay on the device. Where it throws the result
/// holds nothing of use.
void bfRangeBitsOnDevice(
        faiss::gpu::GpuResourcesProvider* provider,
        const faiss::gpu::GpuDistanceParams& args,
        Metric metric,
        float radius,
        GpuRangeResult& result,
        idx_t maxResults = 0);

} // namespace faiss_bits::gpu
