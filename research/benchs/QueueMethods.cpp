#include "research/benchs/QueueMethods.h"

#include <algorithm>

#include "benchs/FaissSelect.h"
#include "kernels/select/Select.h"
#include "research/benchs/FaissWarpQueues.h"

namespace faiss_bits::bench {

PaperMethod queueMethod(QueueSelectOptions o) {
    std::string name = o.queue == QueueKind::Insertion ? "insertion"
            : o.queue == QueueKind::Heap               ? "heap"
            : o.aligned                                ? "merge_aligned"
                                                       : "merge";
    name += o.buffered ? "+buf" : "";
    name += o.buffered && o.flushTogether ? "+full" : "";
    name += o.localSort ? "+sort" : "";
    name += o.partition ? "+hp" + std::to_string(o.partition) : "";
    return {name,
            {{"threads_per_row", o.threadsPerRow}},
            [o](const SelectProblem& p) {
                return queueSelectWorkspaceBytes(p, o);
            },
            [o](const SelectProblem& p, Workspace w) {
                runQueueSelect(p, o, w, nullptr);
            }};
}

PaperMethod bitonicMethod(PartialBitonicOptions o) {
    o.blocksPerRow = 1;
    PaperMethod method{
            o.step == BitonicStep::Shared             ? "bitonic_shared"
                    : o.step == BitonicStep::Shuffles ? "bitonic_shuffles"
                    : o.buffered                      ? "bitonic_buffered"
                                                      : "bitonic_registers",
            {},
            [o](const SelectProblem& p) {
                return partialBitonicWorkspaceBytes(p, o);
            },
            [o](const SelectProblem& p, Workspace w) {
                runPartialBitonic(p, o, w, nullptr);
            }};
    if (o.buffered) {
        method.fields = {
                {"reads", o.readsPerThread}, {"prefetch", int(o.prefetch)}};
    }
    return method;
}

PaperMethod selectMethod(const std::string& algorithm) {
    const SelectAlgorithm chosen = selectAlgorithmOf(algorithm);
    auto with = [chosen](SelectProblem p) {
        p.algorithm = chosen;
        return p;
    };
    return {algorithm,
            {},
            [with](const SelectProblem& p) {
                return selectWorkspaceBytes(with(p));
            },
            [with](const SelectProblem& p, Workspace w) {
                runSelect(with(p), w, nullptr);
            }};
}

namespace {

/// One of FAISS's selections, called as select(keys, rows, cols, k, outKeys,
/// outIds, stream). Needs no scratch.
template <class Select>
PaperMethod ofFaiss(
        const std::string& name,
        std::vector<std::pair<std::string, int64_t>> fields,
        Select select) {
    return {name,
            std::move(fields),
            [](const SelectProblem&) { return size_t(0); },
            [select](const SelectProblem& p, Workspace) {
                select(static_cast<const float*>(p.keys),
                       p.rows,
                       p.cols,
                       p.k,
                       static_cast<float*>(p.outKeys),
                       static_cast<gpu::ImplSize*>(p.outIds),
                       nullptr);
            }};
}

} // namespace

PaperMethod faissMethod(const std::string& name) {
    return ofFaiss(
            name,
            {},
            name == "faiss_warp" ? runFaissWarpSelect : runFaissBlockSelect);
}

PaperMethod faissWarpMethod(int threadQueue) {
    return ofFaiss(
            "faiss_warp",
            {{"thread_queue", threadQueue}},
            [threadQueue](auto... arguments) {
                runFaissWarpSelectWith(threadQueue, arguments...);
            });
}

namespace {

/// The two selections of a partitioned row. The results of the first are in
/// the scratch: keys, then ids.
struct PartitionedBits {
    SelectProblem parts;
    SelectProblem whole;
    size_t places;
    size_t scratchBytes;

    PartitionedBits(const SelectProblem& p, int partitions, const int32_t* ids)
            : parts(p), whole(p), places(size_t(partitions) * p.k) {
        parts.algorithm = whole.algorithm = SelectAlgorithm::Bits;
        parts.idType = whole.idType = IdType::Int32;
        parts.rows = partitions;
        parts.cols = p.cols / partitions;
        parts.ids = ids;
        // With rows for every multiprocessor, none is split any further.
        parts.device.multiprocessors = 1;
        whole.cols = int64_t(places);
        whole.device.multiprocessors = 1;
        whole.keys = whole.ids = ids; // any: for the size query
        scratchBytes = std::max(
                selectWorkspaceBytes(parts), selectWorkspaceBytes(whole));
    }

    size_t bytes() const {
        return scratchBytes + 2 * WorkspaceSlices::roundUp(places * 4);
    }

    void run(Workspace workspace) {
        WorkspaceSlices slices(workspace);
        auto* keys = slices.take<float>(places);
        auto* ids = slices.take<int32_t>(places);
        const Workspace rest = {
                slices.take<uint8_t>(scratchBytes), scratchBytes};
        parts.outKeys = keys;
        parts.outIds = ids;
        runSelect(parts, rest, nullptr);
        whole.keys = keys;
        whole.ids = ids;
        runSelect(whole, rest, nullptr);
    }
};

} // namespace

PaperMethod partitionedBits(int partitions, const int32_t* ids) {
    return {"bits_partitioned",
            {{"partitions", partitions}},
            [=](const SelectProblem& p) {
                return PartitionedBits(p, partitions, ids).bytes();
            },
            [=](const SelectProblem& p, Workspace w) {
                PartitionedBits(p, partitions, ids).run(w);
            }};
}

} // namespace faiss_bits::bench
