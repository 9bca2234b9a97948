// Canonical distances of all pairs of packed queries and packed vectors, for
// queries whose candidates were not proved to be enough.

#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <type_traits>
#include <vector>

#include "kernels/cpu/CanonicalProducts-inl.h"
#include "kernels/cpu/CanonicalTileSums-inl.h"
#include "kernels/cpu/Loops-inl.h"

#if defined(FAISS_BITS_KERNELS_CPU_CANONICALTILES_INL_H_) == \
        defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_BITS_KERNELS_CPU_CANONICALTILES_INL_H_
#undef FAISS_BITS_KERNELS_CPU_CANONICALTILES_INL_H_
#else
#define FAISS_BITS_KERNELS_CPU_CANONICALTILES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace faiss_bits::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Is any value of some rows under its filter? One that equals it comes too
/// late, and where most vectors are alike there are many.
template <class T>
HWY_INLINE bool anyUnder(
        const Sink<T>& sink,
        idx_t firstRow,
        int rows,
        const T* values) {
    const hn::ScalableTag<T> d;
    for (int row = 0; row < rows; ++row) {
        const auto limit = hn::Set(d, sink.filter[firstRow + row]);
        auto any = hn::Lt(hn::Load(d, values), limit);
        for (int v = 1; v < kTileWidth; ++v) {
            any = hn::Or(
                    any, hn::Lt(hn::Load(d, values + v * lanesOf<T>()), limit));
        }
        if (!hn::AllFalse(d, any)) {
            return true;
        }
        values += tileVectors<T>();
    }
    return false;
}

