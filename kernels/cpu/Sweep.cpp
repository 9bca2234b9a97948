#include "kernels/cpu/Sweep.h"

#include <algorithm>

#include "kernels/cpu/CostModel.h"
#include "kernels/cpu/ParallelFor.h"

namespace faiss_bits::cpu {

namespace {

/// Work between two calls of the interrupt hook, for one thread: about 20 ms.
constexpr double kOperationsPerRegion = 2e9;

/// Values that a packed panel needs behind its end: kernels read and write
/// whole vectors.
constexpr idx_t kPanelSlack = 16;

template <class T>
idx_t partialSize(const Plan& plan, idx_t rows, int depth) {
    return plan.depthBlock < depth ? plan.groupPanels *
                    roundUp(rows, plan.tileQueries) * plan.tileVectors
                                   : 0;
}

template <class T>
TileJob<T> tileJob(const Setup<T>& setup, const Plan& plan) {
    TileJob<T> job;
    job.depth = setup.panelDepth();
    job.depthBlock = plan.depthBlock;
    job.groupPanels = plan.groupPanels;
    job.power = setup.power;
    return job;
}

template <class T>
PackJob<T> packJob(const Setup<T>& setup, const RowView<T>& rows) {
    PackJob<T> job;
    job.rows = rows;
    job.depth = setup.depth;
    return job;
}

template <class T>
void noteLengths(
        const Setup<T>& setup,
        idx_t begin,
        idx_t count,
        const T* terms) {
    if (setup.lengths) {
        noteLengths(
                *setup.lengths,
                // Integers: the lengths whatever the metric is.
                setup.int16 ? KernelMetric::Product : setup.metric,
                setup.vectors,
                setup.depth,
                begin,
                count,
                terms);
    }
}

/// Packs vectors, and takes in what bounds need to know of them.
template <class T>
void packVectors(const Setup<T>& setup, PackJob<T> job) {
    double share = 0;
    job.roundingShare = &share;
    setup.common.packVectors(job, setup.metric);
    noteLengths(setup, job.begin, job.count, job.terms);
    if (setup.lengths) {
        raiseTo(setup.lengths->roundingShare, share);
    }
}

/// Filters follow the limits of rows that have them before the sweep begins
/// (range search).
template <class T>
void setFilters(Sink<T>& sink, idx_t first, idx_t count) {
    for (idx_t i = first; i < first + count; ++i) {
        sink.filter[i] = sink.limit[i] - sink.queryTerm[i];
    }
}

} // namespace

template <class T>
QuerySweep<T>::QuerySweep(
        const Setup<T>& setup,
        const Plan& plan,
        idx_t mostQueries)
        : setup_(setup),
          plan_(plan),
          width_(std::min<idx_t>(
                  roundUp(plan.vectorBlock, plan.tileVectors),
                  roundUp(setup.numVectors, plan.tileVectors))),
          blockRows_(
                  roundUp(std::min<idx_t>(plan.queryBlock, mostQueries),
                          plan.tileQueries)),
          panels_(width_ * setup.panelDepth()),
          terms_(width_),
          scratch_(plan.threads) {
    for (Scratch& mine : scratch_) {
        mine.queries.allocate(blockRows_ * setup.panelDepth() + kPanelSlack);
        mine.partial.allocate(
                partialSize<T>(plan, blockRows_, setup.panelDepth()));
    }
}

template <class T>
void QuerySweep<T>::pack(idx_t first, idx_t count) {
    if (packedFirst_ == first) {
        return; // all vectors are in one block: as the last batch left them
    }
    packedFirst_ = -1;
    const idx_t tile = plan_.tileVectors;
    const idx_t perJob = tile *
            std::max<idx_t>(1,
                            (idx_t(1) << 14) /
                                    std::max<idx_t>(1, tile * setup_.depth));
    parallelFor(
            setup_.team,
            plan_.threads,
            (count + perJob - 1) / perJob,
            [&](idx_t i, int) {
                PackJob<T> job = packJob(setup_, setup_.vectors);
                job.begin = first + i * perJob;
                job.count = std::min(perJob, count - i * perJob);
                job.panels = panels_.get() + i * perJob * setup_.panelDepth();
                job.terms = terms_.get() + i * perJob;
                packVectors(setup_, job);
            });
    packedFirst_ = first;
}

template <class T>
template <class Body>
void QuerySweep<T>::forBlocks(idx_t count, idx_t columns, const Body& body) {
    const double perBlock = operationsOf(setup_.metric) * double(blockRows_) *
            double(columns) * setup_.depth;
    const idx_t perRegion = *setup_.interrupt
            ? std::max<idx_t>(1, idx_t(kOperationsPerRegion / perBlock)) *
                    plan_.threads * blockRows_
            : count;
    for (idx_t begin = 0; begin < count; begin += perRegion) {
        const std::vector<idx_t> ends =
                cutRows(std::min(perRegion, count - begin),
                        blockRows_,
                        plan_.tileQueries,
                        plan_.threads);
        parallelFor(
                setup_.team,
                plan_.threads,
                idx_t(ends.size()),
                [&](idx_t i, int thread) {
                    const idx_t before = i > 0 ? ends[i - 1] : 0;
                    body(thread, begin + before, ends[i] - before);
                });
        setup_.callInterrupt();
    }
}

template <class T>
void QuerySweep<T>::run(
        idx_t begin,
        idx_t count,
        Sink<T>& sink,
        const std::function<void(idx_t, idx_t)>& blockDone) {
    for (idx_t first = 0; first < setup_.numVectors; first += width_) {
        const idx_t columns = std::min(width_, setup_.numVectors - first);
        pack(first, columns);
        forBlocks(count, columns, [&](int thread, idx_t row, idx_t rows) {
            runBlock(thread, begin + row, rows, first, columns, sink, row);
        });
        if (blockDone) {
            blockDone(first, columns);
        }
    }
}

template <class T>
void QuerySweep<T>::runApart(const Open& open, const Close& close) {
    const idx_t columns = setup_.numVectors;
    pack(0, columns);
    forBlocks(
            setup_.numQueries, columns, [&](int thread, idx_t row, idx_t rows) {
                const Place to = open(thread);
                if (to.sink) {
                    runBlock(thread, row, rows, 0, columns, *to.sink, to.row);
                    close(thread, row, rows);
                }
            });
}

template <class T>
void QuerySweep<T>::runBlock(
        int thread,
        idx_t query,
        idx_t rows,
        idx_t first,
        idx_t columns,
        Sink<T>& sink,
        idx_t sinkRow) {
    Scratch& mine = scratch_[thread];
    PackJob<T> pack = packJob(setup_, setup_.queries);
    pack.begin = query;
    pack.count = rows;
    pack.panels = mine.queries.get();
    pack.terms = sink.queryTerm + sinkRow;
    setup_.common.packQueries(pack, setup_.metric);
    setFilters(sink, sinkRow, rows);
    TileJob<T> job = tileJob(setup_, plan_);
    job.queries = mine.queries.get();
    job.vectors = panels_.get();
    job.vectorTerm = terms_.get();
    job.partial = mine.partial.get();
    job.firstRow = sinkRow;
    job.rows = int(rows);
    job.columns = columns;
    job.firstId = first;
    job.sink = &sink;
    setup_.kernels.runTiles(job);
}

namespace {

/// The part of sweepByVectors that the kernels of a variant do.
template <class T>
struct VectorSweep {
    const Setup<T>& setup;
    const Plan& plan;
    idx_t count; ///< queries
    Sink<T>* sinks;
    idx_t queryStride = 0;
    AlignedBuffer<T> queries;
    struct Scratch {
        AlignedBuffer<T> vectors, terms, partial;
    };
    std::vector<Scratch> scratch; ///< of a thread
    idx_t chunk = 0;              ///< vectors packed at a time

