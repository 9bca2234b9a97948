#include "kernels/cpu/SearchPlan.h"

#include <algorithm>
#include <cmath>

#include "kernels/common/Error.h"
#include "kernels/cpu/CostModel.h"
#include "kernels/cpu/Heap.h"
#include "kernels/cpu/KnnSelection.h"
#include "kernels/cpu/Machine.h"
#include "kernels/cpu/Targets.h"

namespace faiss_bits::cpu {

namespace {

/// Largest forced block, whole tiles of any target.
constexpr idx_t kMostForced = idx_t(1) << 30;

/// What the selections of a batch may take, unless one query needs more.
constexpr double kSelectionBytes = 256e6;

/// Bytes of a query's selection, for one part of the vectors.
double selectionBytes(const Plan& plan, idx_t part, idx_t k, int scalarBytes) {
    const double entry = 2.0 * scalarBytes; // a key and an id
    switch (plan.variant) {
        case Variant::Var1:
            return double(heapStrideFor(k)) * entry;
        case Variant::Var5:
            return double(heapStrideFor(k)) * entry +
                    double(std::min<idx_t>(part, plan.vectorBlock)) *
                    scalarBytes;
        case Variant::Var6:
            return double(heapStrideFor(k)) * entry +
                    double(part) * scalarBytes;
        default: {
            const idx_t room = part + 2 * plan.tileVectors;
            return double(scalarBytes) *
                    double(std::min<idx_t>(plan.firstCapacity, room) +
                           std::min<idx_t>(plan.bufferCapacity, room));
        }
    }
}

/// Bytes that the threads need to finish the rows of a batch: the candidates of
/// a row, twice as entries.
double finishBytes(
        const Plan& plan,
        idx_t numVectors,
        idx_t k,
        int scalarBytes) {
    const idx_t parts = plan.acrossVectors ? plan.threads : 1;
    const idx_t room = (numVectors + parts - 1) / parts + 2 * plan.tileVectors;
    idx_t widest = 0;
    switch (plan.variant) {
        case Variant::Var6:
            widest = selectsWholeRow(plan, k, numVectors) ? numVectors : k;
            break;
        case Variant::Var1:
        case Variant::Var5:
            widest = parts * k;
            break;
        default:
            widest = parts * std::min<idx_t>(plan.firstCapacity, room);
    }
    const int threads = finishingThreads(
            plan.threads, plan.batchQueries, k, widest, scalarBytes);
    return 6.0 * scalarBytes * double(widest) * double(threads);
}

/// Queries of a thread that a certified search finishes together. Where the
/// vectors and their packed copies leave the cache meanwhile, so many that a
/// vector that is read is a candidate of some; a few times for every thread.
double pooledQueries(
        const SearchShape& shape,
        const Plan& plan,
        const Machine& machine,
        double bytesPerQuery) {
    constexpr double kOfEachVector = 12, kBytes = 4 << 20;
    const double bytes = double(shape.numVectors) *
            (shape.depth + shape.panelDepth()) * shape.scalarBytes;
    if (bytes <= machine.sharedBytes / 4) {
        return 0;
    }
    return std::min(
            {kOfEachVector * double(shape.numVectors) / double(shape.k),
             kBytes / bytesPerQuery,
             kSelectionBytes / bytesPerQuery / plan.threads,
             double(shape.numQueries) / (2 * plan.threads)});
}

/// Threads of a team that are worth their start, about 10 microseconds: for so
/// many operations each, or where few queries meet all vectors, bytes.
int threadsFor(const SearchShape& shape, Variant variant, int team) {
    constexpr double kOperations = 5e5, kBytes = 1 << 18;
    const double values = double(shape.numVectors) * shape.depth;
    double threads = operationsOf(shape.metric) * double(shape.numQueries) *
            values / kOperations;
    if (variant == Variant::Direct) {
        threads = std::max(threads, values * shape.scalarBytes / kBytes);
    }
    return std::max(1, int(std::min(double(team), threads)));
}

/// Direct, or packed? By the shape alone: the two round differently, and the
/// result is not to depend on the machine or on the number of threads.
bool isForDirect(const SearchShape& shape) {
    return !isAlwaysCanonical(shape.metric) &&
            (shape.numQueries <= 2 ||
             (shape.numQueries <= 4 && shape.depth >= 384));
}

/// Blocks, batch and scratch of a plan with a variant and a way to share.
void planBlocks(
        Plan& plan,
        const SearchShape& shape,
        const Choice& choice,
        const Machine& machine) {
    const int mr = plan.tileQueries, nr = plan.tileVectors;
    const idx_t q = std::max<idx_t>(1, shape.numQueries);
    const idx_t n = std::max<idx_t>(1, shape.numVectors);
    const idx_t d = shape.panelDepth(), k = shape.k;
    const double rowBytes = double(d) * shape.scalarBytes;
    const int parts = plan.acrossVectors ? plan.threads : 1;

    // A block of components of a tile of each side is a quarter of the cache of
    // a core: sums that leave the registers cost more than what a larger part
    // of the faster caches saves (measured: d = 1024 whole beats 4 x 256).
    const idx_t deepest = std::max<idx_t>(
            64,
            idx_t(machine.cacheBytes / 4 / ((mr + nr) * shape.scalarBytes)));
    const idx_t depthBlocks = (d + deepest - 1) / deepest;
    plan.depthBlock =
            int(choice.depthBlock ? std::min<idx_t>(choice.depthBlock, d)
                                  : (d + depthBlocks - 1) / depthBlocks);
    plan.groupPanels = 4;

    // Packed vectors: a quarter of the shared cache, or half a first-level
    // cache where every thread packs its own.
    const double vectorBytes = plan.acrossVectors ? machine.cacheBytes / 64
                                                  : machine.sharedBytes / 4;
    idx_t width = std::clamp<idx_t>(
            idx_t(vectorBytes / rowBytes) / nr * nr, nr, 1 << 14);
    if (choice.vectorBlock) {
        width = roundUp(choice.vectorBlock, nr);
    } else {
        width = std::min(width, roundUp(n, nr));
    }
    plan.vectorBlock = int(std::min<idx_t>(width, kMostForced));

    // Slack: few cuts, yet a limit that is not long out of date.
    plan.bufferCapacity =
            k + std::max<idx_t>(k, std::min<idx_t>(16 * k, 64)) + 2 * nr;
    // More before the first cut, so that the first limit is a tight one; not so
    // many that the buffers of a block of queries leave the cache of a core.
    // Parts of the vectors have a limit each, and are all the smaller.
    plan.firstCapacity = std::max<idx_t>(
            plan.bufferCapacity, std::min<idx_t>(16 * k, 512) / parts + nr);

    double perQuery = 64.0 * parts;
    if (k > 0) {
        perQuery +=
                parts *
                selectionBytes(
                        plan, (n + parts - 1) / parts, k, shape.scalarBytes);
    }

    // Packed queries: half the cache of a core.
    const idx_t mostRows = std::clamp<idx_t>(
            idx_t(machine.cacheBytes / 2 / rowBytes) / mr * mr, mr, 16 * mr);
    const idx_t blockRows = std::min(
            q, choice.queryBlock ? idx_t(choice.queryBlock) : mostRows);
    plan.selectsByBlock = k > 0 && !plan.acrossVectors &&
            plan.vectorBlock >= n &&
            (plan.variant == Variant::Buffered ||
             plan.variant == Variant::Var1) &&
            perQuery * double(blockRows) * plan.threads <= kSelectionBytes;

    // Selections of a batch stay in the shared cache; a batch has enough rows
    // that packing the vectors again for the next one is little work.
    const double inCache = machine.sharedBytes / 4 / perQuery;
    double least = 256;
    if (plan.variant == Variant::Var6 && selectsWholeRow(plan, k, n)) {
        // Rows that are selected from as a whole are read several times: as
        // few as can be, if their vectors are packed once for all batches. Else
        // as many as stay in the shared cache, within what packing the vectors
        // again is worth: with many threads they do not all stay.
        const double stay = machine.sharedBytes / 2 /
                double(n * shape.scalarBytes) / plan.threads;
        least = plan.vectorBlock >= n ? 96 : std::clamp(stay, 96.0, 256.0);
    }
    const double enough = std::max(least * plan.threads, inCache);
    double batch = std::min(enough, kSelectionBytes / perQuery);
    if (plan.acrossVectors && plan.variant != Variant::Direct) {
        // All queries of the batch meet every packed tile.
        batch = std::min(
                batch, std::max(64.0 * mr, machine.cacheBytes / 2 / rowBytes));
    }
    // As even as whole tiles allow, where there are many.
    const idx_t most =
            plan.selectsByBlock ? q : std::max<idx_t>(1, idx_t(batch));
    const idx_t batches = (q + most - 1) / most;
    const idx_t even = (q + batches - 1) / batches;
    plan.batchQueries = std::min(q, even < 8 * mr ? even : roundUp(even, mr));

    // Blocks for all threads.
    idx_t blocks = (plan.batchQueries + mostRows - 1) / mostRows;
    if (!plan.acrossVectors) {
        blocks = roundUp(blocks, plan.threads);
    }
    const idx_t rows = roundUp(
            choice.queryBlock ? choice.queryBlock
                              : (plan.batchQueries + blocks - 1) / blocks,
            mr);
    plan.queryBlock = int(std::min<idx_t>(rows, kMostForced));

    plan.pooledQueries = plan.queryBlock;
    if (plan.selectsByBlock && shape.certified) {
        plan.pooledQueries = std::max<idx_t>(
                plan.queryBlock,
                idx_t(pooledQueries(shape, plan, machine, perQuery)));
    }

    const double usedRows =
            double(std::min<idx_t>(plan.queryBlock, plan.batchQueries));
    const double usedColumns = double(std::min<idx_t>(plan.vectorBlock, n));
    const double perThread = rowBytes * usedRows +
            (plan.acrossVectors ? rowBytes * usedColumns : 0) +
            (plan.depthBlock < d ? double(plan.groupPanels) * plan.queryBlock *
                             nr * shape.scalarBytes
                                 : 0);
    const double selected = plan.selectsByBlock
            ? double(plan.pooledQueries) * plan.threads
            : double(plan.batchQueries);
    // What the rows of a part have is in lines of its own.
    const double padding = parts > 1 ? 640.0 * parts : 0;
    plan.scratchBytes =
            size_t(perQuery * selected + perThread * plan.threads + padding +
                   (plan.acrossVectors ? rowBytes * double(plan.batchQueries)
                                       : rowBytes * usedColumns) +
                   (k > 0 ? finishBytes(plan, n, k, shape.scalarBytes) : 0));
}

/// The better way to share the work of a variant among threads.
Plan planVariant(
        Variant variant,
        const Plan& base,
        const SearchShape& shape,
        const Choice& choice,
        const Machine& machine) {
    Plan best;
    for (const bool acrossVectors : {false, true}) {
        if ((variant == Variant::Direct && !acrossVectors) ||
            (acrossVectors &&
             (variant == Variant::Var5 || variant == Variant::Var6))) {
            continue;
        }
        Plan plan = base;
        plan.variant = variant;
        plan.acrossVectors = acrossVectors;
        planBlocks(plan, shape, choice, machine);
        plan.predictedSeconds = predictSeconds(shape, plan, machine);
        if (best.variant == Variant::Auto ||
            plan.predictedSeconds < best.predictedSeconds) {
            best = plan;
        }
    }
    return best;
}

} // namespace

template <class T>
Plan planSearch(
        const Setup<T>& setup,
        const Problem<T>& problem,
        idx_t k,
        bool predict) {
    Choice choice = problem.choice;
    const bool alwaysCanonical = isAlwaysCanonical(setup.metric);
    if (alwaysCanonical) {
        BITS_THROW_IF_NOT_FMT(
                choice.variant != Variant::Direct,
                "choice.variant = direct has no kernel for metric = %d",
                int(problem.metric));
        choice.depthBlock = setup.depth; // slots are of whole rows
    }
    SearchShape shape;
    shape.numQueries = setup.numQueries;
    shape.numVectors = setup.numVectors;
    shape.k = std::min(k, setup.numVectors);
    shape.depth = setup.depth;
    shape.byInt16 = bool(setup.int16);
    shape.panelValues = setup.panelValues;
    shape.scalarBytes = int(sizeof(T));
    shape.lanes = setup.common.lanes;
    shape.metric = setup.metric;
    shape.certified = problem.mode != SearchMode::Plain;
    // A range search has no heaps and stores no distances.
    const bool range = k == 0;
    BITS_THROW_IF_NOT_FMT(
            !range || choice.variant == Variant::Auto ||
                    choice.variant == Variant::Buffered ||
                    choice.variant == Variant::Direct,
            "choice.variant = %s is not for a range search (buffered, direct)",
            nameOf(choice.variant));

    Plan base;
    base.byInt16 = shape.byInt16;
    base.byDoubles = setup.byDoubles;
    base.byBytes = shape.panelValues > 0 && !base.byDoubles;
    base.target = nameOfTarget(setup.target);
    base.tileQueries = setup.common.tileQueries;
    base.tileVectors = setup.common.tileVectors;

    Variant wanted = choice.variant;
    if (wanted == Variant::Auto && !shape.byInt16 && !shape.panelValues &&
        isForDirect(shape)) {
        wanted = Variant::Direct;
    }
    const Machine& machine = predict ? thisMachine() : machineForPlan(shape);
    Plan best;
    std::vector<std::pair<Variant, double>> predictions;
    for (Variant variant :
         {Variant::Buffered,
          Variant::Var1,
          Variant::Var5,
          Variant::Var6,
          Variant::Direct}) {
        const bool skipped = variant == Variant::Direct
                ? alwaysCanonical
                : range && variant != Variant::Buffered;
        const bool eligible = wanted == variant ||
                (wanted == Variant::Auto && variant != Variant::Direct);
        if (skipped || (!predict && !eligible)) {
            continue;
        }
        base.threads = threadsFor(shape, variant, setup.team);
        const Plan plan = planVariant(variant, base, shape, choice, machine);
        predictions.emplace_back(variant, plan.predictedSeconds);
        if (eligible &&
            (best.variant == Variant::Auto ||
             plan.predictedSeconds < best.predictedSeconds)) {
            best = plan;
        }
    }
    best.predictions = std::move(predictions);
    return best;
}

template Plan planSearch(
        const Setup<float>&,
        const Problem<float>&,
        idx_t,
        bool);
template Plan planSearch(
        const Setup<double>&,
        const Problem<double>&,
        idx_t,
        bool);

} // namespace faiss_bits::cpu
