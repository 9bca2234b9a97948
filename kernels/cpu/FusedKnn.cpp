#include "kernels/cpu/FusedKnn.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/common/Error.h"
#include "kernels/cpu/FusedHeap.h"
#include "kernels/cpu/FusedParallel.h"
#include "kernels/cpu/FusedSearch.h"
#include "kernels/cpu/FusedSort.h"

namespace faiss_bits {

namespace {

/// The sinks of a batch of queries, one for each part of the vectors.
template <class T>
class Selection {
   public:
    Selection(
            const FusedSetup<T>& setup,
            const FusedPlan& plan,
            idx_t k,
            idx_t rows,
            int parts)
            : setup_(setup), plan_(plan), k_(k), rows_(rows), sinks_(parts) {
        const idx_t padded = rows + plan.tileQueries;
        filters_.allocate(parts * padded);
        limits_.allocate(parts * rows);
        terms_.allocate(parts * rows);
        states_.allocate(parts * rows);
        counts_.allocate(parts * rows);
        for (int part = 0; part < parts; ++part) {
            FusedSink<T>& sink = sinks_[part];
            sink.clampAtZero = setup.metric == FusedKernelMetric::L2;
            sink.k = k;
            sink.filter = filters_.get() + part * padded;
            sink.limit = limits_.get() + part * rows;
            sink.queryTerm = terms_.get() + part * rows;
            sink.state = states_.get() + part * rows;
            sink.counts = counts_.get() + part * rows;
        }
        switch (plan.variant) {
            case FusedVariant::Var1:
                allocateHeaps(FusedSinkKind::Heap);
                break;
            case FusedVariant::Var5:
            case FusedVariant::Var6:
                allocateHeaps(FusedSinkKind::Store);
                allocateStore();
                break;
            default:
                allocateBuffers();
        }
    }

    FusedSink<T>* sinks() {
        return sinks_.data();
    }
    int parts() const {
        return int(sinks_.size());
    }

    /// Ready for the next batch.
    void reset() {
        constexpr T kNone = std::numeric_limits<T>::quiet_NaN();
        for (FusedSink<T>& sink : sinks_) {
            std::fill_n(sink.limit, rows_, kNone);
            std::fill_n(sink.queryTerm, rows_, T(0));
            std::fill_n(sink.state, rows_, FusedRowState::All);
            std::fill_n(sink.counts, rows_, idx_t(0));
            std::fill_n(
                    sink.filter,
                    rows_ + plan_.tileQueries,
                    -std::numeric_limits<T>::infinity());
        }
    }

    /// Variant 5: a block of distances goes through the heaps.
    void takeBlock(idx_t first, idx_t count, idx_t rows) {
        FusedSink<T>& sink = sinks_[0];
        parallelFor(plan_.threads, rows, [&](idx_t row, int) {
            setup_.common.scanRow(
                    sink.distances + row * sink.distanceStride,
                    count,
                    first,
                    k_,
                    sink.heaps + row * sink.heapStride,
                    &sink.counts[row]);
        });
        sink.firstId = first + count;
    }

    /// Writes the first `rows` rows to the caller's arrays.
    void finish(idx_t rows, T* outDistances, idx_t* outIds, idx_t outK);

   private:
    void allocateBuffers() {
        const idx_t tile = plan_.tileVectors;
        const idx_t numParts = parts();
        const auto beginOf = [&](idx_t part) {
            return partBegin(
                    setup_.numVectors, int(tile), int(part), int(numParts));
        };
        idx_t longest = 0;
        for (idx_t part = 0; part < numParts; ++part) {
            longest = std::max(longest, beginOf(part + 1) - beginOf(part));
        }
        // A part that has less is never cut.
        const idx_t room = longest + 2 * tile;
        const idx_t firstCapacity = std::min<idx_t>(plan_.firstCapacity, room);
        const idx_t capacity = std::min<idx_t>(plan_.bufferCapacity, room);
        const idx_t keyStride = roundUp(firstCapacity + kSlack, 16);
        const idx_t idStride =
                firstCapacity == room ? 0 : roundUp(capacity + kSlack, 16);
        keys_.allocate(numParts * rows_ * keyStride);
        ids_.allocate(numParts * rows_ * idStride);
        for (idx_t part = 0; part < numParts; ++part) {
            FusedSink<T>& sink = sinks_[part];
            sink.kind = FusedSinkKind::Buffer;
            sink.firstCapacity = firstCapacity;
            sink.capacity = capacity;
            sink.keyStride = keyStride;
            sink.idStride = idStride;
            sink.keys = keys_.get() + part * rows_ * keyStride;
            sink.ids = ids_.get() + part * rows_ * idStride;
            sink.firstId = beginOf(part);
        }
    }

