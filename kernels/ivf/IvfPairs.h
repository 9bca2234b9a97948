/// Pairs by list where estimates are next: with fewer launches.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/ivf/IvfParams.h"

namespace faiss_bits {

/// What a search by estimates needs behind them, and what takes no time beside
/// the sums over lists.
struct IvfBegin {
    uint32_t* firstGroups = nullptr; // launchIvfGroups(); nullptr: nothing
    uint32_t* zeros = nullptr;       // to be zero, numZeros of them
    uint32_t numZeros = 0;
    uint32_t* zero = nullptr; // likewise, one; or nullptr
};

/// Zeros for counts of pairs, and behind them of tiles that are dealt out
/// (launchIvfFewEstimates).
void clearIvfCounts(const IvfParams& params, cudaStream_t stream);

/// Whether launchIvfColumns counts the pairs of params.lastProbe, which is not
/// 0, after clearIvfCounts.
bool areIvfPairsCounted(const IvfParams& params);

/// After clearIvfCounts: that of IvfParams.h, less what is done.
void launchIvfPairs(
        const IvfParams& params,
        int tileQueries,
        int tileVectors,
        bool areCounted,
        const IvfBegin& begin,
        cudaStream_t stream);

} // namespace faiss_bits
