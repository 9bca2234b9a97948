#pragma once

#include <cuda_runtime_api.h>

#include "kernels/select/SelectParams.h"

namespace faiss_bits {

/// Names of the compiled instances. kernels/select/Select.cmake lists which of
/// them exist and writes one source file for each into the build folder.
struct FloatKeys;
struct HalfKeys;
struct BFloat16Keys;
struct BiasedKeys;
struct FloatCandidates; // candidates of float rows
struct HalfCandidates;
struct BFloat16Candidates;

/// Enqueue one launch. `blocks` is rows * splits of this launch.
template <class Keys, int Items>
void launchBitsSelect(
        const SelectParams& params,
        unsigned blocks,
        cudaStream_t stream);

template <class Keys>
void launchBestSelect(
        const SelectParams& params,
        unsigned blocks,
        cudaStream_t stream);

/// The last pass of k = 1: one block a row takes the least of its candidates.
template <class Keys>
void launchBestOfParts(
        const SelectParams& params,
        unsigned blocks,
        cudaStream_t stream);

} // namespace faiss_bits