    void allocateHeaps(FusedSinkKind kind) {
        const idx_t stride = heapStrideFor(k_);
        heaps_.allocate(parts() * rows_ * stride + kHeapPadding);
        for (int part = 0; part < parts(); ++part) {
            FusedSink<T>& sink = sinks_[part];
            sink.kind = kind;
            sink.heapStride = stride;
            sink.heaps = heaps_.get() + kHeapPadding + part * rows_ * stride;
        }
    }

    void allocateStore() {
        FusedSink<T>& sink = sinks_[0];
        const idx_t columns = plan_.variant == FusedVariant::Var6
                ? setup_.numVectors
                : std::min<idx_t>(plan_.vectorBlock, setup_.numVectors);
        const idx_t tile = plan_.tileVectors;
        sink.distanceStride = roundUp(columns, tile);
        distances_.allocate(rows_ * sink.distanceStride);
        sink.distances = distances_.get();
    }

    /// A store of a vector behind the last candidate.
    static constexpr idx_t kSlack = 16;

    const FusedSetup<T>& setup_;
    const FusedPlan& plan_;
    idx_t k_, rows_;
    std::vector<FusedSink<T>> sinks_;
    FusedBuffer<T> filters_, limits_, terms_, keys_, distances_;
    FusedBuffer<FusedRowState> states_;
    FusedBuffer<idx_t> counts_;
    FusedBuffer<FusedId<T>> ids_;
    FusedBuffer<FusedEntry<T>> heaps_;
};

/// Scratch of a thread that finishes rows.
template <class T>
struct FinishScratch {
    FusedBuffer<T> keys;
    FusedBuffer<FusedId<T>> ids;
    FusedBuffer<FusedEntry<T>> entries, sorted;
};

/// Candidates of one part behind those of the parts before it.
template <class T>
void appendRow(
        const FusedSink<T>& sink,
        idx_t row,
        FinishScratch<T>& scratch,
        idx_t& count) {
    const idx_t size = sink.counts[row];
    FusedId<T>* ids = scratch.ids.get() + count;
    std::copy_n(
            sink.keys + row * sink.keyStride, size, scratch.keys.get() + count);
    if (sink.state[row] == FusedRowState::All) {
        std::iota(ids, ids + size, FusedId<T>(sink.firstId));
    } else {
        std::copy_n(sink.ids + row * sink.idStride, size, ids);
    }
    count += size;
}

template <class T>
void Selection<T>::finish(
        idx_t rows,
        T* outDistances,
        idx_t* outIds,
        idx_t outK) {
    constexpr T kMax = std::numeric_limits<T>::max();
    const FusedSink<T>& first = sinks_[0];
    const bool buffered = first.kind == FusedSinkKind::Buffer;
    const bool wholeRow = plan_.variant == FusedVariant::Var6 &&
            selectsWholeRow(k_, setup_.numVectors);
    // Candidates that may stay beyond k: sorting them is less work than
    // telling them apart.
    const idx_t most = k_ + std::max<idx_t>(16, k_ / 8);
    idx_t widest = 0;
    for (const FusedSink<T>& sink : sinks_) {
        widest += buffered ? sink.firstCapacity : k_;
    }
    if (wholeRow) {
        widest = setup_.numVectors;
    }
    const idx_t jobs = (rows + kRowsPerJob - 1) / kRowsPerJob;
    const int threads = int(std::min<idx_t>(plan_.threads, jobs));
    std::vector<FinishScratch<T>> scratch(threads);
    for (FinishScratch<T>& mine : scratch) {
        mine.keys.allocate(widest + kSlack);
        mine.ids.allocate(widest + kSlack);
        mine.entries.allocate(widest + kSlack);
        mine.sorted.allocate(widest + kSlack);
    }
    const auto finishRow = [&](idx_t row, FinishScratch<T>& mine) {
        idx_t count = 0;
        bool idsAscend = false;
        if (buffered || wholeRow) {
            idsAscend = true;
            FusedNarrowJob<T> job;
            job.k = k_;
            job.most = most;
            job.outKeys = mine.keys.get();
            job.outIds = mine.ids.get();
            if (wholeRow) {
                job.keys = first.distances + row * first.distanceStride;
                job.count = setup_.numVectors;
            } else if (parts() == 1) {
                job.keys = first.keys + row * first.keyStride;
                job.ids = first.state[row] == FusedRowState::All
                        ? nullptr
                        : first.ids + row * first.idStride;
                job.count = first.counts[row];
            } else {
                job.keys = mine.keys.get();
                job.ids = mine.ids.get();
                for (const FusedSink<T>& sink : sinks_) {
                    appendRow(sink, row, mine, job.count);
                }
            }
            const T* keys = job.keys;
            const FusedId<T>* ids = job.ids;
            count = job.count;
            if (count > most) {
                count = setup_.common.narrow(job).count;
                keys = job.outKeys;
                ids = job.outIds;
            }
            for (idx_t i = 0; i < count; ++i) {
                mine.entries.get()[i] =
                        FusedEntry<T>(keys[i], ids ? ids[i] : FusedId<T>(i));
            }
        } else {
            FusedEntry<T>* heap = nullptr;
            idx_t own = 0;
            if (plan_.variant == FusedVariant::Var6) {
                heap = first.heaps + row * first.heapStride;
                setup_.common.scanRow(
                        first.distances + row * first.distanceStride,
                        setup_.numVectors,
                        0,
                        k_,
                        heap,
                        &own);
                std::copy_n(heap, own, mine.entries.get());
                count = own;
            } else {
                for (const FusedSink<T>& sink : sinks_) {
                    std::copy_n(
                            sink.heaps + row * sink.heapStride,
                            sink.counts[row],
                            mine.entries.get() + count);
                    count += sink.counts[row];
                }
            }
        }
        const FusedEntry<T>* sorted = sortEntries<T>(
                mine.entries.get(), mine.sorted.get(), count, idsAscend);
        T* distances = outDistances + row * outK;
        idx_t* ids = outIds + row * outK;
        const idx_t found = std::min(count, k_);
        for (idx_t i = 0; i < found; ++i) {
            const T key = sorted[i].key();
            distances[i] = setup_.similarity ? T(0) - key : key;
            ids[i] = setup_.idOf(sorted[i].id());
        }
        std::fill(
                distances + found,
                distances + outK,
                setup_.similarity ? -kMax : kMax);
        std::fill(ids + found, ids + outK, idx_t(-1));
    };
    parallelFor(threads, jobs, [&](idx_t job, int thread) {
        const idx_t end = std::min(rows, (job + 1) * kRowsPerJob);
        for (idx_t row = job * kRowsPerJob; row < end; ++row) {
            finishRow(row, scratch[thread]);
        }
    });
}

template <class T>
FusedSetup<T> checkKnn(const FusedKnnProblem<T>& problem, bool shapeOnly) {
    BITS_THROW_IF_NOT_FMT(
            problem.k >= 1, "k = %lld is below 1", (long long)problem.k);
    FusedSetup<T> setup = checkFused(problem, shapeOnly);
    if (!shapeOnly && problem.numQueries > 0) {
        BITS_THROW_IF_NOT_FMT(problem.outDistances, "outDistances is null");
        BITS_THROW_IF_NOT_FMT(problem.outIds, "outIds is null");
    }
    return setup;
}

} // namespace

template <class T>
void runFusedKnn(const FusedKnnProblem<T>& problem) {
    const FusedSetup<T> setup = checkKnn(problem, false);
    const FusedPlan plan = planFused(setup, problem, problem.k, false);
    const idx_t k = std::min(problem.k, setup.numVectors);
    if (setup.numQueries == 0) {
        return;
    }
    if (k == 0) {
        const T none = setup.similarity ? std::numeric_limits<T>::lowest()
                                        : std::numeric_limits<T>::max();
        std::fill_n(problem.outDistances, setup.numQueries * problem.k, none);
        std::fill_n(problem.outIds, setup.numQueries * problem.k, idx_t(-1));
        return;
    }
    const idx_t batch = std::min<idx_t>(plan.batchQueries, setup.numQueries);
    Selection<T> selection(
            setup, plan, k, batch, plan.acrossVectors ? plan.threads : 1);
    for (idx_t begin = 0; begin < setup.numQueries; begin += batch) {
        const idx_t rows = std::min(batch, setup.numQueries - begin);
        selection.reset();
        if (plan.acrossVectors) {
            sweepByVectors(
                    setup,
                    plan,
                    begin,
                    rows,
                    selection.sinks(),
                    selection.parts());
        } else {
            std::function<void(idx_t, idx_t)> blockDone;
            if (plan.variant == FusedVariant::Var5) {
                selection.sinks()[0].firstId = 0;
                blockDone = [&](idx_t first, idx_t count) {
                    selection.takeBlock(first, count, rows);
                };
            }
            sweepByQueries(
                    setup, plan, begin, rows, selection.sinks()[0], blockDone);
        }
        selection.finish(
                rows,
                problem.outDistances + begin * problem.k,
                problem.outIds + begin * problem.k,
                problem.k);
    }
}

template <class T>
FusedPlan planFusedKnn(const FusedKnnProblem<T>& problem) {
    return planFused(checkKnn(problem, true), problem, problem.k, true);
}

template void runFusedKnn(const FusedKnnProblem<float>&);
template void runFusedKnn(const FusedKnnProblem<double>&);
template FusedPlan planFusedKnn(const FusedKnnProblem<float>&);
template FusedPlan planFusedKnn(const FusedKnnProblem<double>&);

} // namespace faiss_bits
