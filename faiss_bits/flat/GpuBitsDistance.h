#pragma once

#include <faiss/gpu/GpuDistance.h>

#include "kernels/common/SearchMode.h"
#include "kernels/common/Types.h"

namespace faiss_bits::gpu {

/// Exact k nearest neighbours, or all distances, between two matrices, without
/// an index: faiss::gpu::bfKnn with our kernels behind it.
///
/// Shapes   vectors [numVectors, dims], or [dims, numVectors] if not
///          vectorsRowMajor; queries likewise; outDistances and outIndices
///          [numQueries, k]; with k = -1 outDistances is [numQueries,
///          numVectors] and outIndices is not used
/// Types    vectorType and queryType equal: F32, F16 (and BF16 where FAISS has
///          it); outIndicesType I32 or I64; distances are float32
/// Result   as GpuIndexBitsFlat::search; all distances (k = -1) as they are,
///          NaN included
/// Mode     as GpuIndexBitsFlat::search_mode; Certified: distances of vectors
///          and queries as they are given, in their type. All distances are
///          always plain. A mode that is none is an error
/// Metrics  as GpuIndexBitsFlat; metricArg is the p of METRIC_Lp, and has no
///          meaning for others
/// Limits   k >= 1, also above numVectors, or k == -1; numVectors < 2^31, or
///          where FAISS has so many (since 1.7.4) up to 2^37 - 2^11 row-major
///          vectors with k >= 1 and outIndicesType I64 (tested with
///          2^31 + 1000, by the kernels' own function); no rows on either side
///          are fine
/// Norms    vectorNorms [numVectors]: squared L2 norms, read for L2 only
/// Ignored  with ignoreOutDistances, outDistances may be null; host memory is
///          not written then, device memory may be
/// Pointers each on the host or on the device that runs, in any mix. The
///          vectors must fit on the GPU; queries and results go through it in
///          pages, copied while others are computed
/// Stream   args.device (where FAISS has it; -1 or absent: the current
///          device); ordered on the resources' default stream there. With
///          pointers to the device alone it enqueues and returns, unless memory
///          comes from cudaMalloc (Memory). With results on the host it can be
///          interrupted (faiss::InterruptCallback): "computation interrupted"
/// Memory   as GpuIndexBitsFlat; host vectors take their size, and pages of
///          host queries and results 32 MiB, or two queries' where that is more
/// Errors   FaissException naming the argument and its value, before anything
///          is enqueued; or when memory is short
void bfKnnBits(
        faiss::gpu::GpuResourcesProvider* provider,
        const faiss::gpu::GpuDistanceParams& args,
        SearchMode mode = SearchMode::Certified);

/// The same by a metric of ours, in place of args.metric: Metric::Cosine and,
/// before FAISS 1.7.4, Metric::Jaccard have no number in FAISS. Cosine: largest
/// first; a zero vector has cosine 0 with all.
void bfKnnBits(
        faiss::gpu::GpuResourcesProvider* provider,
        const faiss::gpu::GpuDistanceParams& args,
        Metric metric,
        SearchMode mode = SearchMode::Certified);

} // namespace faiss_bits::gpu
