#pragma once

#include <functional>
#include <vector>

#include "kernels/cpu/KernelTypes.h"
#include "kernels/cpu/Knn.h"
#include "kernels/cpu/Targets.h"

/// What k nearest neighbours and range search share: a checked problem, and the
/// sweeps that feed every distance to the sinks.
namespace faiss_bits::cpu {

/// A problem that was checked, with its defaults filled in.
template <class T>
struct Setup {
    KernelMetric metric = KernelMetric::L2;
    bool similarity = false; ///< keys are negated results
    T power = 0;
    int depth = 0;
    RowView<T> queries, vectors;
    idx_t numQueries = 0, numVectors = 0;
    int team = 1; ///< threads of every parallel loop; a plan may use fewer
    int64_t target = 0;
    CommonKernels<T> common;
    MetricKernels<T> kernels;
    std::vector<idx_t>
            sortedIds; ///< behind vectors.ids, if the caller's are not
    const std::function<void()>* interrupt = nullptr;

    Setup() = default;
    Setup(Setup&&) = default;
    Setup& operator=(Setup&&) = default;

    /// The caller's row of a candidate.
    idx_t idOf(CandidateId<T> id) const {
        return vectors.ids ? vectors.ids[id] : idx_t(id);
    }
    void callInterrupt() const {
        if (*interrupt) {
            (*interrupt)();
        }
    }
};

/// Throws Error for what Knn.h calls bad, k aside. With `shapeOnly`,
/// pointers are not looked at.
template <class T>
Setup<T> checkProblem(const Problem<T>& problem, bool shapeOnly);

/// k = 0 plans a range search. Nothing is measured unless `predict`, or the
/// choice among the packed variants needs it.
template <class T>
Plan planSearch(
        const Setup<T>& setup,
        const Problem<T>& problem,
        idx_t k,
        bool predict);

/// The sweep whose threads share the queries. Keeps its scratch from one batch
/// of queries to the next, and the packed vectors if they are one block.
/// `setup` and `plan` must outlive it.
template <class T>
class QuerySweep {
   public:
    QuerySweep(const Setup<T>& setup, const Plan& plan, idx_t mostQueries);

    /// Every distance between queries begin .. begin + count - 1 and the
    /// vectors goes to row 0 .. count - 1 of the sink. `blockDone(first, n)` is
    /// called after every block of vectors.
    void run(
            idx_t begin,
            idx_t count,
            Sink<T>& sink,
            const std::function<void(idx_t first, idx_t n)>& blockDone);

    /// All queries, where the vectors are one block. The rows of a block of
    /// queries go to row 0 .. of the sink that `open(thread)` returns;
    /// `close(thread, row, rows)` is called on the same thread when it is done.
    using Open = std::function<Sink<T>*(int thread)>;
    using Close = std::function<void(int thread, idx_t row, idx_t rows)>;
    void runApart(const Open& open, const Close& close);

    /// The most queries of a block.
    idx_t blockRows() const {
        return blockRows_;
    }

   private:
    struct Scratch {
        AlignedBuffer<T> queries, partial;
    };

    void pack(idx_t first, idx_t count);
    /// body(thread, row, rows) for blocks that make up `count` rows; calls the
    /// interrupt hook in between.
    template <class Body>
    void forBlocks(idx_t count, idx_t columns, const Body& body);
    /// `rows` queries from `query` on against the packed vectors.
    void runBlock(
            int thread,
            idx_t query,
            idx_t rows,
            idx_t first,
            idx_t columns,
            Sink<T>& sink,
            idx_t sinkRow);

    const Setup<T>& setup_;
    const Plan& plan_;
    idx_t width_;            ///< vectors of a block
    idx_t blockRows_;        ///< queries of a block, whole tiles
    idx_t packedFirst_ = -1; ///< first vector of the block that is packed
    AlignedBuffer<T> panels_, terms_;
    std::vector<Scratch> scratch_; ///< of a thread: no thread allocates
};

/// The same with a sink for each of `parts` consecutive ranges of the vectors,
/// which the threads share. Packed, or direct as the plan says.
template <class T>
void sweepByVectors(
        const Setup<T>& setup,
        const Plan& plan,
        idx_t begin,
        idx_t count,
        Sink<T>* sinks,
        int parts);

/// First vector of a part, in whole tiles: parts differ by a tile at most.
inline idx_t partBegin(idx_t numVectors, int tile, int part, int parts) {
    const idx_t tiles = (numVectors + tile - 1) / tile;
    const idx_t begin = tiles / parts * part + tiles % parts * part / parts;
    return begin * tile < numVectors ? begin * tile : numVectors;
}

/// Rows that a thread finishes at a time.
constexpr idx_t kRowsPerJob = 8;

/// Variant 6 with more than a quarter of a row to keep sorts what a bisection
/// leaves: a heap of that size would be a slow sort.
inline bool selectsWholeRow(idx_t k, idx_t numVectors) {
    return 4 * k > numVectors;
}

} // namespace faiss_bits::cpu
