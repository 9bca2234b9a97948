#include "kernels/cpu/KnnSelection.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/cpu/ParallelFor.h"
#include "kernels/cpu/SortEntries.h"
#include "kernels/cpu/Sweep.h"
#include "kernels/cpu/WriteNearest.h"

namespace faiss_bits::cpu {

namespace {

/// A store of a vector behind the last candidate.
constexpr idx_t kSlack = 16;

/// Bytes that processors move together: a cache line and the one beside it.
constexpr idx_t kLinePair = 128;

} // namespace

template <class T>
KnnSelection<T>::KnnSelection(
        const Setup<T>& setup,
        const Plan& plan,
        idx_t k,
        idx_t rows,
        int parts,
        int threads)
        : setup_(setup), plan_(plan), k_(k), rows_(rows), sinks_(parts) {
    // What one thread writes is in no line that another one reads.
    const auto strideOf = [&](idx_t count, size_t bytes) {
        return parts > 1 ? roundUp(count, kLinePair / idx_t(bytes)) : count;
    };
    const idx_t padded = strideOf(rows + plan.tileQueries, sizeof(T));
    const idx_t values = strideOf(rows, sizeof(T));
    const idx_t states = strideOf(rows, sizeof(RowState));
    const idx_t counts = strideOf(rows, sizeof(idx_t));
    filters_.allocate(parts * padded);
    limits_.allocate(parts * values);
    terms_.allocate(parts * values);
    states_.allocate(parts * states);
    counts_.allocate(parts * counts);
    for (int part = 0; part < parts; ++part) {
        Sink<T>& sink = sinks_[part];
        sink.clampAtZero = setup.metric == KernelMetric::L2;
        sink.k = k;
        sink.filter = filters_.get() + part * padded;
        sink.limit = limits_.get() + part * values;
        sink.queryTerm = terms_.get() + part * values;
        sink.state = states_.get() + part * states;
        sink.counts = counts_.get() + part * counts;
    }
    switch (plan.variant) {
        case Variant::Var1:
            allocateHeaps(SinkKind::Heap);
            break;
        case Variant::Var5:
        case Variant::Var6:
            allocateHeaps(SinkKind::Store);
            allocateStore();
            break;
        default:
            allocateBuffers();
    }
    allocateScratch(threads);
}

template <class T>
void KnnSelection<T>::allocateBuffers() {
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
        Sink<T>& sink = sinks_[part];
        sink.kind = SinkKind::Buffer;
        sink.firstCapacity = firstCapacity;
        sink.capacity = capacity;
        sink.keyStride = keyStride;
        sink.idStride = idStride;
        sink.keys = keys_.get() + part * rows_ * keyStride;
        sink.ids = ids_.get() + part * rows_ * idStride;
        sink.firstId = beginOf(part);
    }
}

template <class T>
void KnnSelection<T>::allocateHeaps(SinkKind kind) {
    const idx_t stride = heapStrideFor(k_);
    heaps_.allocate(parts() * rows_ * stride + kHeapPadding);
    for (int part = 0; part < parts(); ++part) {
        Sink<T>& sink = sinks_[part];
        sink.kind = kind;
        sink.heapStride = stride;
        sink.heaps = heaps_.get() + kHeapPadding + part * rows_ * stride;
    }
}

template <class T>
void KnnSelection<T>::allocateStore() {
    Sink<T>& sink = sinks_[0];
    const idx_t columns = plan_.variant == Variant::Var6
            ? setup_.numVectors
            : std::min<idx_t>(plan_.vectorBlock, setup_.numVectors);
    // Rows whose places in the cache differ: a tile is written to some at once.
    constexpr idx_t kPage = 4096;
    sink.distanceStride = roundUp(columns, plan_.tileVectors);
    if (sink.distanceStride * idx_t(sizeof(T)) % kPage == 0) {
        sink.distanceStride +=
                roundUp(kLinePair / idx_t(sizeof(T)), plan_.tileVectors);
    }
    distances_.allocate(rows_ * sink.distanceStride);
    sink.distances = distances_.get();
}

template <class T>
bool KnnSelection<T>::isWholeRow() const {
    return plan_.variant == Variant::Var6 &&
            selectsWholeRow(plan_, k_, setup_.numVectors);
}

template <class T>
void KnnSelection<T>::allocateScratch(int threads) {
    idx_t widest = 0;
    for (const Sink<T>& sink : sinks_) {
        widest += sink.kind == SinkKind::Buffer ? sink.firstCapacity : k_;
    }
    if (isWholeRow()) {
        widest = setup_.numVectors;
    }
    widest_ = widest;
    scratch_.resize(
            finishingThreads(threads, rows_, k_, widest, int(sizeof(T))));
    for (Scratch& mine : scratch_) {
        mine.keys.allocate(widest + kSlack);
        mine.ids.allocate(widest + kSlack);
        mine.entries.allocate(widest + kSlack);
        mine.sorted.allocate(widest + kSlack);
    }
}