    VectorSweep(
            const Setup<T>& setup,
            const Plan& plan,
            idx_t begin,
            idx_t count,
            Sink<T>* sinks)
            : setup(setup), plan(plan), count(count), sinks(sinks) {
        const bool direct = plan.variant == Variant::Direct;
        PackJob<T> pack = packJob(setup, setup.queries);
        pack.begin = begin;
        pack.count = count;
        pack.terms = sinks[0].queryTerm;
        if (direct) {
            queryStride = roundUp(setup.depth, setup.common.lanes);
            queries.allocate(count * queryStride);
            pack.panels = queries.get();
            setup.common.copyQueries(pack, setup.metric, queryStride);
            chunk = plan.vectorBlock;
            return;
        }
        const idx_t rows = roundUp(count, plan.tileQueries);
        queries.allocate(rows * setup.panelDepth() + kPanelSlack);
        pack.panels = queries.get();
        setup.common.packQueries(pack, setup.metric);
        chunk = std::min(
                roundUp(plan.vectorBlock, plan.tileVectors),
                roundUp(setup.numVectors, plan.tileVectors));
        scratch.resize(plan.threads);
        for (Scratch& mine : scratch) {
            mine.vectors.allocate(chunk * setup.panelDepth());
            mine.terms.allocate(chunk);
            mine.partial.allocate(partialSize<T>(
                    plan,
                    std::min<idx_t>(plan.queryBlock, rows),
                    setup.panelDepth()));
        }
    }

