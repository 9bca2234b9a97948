#include "kernels/cpu/RangeTiles.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/CostModel.h"
#include "kernels/cpu/ParallelFor.h"
#include "kernels/cpu/Sweep.h"

namespace faiss_bits::cpu {

namespace {

/// Bytes of a packed piece, its most vectors, and bytes of the keys of a block:
/// these are read again before they leave the cache.
constexpr idx_t kPieceBytes = 4 << 20, kMostColumns = 4096;
constexpr idx_t kKeysBytes = 1 << 19;

/// Tiles of queries for each thread from which on the threads share them.
constexpr idx_t kTilesPerThread = 4;

/// Work between two calls of the interrupt hook, for one thread: about 20 ms.
constexpr double kOperationsPerRegion = 2e9;

} // namespace

template <class T>
RangeTiles<T>::RangeTiles(
        const Setup<T>& setup,
        const Plan& plan,
        idx_t mostColumns)
        : setup_(setup),
          plan_(plan),
          byPieces_(
                  plan.threads == 1 ||
                  setup.numQueries <
                          kTilesPerThread * plan.tileQueries * plan.threads),
          scratch_(plan.threads) {
    const idx_t tile = plan.tileVectors, n = setup.numVectors;
    const idx_t rowBytes = setup.panelDepth() * idx_t(sizeof(T));
    idx_t columns = std::clamp(kPieceBytes / rowBytes, tile, kMostColumns);
    columns = mostColumns ? std::min(columns, mostColumns) : columns;
    if (byPieces_) {
        columns = std::min(columns, n / plan.threads + 1);
    }
    columns = roundUp(std::min(columns, n), tile);
    pieces_ = (n + columns - 1) / columns;
    plan_.vectorBlock = int(columns);
    plan_.acrossVectors = false;
    const idx_t rows = kKeysBytes / idx_t(sizeof(T)) / columns;
    plan_.queryBlock = int(std::clamp<idx_t>(
            rows / plan.tileQueries * plan.tileQueries,
            plan.tileQueries,
            roundUp(plan.queryBlock, plan.tileQueries)));
}

template <class T>
void RangeTiles<T>::run(const Done& done) {
    if (!byPieces_) {
        for (idx_t piece = 0; piece < pieces_; ++piece) {
            runPiece(piece, 0, false, done);
        }
        return;
    }
    const double perPiece = operationsOf(setup_.metric) *
            double(setup_.numQueries) * plan_.vectorBlock * setup_.depth;
    const idx_t perRegion = *setup_.interrupt ? plan_.threads *
                    std::max<idx_t>(1, idx_t(kOperationsPerRegion / perPiece))
                                              : pieces_;
    for (idx_t begin = 0; begin < pieces_; begin += perRegion) {
        parallelFor(
                setup_.team,
                plan_.threads,
                std::min(perRegion, pieces_ - begin),
                [&](idx_t i, int thread) {
                    runPiece(begin + i, thread, true, done);
                });
        if (plan_.threads > 1) { // else the pieces have called it
            setup_.callInterrupt();
        }
    }
}

template <class T>
void RangeTiles<T>::runPiece(
        idx_t piece,
        int thread,
        bool isAlone,
        const Done& done) {
    static const std::function<void()> none;
    const idx_t width = plan_.vectorBlock;
    const idx_t first = piece * width;
    const idx_t columns = std::min(width, setup_.numVectors - first);
    Setup<T> setup = setup_.forVectors(first, columns);
    Plan plan = plan_;
    if (isAlone) {
        plan.threads = setup.team = 1;
    }
    if (isAlone && plan_.threads > 1) { // it is inside a parallel loop
        setup.interrupt = &none;
    }
    QuerySweep<T> sweep(setup, plan, setup.numQueries);
    const idx_t rows = sweep.blockRows();
    // Rows whose places in the cache differ.
    const idx_t stride = width + plan.tileVectors;
    const auto scratchOf = [&](int own) -> Scratch& {
        return scratch_[isAlone ? thread : own];
    };
    sweep.runApart(
            [&](int own) {
                Scratch& mine = scratchOf(own);
                if (mine.states.empty()) {
                    mine.keys.allocate(rows * stride + plan.tileVectors);
                    mine.terms.allocate(3 * (rows + plan.tileQueries));
                    std::fill_n(
                            mine.terms.get(),
                            3 * (rows + plan.tileQueries),
                            T(0));
                    mine.states.assign(rows, RowState::Below);
                    Sink<T>& sink = mine.sink;
                    sink.kind = SinkKind::Store;
                    sink.queryTerm = mine.terms.get();
                    sink.limit = sink.queryTerm + rows + plan.tileQueries;
                    sink.filter = sink.limit + rows + plan.tileQueries;
                    sink.state = mine.states.data();
                    sink.distances = mine.keys.get();
                    sink.distanceStride = stride;
                }
                return typename QuerySweep<T>::Place{&mine.sink, 0};
            },
            [&](int own, idx_t query, idx_t count) {
                RangeKeys<T> keys;
                keys.thread = isAlone ? thread : own;
                keys.order = piece * plan_.threads + keys.thread;
                keys.query = query;
                keys.rows = count;
                keys.first = first;
                keys.columns = columns;
                keys.keys = scratchOf(own).keys.get();
                keys.stride = stride;
                done(keys);
            });
}

template class RangeTiles<float>;
template class RangeTiles<double>;

} // namespace faiss_bits::cpu
