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
/// Metric   goes before args.metric; metricArg is the p of Lp
/// Result   new, for numQueries queries, on the host; canonical distances of
///          vectors and queries as they are given, in their type
/// Most     results of all queries together; 0: any number
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

/// The same with results that stay on the device.
void bfRangeBitsOnDevice(
        faiss::gpu::GpuResourcesProvider* provider,
        const faiss::gpu::GpuDistanceParams& args,
        Metric metric,
        float radius,
        GpuRangeResult& result,
        idx_t maxResults = 0);

} // namespace faiss_bits::gpu