template <KernelMetric kMetric, class T>
void runCanonicalTiles(const TileJob<T>& job) {
    using Terms = decltype(canonicalTerms<kMetric, T>());
    const SlotTag d;
    constexpr int kTile = tileQueries<T>();
    constexpr int kWidth = tileVectors<T>();
    constexpr int kRows = canonicalRows<kMetric>();
    constexpr int kVecs = kWidth / slotLanes();
    constexpr bool kIsCosine = kMetric == KernelMetric::Cosine;
    constexpr bool kTriesProducts = triesProducts<kMetric, T>();
    constexpr bool kIsProduct = kMetric == KernelMetric::Product;
    static_assert(kTile % kRows == 0);
    const CanonicalPowers power(double(job.power));
    Sink<T>& sink = *job.sink;
    const int queryPanels = (job.rows + kTile - 1) / kTile;
    const idx_t queryValues = idx_t(queryPanels) * job.depth * kTile;
    AlignedBuffer<double> queries(queryValues);
    std::copy_n(job.queries, queryValues, queries.get());
    AlignedBuffer<double> querySquares(queryPanels * kTile);
    std::fill_n(querySquares.get(), queryPanels * kTile, 0.0);
    if (kIsCosine) {
        sumQuerySquares<T>(
                queries.get(), job.rows, job.depth, querySquares.get());
    } else if (kTriesProducts) {
        for (int i = 0; i < queryPanels; ++i) {
            sumPanelSquares<kTile>(
                    queries.get() + idx_t(i) * job.depth * kTile,
                    job.depth,
                    querySquares.get() + i * kTile);
        }
    }
    AlignedBuffer<double> panel(idx_t(job.depth) * kWidth);
    const SlotVec share = hn::Set(d, fusedShare(job.depth));
    const double productShare = fusedProductShare(job.depth);
    std::vector<DoubleTerms> queryTerms;
    for (int row = 0; kTriesProducts && row < queryPanels * kTile; ++row) {
        queryTerms.emplace_back(
                querySquares.get()[row], productShare, kIsProduct);
    }
    // Of products: the queries, for L2 times two.
    AlignedBuffer<double> factors(kTriesProducts ? queryValues : 0);
    for (idx_t i = 0; kTriesProducts && i < queryValues; ++i) {
        factors.get()[i] = (kIsProduct ? 1 : 2) * queries.get()[i];
    }
    HWY_ALIGN double lows[kWidth], errors[kWidth];
    // An eighth of all: beyond, to try them is not worth it.
    idx_t fusedLeft = 16 + job.rows * job.columns / (8 * slotLanes());
    idx_t productsLeft = kTriesProducts ? fusedLeft : 0;
    bool force = anyTakesAll(sink, job.firstRow, job.rows);
    // Of a tile, for all rows of a panel.
    HWY_ALIGN T values[kTile * kWidth];
    for (idx_t begin = 0; begin < job.columns; begin += kWidth) {
        widenPanel(job.vectors + begin * job.depth, job.depth, panel.get());
        SlotVec squares[kVecs];
        for (int v = 0; v < kVecs; ++v) {
            squares[v] = hn::Zero(d);
            if constexpr (kIsCosine) {
                SlotVec own[1];
                const double* x =
                        panel.get() + idx_t(v) * job.depth * slotLanes();
                sumLanes<Terms, 1, true>(x, 0, x, job.depth, power, own);
                squares[v] = own[0];
            }
        }
        if (productsLeft > 0) {
            panelTerms<kWidth>(
                    panel.get(),
                    job.depth,
                    productShare,
                    kIsProduct,
                    lows,
                    errors);
        }
        for (int i = 0; i < queryPanels; ++i) {
            const int rows = std::min(kTile, job.rows - i * kTile);
            const double* ofPanel =
                    queries.get() + idx_t(i) * job.depth * kTile;
            const auto compute = [&](auto count, int row, int v) HWY_ATTR {
                CanonicalPanel part;
                part.queries = ofPanel + row;
                part.vectors = panel.get() + idx_t(v) * job.depth * slotLanes();
                part.querySquares = querySquares.get() + i * kTile + row;
                part.vectorSquares = squares[v];
                part.depth = job.depth;
                computeCanonical<kMetric, decltype(count)::value>(
                        part, power, values + row * kWidth + v * slotLanes());
            };
            bool done = false;
            if constexpr (kTriesProducts) {
                constexpr int kRowsOfProducts = productRows();
                static_assert(kTile % kRowsOfProducts == 0);
                done = productsLeft > 0;
                for (int row = 0; done && row < rows; row += kRowsOfProducts) {
                    uint32_t inDoubt = keysOfProducts<kRowsOfProducts, kVecs>(
                            factors.get() + idx_t(i) * job.depth * kTile + row,
                            kTile,
                            queryTerms.data() + i * kTile + row,
                            {panel.get(), lows, errors, job.depth},
                            values + row * kWidth);
                    for (; inDoubt; inDoubt &= inDoubt - 1) {
                        const int of = row + std::countr_zero(inDoubt);
                        if (of >= rows) {
                            break; // rows that are not there
                        }
                        for (int v = 0; v < kVecs; ++v) {
                            compute(std::integral_constant<int, 1>(), of, v);
                        }
                        productsLeft -= kVecs;
                    }
                }
            }
            if (done) {
                // All of the tile is known.
            } else if (triesFused<kMetric, T>() && fusedLeft > 0) {
                constexpr int kFused = HWY_TARGET == HWY_AVX2 ? 2 : 3;
                static_assert(kTile % kFused == 0 || !HWY_NATIVE_FMA);
                for (int row = 0; row < rows; row += kFused) {
                    SlotVec sums[kFused][kVecs];
                    sumFused<kFused, kVecs>(
                            ofPanel + row,
                            kTile,
                            panel.get(),
                            job.depth,
                            power,
                            sums);
                    for (int r = 0; r < kFused; ++r) {
                        for (int v = 0; v < kVecs; ++v) {
                            if (roundAlike(
                                        d,
                                        sums[r][v],
                                        hn::Mul(sums[r][v], share))) {
                                storeKeys<kMetric>(
                                        d,
                                        sums[r][v],
                                        values + (row + r) * kWidth +
                                                v * slotLanes());
                            } else {
                                compute(std::integral_constant<int, 1>(),
                                        row + r,
                                        v);
                                --fusedLeft;
                            }
                        }
                    }
                }
            } else {
                for (int v = 0; v < kVecs; ++v) {
                    int row = 0;
                    for (; row + kRows <= rows; row += kRows) {
                        compute(std::integral_constant<int, kRows>(), row, v);
                    }
                    for (; row < rows; ++row) {
                        compute(std::integral_constant<int, 1>(), row, v);
                    }
                }
            }
            const idx_t firstRow = job.firstRow + i * kTile;
            if (force || anyUnder(sink, firstRow, rows, values)) {
                emitTile<T>(
                        sink,
                        firstRow,
                        rows,
                        {values,
                         job.firstId + begin,
                         int(std::min<idx_t>(kWidth, job.columns - begin))},
                        force);
            }
        }
        if (force) {
            force = anyTakesAll(sink, job.firstRow, job.rows);
        }
    }
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
