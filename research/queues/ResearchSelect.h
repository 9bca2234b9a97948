#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "kernels/select/Select.h"

namespace faiss_bits {

/// The selections of the papers that are here to compare with: none of them is
/// in bits_kernels, and runSelect does not know them.
enum class ResearchAlgorithm {
    PartialBitonic,        ///< Hanak 2023, 4.1.1 to 4.1.4, without a buffer
    MergeQueue,            ///< Tang 2015: Merge Queue with aligned merges
    BufferedSearch,        ///< Tang 2015: Buffered Search with local sort
    HierarchicalPartition, ///< Tang 2015: Hierarchical Partition, G = 4
    CombinedQueue          ///< Tang 2015: the three together
};

/// Every one of them.
const std::vector<ResearchAlgorithm>& researchAlgorithms();

/// "partial_bitonic", "merge_queue" and so on; "?" for no such algorithm.
const char* nameOf(ResearchAlgorithm algorithm);

/// Scratch bytes that runResearchSelect needs. Host only, no CUDA call. Throws
/// what runResearchSelect throws for a bad shape.
size_t researchSelectWorkspaceBytes(
        ResearchAlgorithm algorithm,
        const SelectProblem& problem);

/// Selects the k best keys of every row by a method of the papers, with the
/// options that queueSelectOptionsOf and PartialBitonicOptions{} have.
///
/// Contract as runSelect, always sorted; problem.algorithm is not read
/// Limits   k <= kMaxQueueK (QueueSelect.h); no given ids, no biases
/// Stream   enqueues on `stream` and never waits
/// Memory   researchSelectWorkspaceBytes(algorithm, problem)
/// Errors   throws Error on a bad argument (named), on a problem that the
///          method cannot take (named, with the reason) or a failed launch
/// Source   docs/algorithms_differences.md, "The queue methods"
void runResearchSelect(
        ResearchAlgorithm algorithm,
        const SelectProblem& problem,
        Workspace workspace,
        cudaStream_t stream);

} // namespace faiss_bits
