#pragma once

#include <string>
#include <vector>

#include "research/queues/PartialBitonicSelect.h"
#include "research/queues/QueueSelect.h"
#include "research/queues/ResearchSelect.h"
#include "tests/select/SelectHarness.h"
#include "tests/select/SelectMethod.h"

/// Runs the queue methods and partial bitonic sort with options of their own
/// and holds the result against the oracle, as SelectHarness.h does for
/// runSelect.
namespace faiss_bits::test {

inline const std::vector<DataType> kKeyTypes = {
        DataType::Float32,
        DataType::Float16,
        DataType::BFloat16};

inline std::string describe(const QueueSelectOptions& o) {
    std::string text = o.queue == QueueKind::Insertion ? "insertion"
            : o.queue == QueueKind::Heap               ? "heap"
                                                       : "merge";
    text += o.aligned ? " aligned" : "";
    text += !o.buffered       ? ""
            : o.flushTogether ? " buffer together"
                              : " buffer alone";
    text += o.localSort ? " sorted" : "";
    text += " G=" + std::to_string(o.partition);
    text += " threadsPerRow=" + std::to_string(o.threadsPerRow);
    text += " m=" + std::to_string(o.firstLevel);
    text += o.memory == QueueMemory::Auto     ? ""
            : o.memory == QueueMemory::Shared ? " shared"
                                              : " global";
    return text;
}

inline SelectMethod methodOf(const QueueSelectOptions& options) {
    return {describe(options),
            false,
            false,
            [options](const SelectProblem& p) {
                return queueSelectWorkspaceBytes(p, options);
            },
            [options](const SelectProblem& p, Workspace w, cudaStream_t s) {
                runQueueSelect(p, options, w, s);
            }};
}

inline std::string describe(const PartialBitonicOptions& o) {
    std::string text = o.step == BitonicStep::Shared ? "shared"
            : o.step == BitonicStep::Shuffles        ? "shuffles"
                                                     : "registers";
    text += o.buffered ? " buffered" : "";
    text += " reads=" + std::to_string(o.readsPerThread);
    text += o.prefetch ? " prefetch" : "";
    text += " blocksPerRow=" + std::to_string(o.blocksPerRow);
    return text;
}

inline SelectMethod methodOf(const PartialBitonicOptions& options) {
    return {describe(options),
            false,
            false,
            [options](const SelectProblem& p) {
                return partialBitonicWorkspaceBytes(p, options);
            },
            [options](const SelectProblem& p, Workspace w, cudaStream_t s) {
                runPartialBitonic(p, options, w, s);
            }};
}

/// The four queues, and for each all ways to buffer.
inline std::vector<QueueSelectOptions> queuesAndBuffers() {
    std::vector<QueueSelectOptions> list;
    for (QueueKind queue :
         {QueueKind::Insertion, QueueKind::Heap, QueueKind::Merge}) {
        for (bool aligned : {false, true}) {
            if (aligned && queue != QueueKind::Merge) {
                continue;
            }
            QueueSelectOptions o;
            o.queue = queue;
            o.aligned = aligned;
            list.push_back(o);
            o.buffered = true;
            for (bool together : {false, true}) {
                for (bool sorted : {false, true}) {
                    o.flushTogether = together;
                    o.localSort = sorted;
                    list.push_back(o);
                }
            }
        }
    }
    return list;
}

/// The steps without a buffer, then the buffer with all its options.
inline std::vector<PartialBitonicOptions> bitonicSteps() {
    std::vector<PartialBitonicOptions> list;
    for (BitonicStep step :
         {BitonicStep::Shared, BitonicStep::Shuffles, BitonicStep::Registers}) {
        PartialBitonicOptions o;
        o.step = step;
        list.push_back(o);
    }
    for (int reads : {1, 2, 4, 8}) {
        for (bool prefetch : {false, true}) {
            PartialBitonicOptions o;
            o.buffered = true;
            o.readsPerThread = reads;
            o.prefetch = prefetch;
            list.push_back(o);
        }
    }
    return list;
}

/// Every method and k on one case: right by the oracle. The result has no
/// freedom, so a second run on other scratch is not needed for each.
inline void expectMethods(
        const SelectCase& c,
        const std::vector<SelectMethod>& methods,
        const std::vector<int>& ks,
        cudaStream_t stream = nullptr) {
    SCOPED_TRACE(c.describe());
    SelectData data(c);
    data.rank(*std::max_element(ks.begin(), ks.end()));
    int scratchByte = 0xFF;
    for (const SelectMethod& method : methods) {
        for (int k : ks) {
            ASSERT_TRUE(data.check(k, data.run(k, stream, scratchByte, method)))
                    << method.name;
            scratchByte ^= 0xFF;
        }
    }
}

template <class Options>
std::vector<SelectMethod> methodsOf(const std::vector<Options>& options) {
    std::vector<SelectMethod> methods;
    for (const Options& o : options) {
        methods.push_back(methodOf(o));
    }
    return methods;
}

/// The named queue methods.
inline std::vector<SelectMethod> namedQueueMethods() {
    std::vector<QueueSelectOptions> list;
    for (ResearchAlgorithm algorithm :
         {ResearchAlgorithm::MergeQueue,
          ResearchAlgorithm::BufferedSearch,
          ResearchAlgorithm::HierarchicalPartition,
          ResearchAlgorithm::CombinedQueue}) {
        list.push_back(queueSelectOptionsOf(algorithm));
    }
    return methodsOf(list);
}

} // namespace faiss_bits::test
