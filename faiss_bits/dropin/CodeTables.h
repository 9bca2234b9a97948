/// What our kernels decode codes by, made of what FAISS gives its scans.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Types.h"

namespace faiss_bits::dropin {

/// The residuals of a list have one base; FAISS tells it of each probe.
struct BasesOfProbes {
    const float* bases = nullptr; ///< [numProbes, d]
    /// [numProbes]; numbers outside 0..numLists-1: no list.
    const idx_t* probes = nullptr;
    idx_t numProbes = 0;
    idx_t numLists = 0;
    int d = 0;
};

/// centroids [numLists, d]: of every list that is probed its base. Others are
/// zero, or not written. places [numLists]: scratch.
///
/// Stream   enqueues on `stream`
/// Errors   throws Error on a failed launch
/// Cost     a read and a write of d floats for each list, or probe if those
///          are fewer
void gatherCentroids(
        const BasesOfProbes& problem,
        float* centroids,
        idx_t* places,
        cudaStream_t stream);

/// result [parts, codes, dims] of codebook [parts, dims, codes].
///
/// Stream   enqueues on `stream`
/// Errors   throws Error on a failed launch
void transposeCodebook(
        const float* codebook,
        int parts,
        int dims,
        int codes,
        float* result,
        cudaStream_t stream);

} // namespace faiss_bits::dropin