    void scanDirect(int part, idx_t begin, idx_t end) {
        ScanJob<T> job;
        job.queries = queries.get();
        job.queryStride = queryStride;
        job.rows = int(count);
        job.vectors = setup.vectors;
        job.begin = job.firstId = begin;
        job.end = end;
        job.depth = setup.depth;
        job.power = setup.power;
        job.sink = &sinks[part];
        job.isNear = double(setup.numVectors) * setup.depth * sizeof(T) <=
                kNearBytes;
        T largestSquare = 0;
        std::vector<T> scales;
        if (setup.lengths) {
            job.largestSquare = &largestSquare;
            scales.resize(
                    setup.metric == KernelMetric::Cosine ? end - begin : 0);
            job.scales = scales.data();
        }
        setup.kernels.scanDirect(job);
        if (setup.lengths) {
            raiseTo(setup.lengths->largestSquare, largestSquare);
            noteLengths(setup, begin, idx_t(scales.size()), scales.data());
        }
    }

    void run(int part, int thread, idx_t begin, idx_t end) {
        if (plan.variant == Variant::Direct) {
            return scanDirect(part, begin, end);
        }
        Scratch& mine = scratch[thread];
        TileJob<T> job = tileJob(setup, plan);
        job.vectors = mine.vectors.get();
        job.vectorTerm = mine.terms.get();
        job.partial = mine.partial.get();
        job.sink = &sinks[part];
        for (idx_t first = begin; first < end; first += chunk) {
            PackJob<T> pack = packJob(setup, setup.vectors);
            pack.begin = first;
            pack.count = std::min(chunk, end - first);
            pack.panels = mine.vectors.get();
            pack.terms = mine.terms.get();
            packVectors(setup, pack);
            job.columns = pack.count;
            job.firstId = first;
            for (idx_t row = 0; row < count; row += plan.queryBlock) {
                job.firstRow = row;
                job.rows = int(std::min<idx_t>(plan.queryBlock, count - row));
                job.queries = queries.get() + row * setup.panelDepth();
                setup.kernels.runTiles(job);
            }
        }
    }
};

} // namespace

template <class T>
void sweepByVectors(
        const Setup<T>& setup,
        const Plan& plan,
        idx_t begin,
        idx_t count,
        Sink<T>* sinks,
        int parts) {
    VectorSweep<T> sweep(setup, plan, begin, count, sinks);
    for (int part = 0; part < parts; ++part) {
        std::copy(
                sinks[0].queryTerm,
                sinks[0].queryTerm + count,
                sinks[part].queryTerm);
        setFilters(sinks[part], 0, count);
    }
    // Every part goes on where it was, a step at a time, if the hook is to be
    // called in between.
    const idx_t tile = plan.tileVectors;
    idx_t longest = 0;
    for (int part = 0; part < parts; ++part) {
        longest = std::max(
                longest,
                partBegin(setup.numVectors, tile, part + 1, parts) -
                        partBegin(setup.numVectors, tile, part, parts));
    }
    idx_t step = std::max<idx_t>(1, longest);
    if (*setup.interrupt) {
        const double perVector =
                operationsOf(setup.metric) * count * setup.depth;
        step = std::min(
                step,
                roundUp(idx_t(kOperationsPerRegion / perVector) + 1,
                        roundUp(sweep.chunk, tile)));
    }
    for (idx_t done = 0; done < longest; done += step) {
        parallelForOwn(setup.team, parts, [&](idx_t part, int thread) {
            const idx_t first =
                    partBegin(setup.numVectors, tile, int(part), parts) + done;
            const idx_t end =
                    partBegin(setup.numVectors, tile, int(part) + 1, parts);
            if (first < end) {
                sweep.run(
                        int(part), thread, first, std::min(end, first + step));
            }
        });
        setup.callInterrupt();
    }
}

#define INSTANTIATE(T)            \
    template class QuerySweep<T>; \
    template void sweepByVectors( \
            const Setup<T>&, const Plan&, idx_t, idx_t, Sink<T>*, int);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

} // namespace faiss_bits::cpu
