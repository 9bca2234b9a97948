#include "research/queues/ResearchSelect.h"

#include "kernels/common/Error.h"
#include "kernels/select/SelectImplementation.h"
#include "research/queues/PartialBitonicSelect.h"
#include "research/queues/QueueProblem.h"
#include "research/queues/QueueSelect.h"

namespace faiss_bits {

namespace {

template <ResearchAlgorithm Algorithm>
constexpr SelectImplementation queueMethod(const char* name) {
    return {name,
            queueRefusal,
            [](const SelectProblem& problem) {
                return queueSelectWorkspaceBytes(
                        problem, queueSelectOptionsOf(Algorithm));
            },
            [](const SelectProblem& problem,
               Workspace workspace,
               cudaStream_t stream) {
                runQueueSelect(
                        problem,
                        queueSelectOptionsOf(Algorithm),
                        workspace,
                        stream);
            }};
}

constexpr SelectImplementation kPartialBitonic = {
        "partial_bitonic",
        queueRefusal,
        [](const SelectProblem& problem) {
            return partialBitonicWorkspaceBytes(problem, {});
        },
        [](const SelectProblem& problem,
           Workspace workspace,
           cudaStream_t stream) {
            runPartialBitonic(problem, {}, workspace, stream);
        }};

const struct {
    ResearchAlgorithm algorithm;
    SelectImplementation implementation;
} kAlgorithms[] = {
        {ResearchAlgorithm::PartialBitonic, kPartialBitonic},
        {ResearchAlgorithm::MergeQueue,
         queueMethod<ResearchAlgorithm::MergeQueue>("merge_queue")},
        {ResearchAlgorithm::BufferedSearch,
         queueMethod<ResearchAlgorithm::BufferedSearch>("buffered_search")},
        {ResearchAlgorithm::HierarchicalPartition,
         queueMethod<ResearchAlgorithm::HierarchicalPartition>(
                 "hierarchical_partition")},
        {ResearchAlgorithm::CombinedQueue,
         queueMethod<ResearchAlgorithm::CombinedQueue>("combined_queue")}};

const SelectImplementation* find(ResearchAlgorithm algorithm) {
    for (const auto& one : kAlgorithms) {
        if (one.algorithm == algorithm) {
            return &one.implementation;
        }
    }
    return nullptr;
}

const SelectImplementation& implementationOf(ResearchAlgorithm algorithm) {
    const SelectImplementation* one = find(algorithm);
    BITS_THROW_IF_NOT_FMT(
            one, "algorithm = %d is no ResearchAlgorithm", int(algorithm));
    return *one;
}

} // namespace

const std::vector<ResearchAlgorithm>& researchAlgorithms() {
    static const std::vector<ResearchAlgorithm> all = [] {
        std::vector<ResearchAlgorithm> list;
        for (const auto& one : kAlgorithms) {
            list.push_back(one.algorithm);
        }
        return list;
    }();
    return all;
}

const char* nameOf(ResearchAlgorithm algorithm) {
    const SelectImplementation* one = find(algorithm);
    return one ? one->name : "?";
}

size_t researchSelectWorkspaceBytes(
        ResearchAlgorithm algorithm,
        const SelectProblem& problem) {
    return workspaceBytesOf(implementationOf(algorithm), problem);
}

void runResearchSelect(
        ResearchAlgorithm algorithm,
        const SelectProblem& problem,
        Workspace workspace,
        cudaStream_t stream) {
    runImplementation(implementationOf(algorithm), problem, workspace, stream);
}

} // namespace faiss_bits
