#pragma once

#include <cuda_runtime_api.h>

#include "kernels/survivors/ListParams.h"

namespace faiss_bits {

/// Up to which key a list is known to be complete, and what is flagged
/// (SurvivorOutput).
struct ProofParams {
    const float* complete = nullptr; // [rows]
    uint8_t* flags = nullptr;        // [rows, 2]
};

static_assert(!hasTailPadding<ProofParams>());

/// What finishes lists that may lack entries.
struct ProvenListsParams : KeySource, ResultParams, ListParams, ProofParams {};

/// Enqueues the finish of `rows` lists of float keys by one block each, for
/// params.k <= kMaxFinishK, and the flags of those that are not proved. usual:
/// entries that most rows have no more than, or 0; it decides speed alone, and
/// is no less than params.k.
void launchProvenLists(
        const ProvenListsParams& params,
        unsigned rows,
        idx_t usual,
        cudaStream_t stream);

} // namespace faiss_bits
