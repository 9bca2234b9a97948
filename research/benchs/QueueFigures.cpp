/// What the figures of the two papers show, at sizes that suit today's GPU:
/// 2^28 keys a cell where the papers have 2^31 (thesis) on a tenth of the
/// bandwidth, and Tang's own sizes.

#include "research/benchs/QueueFigures.h"

#include "research/benchs/FaissWarpQueues.h"

namespace faiss_bits::bench {

namespace {

const std::vector<int> kThesisKs = {32, 64, 128, 256, 512, 1024, 2048};

class Cells {
   public:
    std::vector<PaperCell> list;

    void add(
            const char* figure,
            const PaperMethod& method,
            int64_t rows,
            int64_t cols,
            int k,
            bool sorted = true) {
        list.push_back({figure, method, rows, cols, k, sorted});
    }
};

PartialBitonicOptions stepOf(BitonicStep step) {
    PartialBitonicOptions options;
    options.step = step;
    return options;
}

PartialBitonicOptions bufferOf(int reads, bool prefetch) {
    PartialBitonicOptions options;
    options.buffered = true;
    options.readsPerThread = reads;
    options.prefetch = prefetch;
    return options;
}

void addBitonicFigures(Cells& cells) {
    constexpr int64_t kRows = 1024;
    constexpr int64_t kCols = 1 << 18;
    for (int k : kThesisKs) {
        for (BitonicStep step :
             {BitonicStep::Shared,
              BitonicStep::Shuffles,
              BitonicStep::Registers}) {
            cells.add(
                    "hanak_5.2", bitonicMethod(stepOf(step)), kRows, kCols, k);
        }
    }
    for (int k : kThesisKs) {
        cells.add(
                "hanak_5.3",
                bitonicMethod(stepOf(BitonicStep::Registers)),
                kRows,
                kCols,
                k);
        cells.add(
                "hanak_5.3",
                bitonicMethod(bufferOf(1, false)),
                kRows,
                kCols,
                k);
    }
    for (int k : kThesisKs) {
        for (int reads : {1, 2, 4, 8}) {
            for (bool prefetch : {false, true}) {
                cells.add(
                        "hanak_5.4",
                        bitonicMethod(bufferOf(reads, prefetch)),
                        kRows,
                        kCols,
                        k);
            }
        }
    }
}

void addSinglePassFigures(Cells& cells, const int32_t* ids) {
    // As many rows as in the thesis, and shorter ones: with fewer rows,
    // WarpSelect leaves most of the GPU idle and no size of its queues matters.
    constexpr int64_t kWarpRows = 2048;
    constexpr int64_t kWarpCols = 1 << 17;
    for (int k : kThesisKs) {
        cells.add(
                "hanak_5.5",
                faissMethod("faiss_warp"),
                kWarpRows,
                kWarpCols,
                k);
        for (int size : faissThreadQueues(k)) {
            cells.add(
                    "hanak_5.5",
                    faissWarpMethod(size),
                    kWarpRows,
                    kWarpCols,
                    k);
        }
    }
    QueueSelectOptions merge =
            queueSelectOptionsOf(ResearchAlgorithm::BufferedSearch);
    for (int log : {15, 17, 19, 20}) {
        const int64_t cols = int64_t(1) << log;
        const int64_t rows = (int64_t(1) << 28) / cols;
        for (int k : kThesisKs) {
            cells.add("hanak_5.6", selectMethod("bits"), rows, cols, k);
            cells.add("hanak_5.6", faissMethod("faiss_warp"), rows, cols, k);
            cells.add("hanak_5.6", faissMethod("faiss_block"), rows, cols, k);
            cells.add("hanak_5.6", queueMethod(merge), rows, cols, k);
        }
    }
    for (int k : {32, 128, 512, 1024, 2048}) {
        for (int partitions = 4; partitions <= 2048; partitions *= 2) {
            cells.add(
                    "hanak_5.7",
                    partitionedBits(partitions, ids),
                    1,
                    kSingleRow,
                    k);
        }
    }
}

void addMultiPassFigures(Cells& cells) {
    for (int log : {12, 14, 16, 17, 18, 19, 20}) {
        for (bool sorted : {true, false}) {
            for (const char* name :
                 {"sample_select", "sample_select_two_stage"}) {
                cells.add(
                        "hanak_5.10",
                        selectMethod(name),
                        256,
                        1 << 20,
                        1 << log,
                        sorted);
            }
        }
        cells.add("hanak_5.10", selectMethod("sort"), 256, 1 << 20, 1 << log);
    }
    for (int log : {15, 18, 20}) {
        const int64_t cols = int64_t(1) << log;
        const int64_t rows = (int64_t(1) << 28) / cols;
        for (int down : {5, 3, 2, 1}) {
            const int k = int(cols >> down);
            for (bool sorted : {true, false}) {
                for (const char* name : {"sample_select", "radix_select"}) {
                    cells.add(
                            "hanak_5.11",
                            selectMethod(name),
                            rows,
                            cols,
                            k,
                            sorted);
                }
            }
            // Every merge goes over the whole list: it is for small k.
            if (k <= 8192) {
                cells.add(
                        "hanak_5.11",
                        selectMethod("bits_global"),
                        rows,
                        cols,
                        k);
            }
            cells.add("hanak_5.11", selectMethod("sort"), rows, cols, k);
        }
    }
}

// ---- Tang 2015 -------------------------------------------------------------

constexpr int64_t kQueries = 1 << 13;
constexpr int kTangK = 1 << 8;
constexpr int64_t kTangCols = 1 << 15;

struct TangQueue {
    QueueKind kind;
    bool aligned;
};

const std::vector<TangQueue> kThreeQueues = {
        {QueueKind::Insertion, false},
        {QueueKind::Heap, false},
        {QueueKind::Merge, true}};

/// One thread a query, as in the paper.
QueueSelectOptions plainQueue(TangQueue queue) {
    QueueSelectOptions options;
    options.queue = queue.kind;
    options.aligned = queue.aligned;
    options.threadsPerRow = 1;
    return options;
}

QueueSelectOptions withBuffer(
        QueueSelectOptions options,
        bool together = true,
        bool sorted = true) {
    options.buffered = true;
    options.flushTogether = together;
    options.localSort = sorted;
    return options;
}

QueueSelectOptions withPartition(QueueSelectOptions options, int group = 4) {
    options.partition = group;
    return options;
}

void addOverK(Cells& cells, const char* figure, QueueSelectOptions options) {
    for (int log = 5; log <= 10; ++log) {
        cells.add(figure, queueMethod(options), kQueries, kTangCols, 1 << log);
    }
}

void addOverN(Cells& cells, const char* figure, QueueSelectOptions options) {
    for (int log = 13; log <= 16; ++log) {
        cells.add(
                figure,
                queueMethod(options),
                kQueries,
                int64_t(1) << log,
                kTangK);
    }
}

void addTable(Cells& cells, QueueSelectOptions options) {
    addOverK(cells, "tang_table_1", options);
    addOverN(cells, "tang_table_1", options);
}

void addTangFigures(Cells& cells) {
    for (TangQueue queue : kThreeQueues) {
        const QueueSelectOptions plain = plainQueue(queue);
        addOverK(cells, "tang_6", plain);
        addOverK(cells, "tang_6", withBuffer(plain, false, false));
        addOverK(cells, "tang_6", withBuffer(plain, true, false));
        addOverK(cells, "tang_6", withBuffer(plain, true, true));
    }
    for (TangQueue queue : kThreeQueues) {
        const QueueSelectOptions plain = plainQueue(queue);
        addOverK(cells, "tang_7", plain);
        addOverN(cells, "tang_8", plain);
        for (int group : {2, 4, 8}) {
            addOverK(cells, "tang_7", withPartition(plain, group));
            addOverN(cells, "tang_8", withPartition(plain, group));
        }
    }
    for (TangQueue queue : kThreeQueues) {
        const QueueSelectOptions plain = plainQueue(queue);
        for (auto options : {plain, withPartition(withBuffer(plain))}) {
            addOverK(cells, "tang_9a", options);
            addOverN(cells, "tang_9b", options);
        }
    }
    std::vector<TangQueue> queues = kThreeQueues;
    queues.insert(queues.begin() + 2, {QueueKind::Merge, false});
    for (TangQueue queue : queues) {
        const QueueSelectOptions plain = plainQueue(queue);
        addTable(cells, plain);
        addTable(cells, withPartition(withBuffer(plain)));
    }
    // As many threads a row as today's GPU wants, and today's selections in
    // place of the paper's "state of the art".
    for (ResearchAlgorithm algorithm :
         {ResearchAlgorithm::MergeQueue,
          ResearchAlgorithm::BufferedSearch,
          ResearchAlgorithm::HierarchicalPartition,
          ResearchAlgorithm::CombinedQueue}) {
        addTable(cells, queueSelectOptionsOf(algorithm));
    }
    for (const PaperMethod& method :
         {faissMethod("faiss_block"), selectMethod("bits")}) {
        for (int log = 5; log <= 10; ++log) {
            cells.add("tang_table_1", method, kQueries, kTangCols, 1 << log);
        }
        for (int log = 13; log <= 16; ++log) {
            cells.add(
                    "tang_table_1",
                    method,
                    kQueries,
                    int64_t(1) << log,
                    kTangK);
        }
    }
}

} // namespace

std::string PaperCell::key() const {
    std::string text = method.name;
    for (const auto& [name, value] : method.fields) {
        text += " " + name + "=" + std::to_string(value);
    }
    return text + " " + std::to_string(rows) + " x " + std::to_string(cols) +
            " k=" + std::to_string(k) + (sorted ? "" : " unsorted");
}

std::vector<PaperCell> paperCells(const int32_t* ids) {
    Cells cells;
    addBitonicFigures(cells);
    addSinglePassFigures(cells, ids);
    addTangFigures(cells);
    addMultiPassFigures(cells);
    return cells.list;
}

} // namespace faiss_bits::bench
