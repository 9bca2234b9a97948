// Second, third and fifth loops: packed queries against packed vectors, tile
// by tile, and the selection of whatever passes the limits.

#include <hwy/highway.h>

#include <algorithm>

#include "kernels/cpu/Emit-inl.h"
#include "kernels/cpu/KernelTypes.h"
#include "kernels/cpu/MicroKernel-inl.h"
#include "kernels/cpu/Packing-inl.h"

#if defined(FAISS_BITS_KERNELS_CPU_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_BITS_KERNELS_CPU_LOOPS_INL_H_
#undef FAISS_BITS_KERNELS_CPU_LOOPS_INL_H_
#else
#define FAISS_BITS_KERNELS_CPU_LOOPS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace faiss_bits::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Tiles of components.
template <KernelMetric kMetric, class T>
struct ComponentTiles {
    PowerOf<T> power;

    template <int kRows>
    HWY_INLINE bool compute(const TileArguments<T>& arguments) const {
        return computeTile<kMetric, kRows>(arguments, power);
    }
};

/// A tile with as many rows as there are queries left, in thirds of a whole.
template <class Tiles, class T>
HWY_INLINE bool computeRows(
        int rows,
        const TileArguments<T>& arguments,
        const Tiles& tiles) {
    constexpr int kTile = tileQueries<T>();
    constexpr int kThird = kTile / 3;
    if (HWY_LIKELY(rows > 2 * kThird)) {
        return tiles.template compute<kTile>(arguments);
    }
    if (rows > kThird) {
        return tiles.template compute<2 * kThird>(arguments);
    }
    return tiles.template compute<kThird>(arguments);
}

/// Gives the rows of a tile that pass their filter, or take all, to the sink.
template <class T>
HWY_NOINLINE void emitTile(
        Sink<T>& sink,
        idx_t firstRow,
        int rows,
        TileRow<T> tile,
        bool takingAll) {
    if (sink.kind == SinkKind::Buffer && !takingAll &&
        tile.valid == tileVectors<T>()) {
        return emitTileToBuffers(sink, firstRow, rows, tile);
    }
    if (sink.kind == SinkKind::Store) {
        for (int i = 0; i < rows; ++i) {
            emitToStore(sink, firstRow + i, tile);
            tile.values += tileVectors<T>();
        }
        return;
    }
    for (int i = 0; i < rows; ++i) {
        const idx_t row = firstRow + i;
        if (takesAll(sink, row) ||
            passesFilter(sink.filter[row], tile.values)) {
            emitRow(sink, row, tile);
        }
        tile.values += tileVectors<T>();
    }
}

template <class T>
bool anyTakesAll(const Sink<T>& sink, idx_t firstRow, int rows) {
    for (int i = 0; i < rows; ++i) {
        if (takesAll(sink, firstRow + i)) {
            return true;
        }
    }
    return false;
}

template <class Tiles, class T>
HWY_INLINE void runTilesBy(const TileJob<T>& job, const Tiles& tiles) {
    constexpr int kTile = tileQueries<T>();
    constexpr int kWidth = tileVectors<T>();
    HWY_ALIGN T values[kTile * kWidth];
    Sink<T>& sink = *job.sink;
    const idx_t panels = (job.columns + kWidth - 1) / kWidth;
    const int queryPanels = (job.rows + kTile - 1) / kTile;
    bool force = anyTakesAll(sink, job.firstRow, job.rows);

    TileArguments<T> tile;
    tile.values = values;
    const idx_t group = job.depthBlock < job.depth ? job.groupPanels : panels;
    for (idx_t begin = 0; begin < panels; begin += group) {
        const idx_t end = std::min(begin + group, panels);
        for (int p = 0; p < job.depth; p += job.depthBlock) {
            tile.depth = std::min(job.depthBlock, job.depth - p);
            tile.first = p == 0;
            tile.last = p + tile.depth == job.depth;
            for (idx_t panel = begin; panel < end; ++panel) {
                tile.vectors = job.vectors + (panel * job.depth + p) * kWidth;
                tile.vectorTerm = job.vectorTerm
                        ? job.vectorTerm + panel * kWidth
                        : nullptr;
                const TileRow<T> row = {
                        values,
                        job.firstId + panel * kWidth,
                        int(std::min<idx_t>(
                                kWidth, job.columns - panel * kWidth))};
                for (int i = 0; i < queryPanels; ++i) {
                    tile.queries =
                            job.queries + (idx_t(i) * job.depth + p) * kTile;
                    tile.partial = job.partial ? job.partial +
                                    ((panel - begin) * queryPanels + i) *
                                            kTile * kWidth
                                               : nullptr;
                    const idx_t firstRow = job.firstRow + i * kTile;
                    const int rows = std::min(kTile, job.rows - i * kTile);
                    tile.filter = sink.filter + firstRow;
                    tile.force = force;
                    if (computeRows(rows, tile, tiles)) {
                        emitTile(sink, firstRow, rows, row, force);
                    }
                }
                if (force && tile.last) {
                    force = anyTakesAll(sink, job.firstRow, job.rows);
                }
            }
        }
    }
}

template <KernelMetric kMetric, class T>
void runTiles(const TileJob<T>& job) {
    runTilesBy(job, ComponentTiles<kMetric, T>{PowerOf<T>(job.power)});
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
