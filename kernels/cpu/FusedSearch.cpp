#include "kernels/cpu/FusedSearch.h"

#include <algorithm>

#include "kernels/cpu/FusedModel.h"
#include "kernels/cpu/FusedParallel.h"

namespace faiss_bits {

namespace {

/// Work between two calls of the interrupt hook, for one thread: about 20 ms.
constexpr double kOperationsPerRegion = 2e9;

/// Values that a packed panel needs behind its end: kernels read and write
/// whole vectors.
constexpr idx_t kPanelSlack = 16;

/// Packed vectors with their norms.
template <class T>
struct PackedVectors {
    PackedVectors(idx_t columns, int depth)
            : panels(columns * depth), terms(columns) {}
    FusedBuffer<T> panels, terms;
};

template <class T>
idx_t partialSize(const FusedPlan& plan, idx_t rows, int depth) {
    return plan.depthBlock < depth ? plan.groupPanels *
                    roundUp(rows, plan.tileQueries) * plan.tileVectors
                                   : 0;
}

template <class T>
FusedTileJob<T> tileJob(const FusedSetup<T>& setup, const FusedPlan& plan) {
    FusedTileJob<T> job;
    job.depth = setup.depth;
    job.depthBlock = plan.depthBlock;
    job.groupPanels = plan.groupPanels;
    job.power = setup.power;
    return job;
}

template <class T>
FusedPackJob<T> packJob(const FusedSetup<T>& setup, const FusedRows<T>& rows) {
    FusedPackJob<T> job;
    job.rows = rows;
    job.depth = setup.depth;
    return job;
}

/// Filters follow the limits of rows that have them before the sweep begins
/// (range search).
template <class T>
void setFilters(FusedSink<T>& sink, idx_t first, idx_t count) {
    for (idx_t i = first; i < first + count; ++i) {
        sink.filter[i] = sink.limit[i] - sink.queryTerm[i];
    }
}

} // namespace

template <class T>
void sweepByQueries(
        const FusedSetup<T>& setup,
        const FusedPlan& plan,
        idx_t begin,
        idx_t count,
        FusedSink<T>& sink,
        const std::function<void(idx_t, idx_t)>& blockDone) {
    const int depth = setup.depth;
    const idx_t tile = plan.tileVectors;
    const idx_t width = std::min<idx_t>(
            roundUp(plan.vectorBlock, tile), roundUp(setup.numVectors, tile));
    const idx_t blockRows =
            std::min<idx_t>(plan.queryBlock, roundUp(count, plan.tileQueries));
    const PackedVectors<T> packed(width, depth);

    // Scratch of a thread, allocated here so that no thread has to.
    struct Scratch {
        FusedBuffer<T> queries, partial;
    };
    std::vector<Scratch> scratch(plan.threads);
    for (Scratch& mine : scratch) {
        mine.queries.allocate(blockRows * depth + kPanelSlack);
        mine.partial.allocate(partialSize<T>(plan, blockRows, depth));
    }
    const idx_t panelsPerJob = std::max<idx_t>(
            1, (idx_t(1) << 14) / std::max<idx_t>(1, tile * depth));

    for (idx_t first = 0; first < setup.numVectors; first += width) {
        const idx_t columns = std::min(width, setup.numVectors - first);
        const idx_t perJob = panelsPerJob * tile;
        parallelFor(
                plan.threads,
                (columns + perJob - 1) / perJob,
                [&](idx_t i, int) {
                    FusedPackJob<T> job = packJob(setup, setup.vectors);
                    job.begin = first + i * perJob;
                    job.count = std::min(perJob, columns - i * perJob);
                    job.panels = packed.panels.get() + i * perJob * depth;
                    job.terms = packed.terms.get() + i * perJob;
                    setup.common.packVectors(job, setup.metric);
                });
        const double perBlock =
                operationsOf(setup.metric) * blockRows * columns * depth;
        const idx_t blocks = (count + blockRows - 1) / blockRows;
        const idx_t perRegion = *setup.interrupt
                ? std::max<idx_t>(1, idx_t(kOperationsPerRegion / perBlock)) *
                        plan.threads
                : blocks;
        for (idx_t block = 0; block < blocks; block += perRegion) {
            const idx_t todo = std::min(perRegion, blocks - block);
            parallelFor(plan.threads, todo, [&](idx_t i, int thread) {
                Scratch& mine = scratch[thread];
                const idx_t row = (block + i) * blockRows;
                const idx_t rows = std::min(blockRows, count - row);
                FusedPackJob<T> pack = packJob(setup, setup.queries);
                pack.begin = begin + row;
                pack.count = rows;
                pack.panels = mine.queries.get();
                pack.terms = sink.queryTerm + row;
                setup.common.packQueries(pack, setup.metric);
                setFilters(sink, row, rows);
                FusedTileJob<T> job = tileJob(setup, plan);
                job.queries = mine.queries.get();
                job.vectors = packed.panels.get();
                job.vectorTerm = packed.terms.get();
                job.partial = mine.partial.get();
                job.firstRow = row;
                job.rows = int(rows);
                job.columns = columns;
                job.firstId = first;
                job.sink = &sink;
                setup.kernels.runTiles(job);
            });
            setup.callInterrupt();
        }
        if (blockDone) {
            blockDone(first, columns);
        }
    }
}

namespace {

/// The part of sweepByVectors that the kernels of a variant do.
template <class T>
struct VectorSweep {
    const FusedSetup<T>& setup;
    const FusedPlan& plan;
    idx_t count; ///< queries
    FusedSink<T>* sinks;
    idx_t queryStride = 0;
    FusedBuffer<T> queries;
    struct Scratch {
        FusedBuffer<T> vectors, terms, partial;
    };
    std::vector<Scratch> scratch; ///< of a thread
    idx_t chunk = 0;              ///< vectors packed at a time

