/// Distances of candidates where few queries probe a list.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/ivf/IvfParams.h"

namespace faiss_bits {

/// Components that such vectors have at most: one part of an arranged query.
constexpr int kIvfListDims = kIvfArrangedStep;

/// Codings whose groups lie in shared memory as they are; others go by
/// launchIvfRescore.
constexpr bool hasIvfListCandidates(ListCoding coding) {
    return coding == ListCoding::Float32 || coding == ListCoding::Scalar8;
}

struct IvfListCandidatesParams {
    /// A candidate has the number of its pair among those of its list in the
    /// place of its row (IvfCandidate::rowAndPlace).
    IvfRescoreParams rescore;
    /// Of a list, in shared memory; others are read where they are.
    uint32_t mostQueries = 0;
};

/// Queries of a list that lie in shared memory where so many candidates of each
/// query are scored list by list; 0: they are not. params: of bounds of all
/// lists.
uint32_t ivfListQueries(const IvfParams& params, int candidates);

/// As launchIvfRescore, bit by bit, after launchIvfChoice and launchIvfChosen
/// with byLists. sharedBytes: that a block may take.
template <Metric kMetric, ListCoding kCoding>
void launchIvfListCandidates(
        const IvfListCandidatesParams& params,
        size_t sharedBytes,
        int multiprocessors,
        cudaStream_t stream);

} // namespace faiss_bits