template <class T>
void KnnSelection<T>::reset(const Certifier<T>* certifier) {
    constexpr T kNone = std::numeric_limits<T>::quiet_NaN();
    for (Sink<T>& sink : sinks_) {
        if (certifier) {
            sink.slack = certifier->slack;
            sink.k = sink.slack.isOn ? certifier->k : k_;
            sink.aside = k_ - sink.k;
        }
        std::fill_n(sink.limit, rows_, kNone);
        std::fill_n(sink.queryTerm, rows_, T(0));
        std::fill_n(sink.state, rows_, RowState::All);
        std::fill_n(sink.counts, rows_, idx_t(0));
        std::fill_n(
                sink.filter,
                rows_ + plan_.tileQueries,
                -std::numeric_limits<T>::infinity());
    }
}

template <class T>
void KnnSelection<T>::takeBlock(idx_t first, idx_t count, idx_t rows) {
    Sink<T>& sink = sinks_[0];
    parallelFor(setup_.team, plan_.threads, rows, [&](idx_t row, int) {
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

template <class T>
void KnnSelection<T>::appendRow(
        const Sink<T>& sink,
        idx_t row,
        Scratch& mine,
        idx_t& count) {
    const idx_t size = sink.counts[row];
    CandidateId<T>* ids = mine.ids.get() + count;
    std::copy_n(
            sink.keys + row * sink.keyStride, size, mine.keys.get() + count);
    if (sink.state[row] == RowState::All) {
        std::iota(ids, ids + size, CandidateId<T>(sink.firstId));
    } else {
        std::copy_n(sink.ids + row * sink.idStride, size, ids);
    }
    count += size;
}

template <class T>
idx_t KnnSelection<T>::collectRow(
        idx_t row,
        Scratch& mine,
        bool& idsAscend,
        OrderRange<T>& range) {
    const Sink<T>& first = sinks_[0];
    if (first.kind != SinkKind::Buffer && !isWholeRow()) {
        idsAscend = false;
        const idx_t count = collectHeaps(row, mine);
        range = orderRange(mine.entries.get(), count);
        return count;
    }
    idsAscend = true;
    NarrowJob<T> job;
    job.k = k_;
    // Candidates that may stay beyond k: sorting them is less work than
    // telling them apart.
    job.most = k_ + std::max<idx_t>(16, k_ / 8);
    job.outKeys = mine.keys.get();
    job.outIds = mine.ids.get();
    const Candidates found = bufferedCandidates(row, mine);
    job.keys = found.keys;
    job.ids = found.ids;
    job.count = found.count;
    const T* keys = job.keys;
    const CandidateId<T>* ids = job.ids;
    idx_t count = job.count;
    if (count > job.most) {
        count = setup_.common.narrow(job).count;
        keys = job.outKeys;
        ids = job.outIds;
    }
    range = setup_.common.makeEntries(
            keys, ids, found.firstId, count, mine.entries.get());
    return count;
}

template <class T>
idx_t KnnSelection<T>::collectHeaps(idx_t row, Scratch& mine) {
    const Sink<T>& first = sinks_[0];
    idx_t count = 0;
    if (plan_.variant == Variant::Var6) {
        OrderedEntry<T>* heap = first.heaps + row * first.heapStride;
        setup_.common.scanRow(
                first.distances + row * first.distanceStride,
                setup_.numVectors,
                0,
                k_,
                heap,
                &count);
        std::copy_n(heap, count, mine.entries.get());
        return count;
    }
    for (const Sink<T>& sink : sinks_) {
        std::copy_n(
                sink.heaps + row * sink.heapStride,
                sink.counts[row],
                mine.entries.get() + count);
        count += sink.counts[row];
    }
    return count;
}

template <class T>
void KnnSelection<T>::finishRow(
        idx_t row,
        Scratch& mine,
        T* distances,
        idx_t* ids,
        idx_t outK) {
    bool idsAscend;
    OrderRange<T> range;
    const idx_t count = collectRow(row, mine, idsAscend, range);
    const OrderedEntry<T>* sorted = sortEntries<T>(
            mine.entries.get(), mine.sorted.get(), count, idsAscend, range);
    writeNearest(setup_, sorted, std::min(count, k_), distances, ids, outK);
}

template <class T>
void KnnSelection<T>::finish(
        idx_t rows,
        idx_t first,
        const KnnOutput<T>& out,
        Certifier<T>* certifier) {
    const int threads = int(scratch_.size());
    const auto forJobs = [&](idx_t perJob, const auto& body) {
        parallelFor(
                setup_.team,
                threads,
                (rows + perJob - 1) / perJob,
                [&](idx_t job, int thread) {
                    const idx_t row = job * perJob;
                    body(scratch_[thread], row, std::min(perJob, rows - row));
                });
    };
    if (certifier) {
        const ErrorBound<T> bound(setup_, certifier->direct);
        const idx_t most = allocateCertified(rows, *certifier);
        const idx_t jobs = (rows + most - 1) / most;
        forJobs((rows + jobs - 1) / jobs,
                [&](Scratch& mine, idx_t row, idx_t count) {
                    certifyRows(
                            {row, count, first + row},
                            mine,
                            *certifier,
                            bound,
                            out);
                });
        return;
    }
    forJobs(rowsPerJob(k_), [&](Scratch& mine, idx_t row, idx_t count) {
        for (idx_t i = row; i < row + count; ++i) {
            const idx_t place = out.row(first + i) * out.k;
            finishRow(i, mine, out.distances + place, out.ids + place, out.k);
        }
    });
}

template class KnnSelection<float>;
template class KnnSelection<double>;

} // namespace faiss_bits::cpu