    VectorSweep(
            const FusedSetup<T>& setup,
            const FusedPlan& plan,
            idx_t begin,
            idx_t count,
            FusedSink<T>* sinks)
            : setup(setup), plan(plan), count(count), sinks(sinks) {
        const bool direct = plan.variant == FusedVariant::Direct;
        FusedPackJob<T> pack = packJob(setup, setup.queries);
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
        queries.allocate(rows * setup.depth + kPanelSlack);
        pack.panels = queries.get();
        setup.common.packQueries(pack, setup.metric);
        chunk = std::min(
                roundUp(plan.vectorBlock, plan.tileVectors),
                roundUp(setup.numVectors, plan.tileVectors));
        scratch.resize(plan.threads);
        for (Scratch& mine : scratch) {
            mine.vectors.allocate(chunk * setup.depth);
            mine.terms.allocate(chunk);
            mine.partial.allocate(partialSize<T>(
                    plan, std::min<idx_t>(plan.queryBlock, rows), setup.depth));
        }
    }

    void run(int part, int thread, idx_t begin, idx_t end) {
        if (plan.variant == FusedVariant::Direct) {
            FusedScanJob<T> job;
            job.queries = queries.get();
            job.queryStride = queryStride;
            job.rows = int(count);
            job.vectors = setup.vectors;
            job.begin = begin;
            job.end = end;
            job.depth = setup.depth;
            job.power = setup.power;
            job.sink = &sinks[part];
            setup.kernels.scanDirect(job);
            return;
        }
        Scratch& mine = scratch[thread];
        FusedTileJob<T> job = tileJob(setup, plan);
        job.vectors = mine.vectors.get();
        job.vectorTerm = mine.terms.get();
        job.partial = mine.partial.get();
        job.sink = &sinks[part];
        for (idx_t first = begin; first < end; first += chunk) {
            FusedPackJob<T> pack = packJob(setup, setup.vectors);
            pack.begin = first;
            pack.count = std::min(chunk, end - first);
            pack.panels = mine.vectors.get();
            pack.terms = mine.terms.get();
            setup.common.packVectors(pack, setup.metric);
            job.columns = pack.count;
            job.firstId = first;
            for (idx_t row = 0; row < count; row += plan.queryBlock) {
                job.firstRow = row;
                job.rows = int(std::min<idx_t>(plan.queryBlock, count - row));
                job.queries = queries.get() + row * setup.depth;
                setup.kernels.runTiles(job);
            }
        }
    }
};

} // namespace

template <class T>
void sweepByVectors(
        const FusedSetup<T>& setup,
        const FusedPlan& plan,
        idx_t begin,
        idx_t count,
        FusedSink<T>* sinks,
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
        parallelFor(plan.threads, parts, [&](idx_t part, int thread) {
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

#define INSTANTIATE(T)                                 \
    template void sweepByQueries(                      \
            const FusedSetup<T>&,                      \
            const FusedPlan&,                          \
            idx_t,                                     \
            idx_t,                                     \
            FusedSink<T>&,                             \
            const std::function<void(idx_t, idx_t)>&); \
    template void sweepByVectors(                      \
            const FusedSetup<T>&,                      \
            const FusedPlan&,                          \
            idx_t,                                     \
            idx_t,                                     \
            FusedSink<T>*,                             \
            int);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

} // namespace faiss_bits
