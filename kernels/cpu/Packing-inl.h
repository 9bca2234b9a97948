// Packing of rows into panels, component by component, straight from the
// caller's matrix (general stride), with the norms that a metric needs.

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "kernels/cpu/Emit-inl.h"
#include "kernels/cpu/KernelTypes.h"

#if defined(FAISS_BITS_KERNELS_CPU_PACKING_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_BITS_KERNELS_CPU_PACKING_INL_H_
#undef FAISS_BITS_KERNELS_CPU_PACKING_INL_H_
#else
#define FAISS_BITS_KERNELS_CPU_PACKING_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace faiss_bits::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Rows of the micro-kernel's tile: 24 of 32 registers hold sums, or 12 of 16.
template <class T>
constexpr int tileQueries() {
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
    return 12;
#else
    return 6;
#endif
}

/// Components that a block of 16 bytes holds.
template <class T>
constexpr int kBlockDepth = 16 / int(sizeof(T));

/// Fetches a line into the second cache: faster, measured, than into the first
/// (hwy::Prefetch), whose misses in flight are few.
template <class T>
HWY_INLINE void prefetchFar(const T* from) {
#if HWY_COMPILER_GCC || HWY_COMPILER_CLANG
    __builtin_prefetch(from, 0, 2);
#else
    hwy::Prefetch(from);
#endif
}

/// Rows that stand a stride apart, and rows that stand anywhere.
template <class T>
struct RegularRows {
    const T* first;
    idx_t stride;

    HWY_INLINE const T* operator[](int i) const {
        return first + i * stride;
    }
    HWY_INLINE RegularRows from(int i) const {
        return {first + i * stride, stride};
    }
    HWY_INLINE bool areDense(int depth) const {
        return stride == depth;
    }
};
template <class T>
struct ListedRows {
    const T* const* rows;

    HWY_INLINE const T* operator[](int i) const {
        return rows[i];
    }
    HWY_INLINE ListedRows from(int i) const {
        return {rows + i};
    }
    HWY_INLINE bool areDense(int) const {
        return false;
    }
};

#if HWY_TARGET != HWY_SCALAR

/// 16 bytes of every kBlockDepth-th row: block b comes from rows[b *
/// kBlockDepth] + p.
template <class D, class Rows>
HWY_INLINE hn::Vec<D> gatherBlocks(D d, const Rows& rows, int first, idx_t p) {
    if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) <= 16) {
        return hn::LoadU(d, rows[first] + p);
    } else {
        const hn::Half<D> half;
        return hn::Combine(
                d,
                gatherBlocks(half, rows, first + int(hn::MaxLanes(half)), p),
                gatherBlocks(half, rows, first, p));
    }
}

/// Components p .. p + 3 of as many rows as there are lanes, one vector each.
template <class D, class Rows>
HWY_INLINE void transposeBlocks(
        D d,
        const Rows& rows,
        idx_t p,
        hn::Vec<D> (&out)[4]) {
    const hn::RepartitionToWide<D> wide;
    const auto v0 = gatherBlocks(d, rows, 0, p);
    const auto v1 = gatherBlocks(d, rows, 1, p);
    const auto v2 = gatherBlocks(d, rows, 2, p);
    const auto v3 = gatherBlocks(d, rows, 3, p);
    const auto a0 = hn::BitCast(wide, hn::InterleaveLower(d, v0, v1));
    const auto a1 = hn::BitCast(wide, hn::InterleaveUpper(d, v0, v1));
    const auto b0 = hn::BitCast(wide, hn::InterleaveLower(d, v2, v3));
    const auto b1 = hn::BitCast(wide, hn::InterleaveUpper(d, v2, v3));
    out[0] = hn::BitCast(d, hn::InterleaveLower(wide, a0, b0));
    out[1] = hn::BitCast(d, hn::InterleaveUpper(wide, a0, b0));
    out[2] = hn::BitCast(d, hn::InterleaveLower(wide, a1, b1));
    out[3] = hn::BitCast(d, hn::InterleaveUpper(wide, a1, b1));
}

/// The same for components p and p + 1 of double.
template <class D, class Rows>
HWY_INLINE void transposeBlocks(
        D d,
        const Rows& rows,
        idx_t p,
        hn::Vec<D> (&out)[2]) {
    const auto v0 = gatherBlocks(d, rows, 0, p);
    const auto v1 = gatherBlocks(d, rows, 1, p);
    out[0] = hn::InterleaveLower(d, v0, v1);
    out[1] = hn::InterleaveUpper(d, v0, v1);
}

/// As many rows of kDepth components, one behind the other, as there are lanes.
template <int kDepth, class D, class T = hn::TFromD<D>>
HWY_INLINE void transposeShort(D d, const T* from, hn::Vec<D> (&out)[kDepth]) {
    if constexpr (kDepth == 1) {
        out[0] = hn::LoadU(d, from);
    } else if constexpr (kDepth == 2) {
        hn::LoadInterleaved2(d, from, out[0], out[1]);
    } else {
        hn::LoadInterleaved3(d, from, out[0], out[1], out[2]);
    }
}

/// packLanes for such rows.
template <int kDepth, class T>
HWY_INLINE hn::Vec<hn::ScalableTag<T>> packShort(const T* from, T* to) {
    const hn::ScalableTag<T> d;
    hn::Vec<decltype(d)> out[kDepth];
    transposeShort<kDepth>(d, from, out);
    auto squares = hn::Zero(d);
    for (int p = 0; p < kDepth; ++p) {
        hn::Store(out[p], d, to + p * tileVectors<T>());
        squares = hn::MulAdd(out[p], out[p], squares);
    }
    return squares;
}

#endif // HWY_TARGET != HWY_SCALAR

/// As many rows as a vector has lanes into one half of a panel; returns the
/// sums of squares, added in the order of the components as a product is.
/// Fetches from `ahead` on what is wanted next, in the order of the memory.
template <class T, class Rows>
HWY_INLINE hn::Vec<hn::ScalableTag<T>> packLanes(
        const Rows& rows,
        const T* ahead,
        int depth,
        T* to) {
    const hn::ScalableTag<T> d;
    constexpr int kLanes = lanesOf<T>();
    constexpr int kStep = tileVectors<T>();
    auto squares = hn::Zero(d);
    idx_t p = 0;
#if HWY_TARGET != HWY_SCALAR
    constexpr int kBlock = kBlockDepth<T>;
    constexpr int kLine = 64 / int(sizeof(T));
    if (depth < 4 && rows.areDense(depth)) {
        switch (depth) {
            case 1:
                return packShort<1>(rows[0], to);
            case 2:
                return packShort<2>(rows[0], to);
            case 3:
                return packShort<3>(rows[0], to);
        }
    }
    for (; p + kBlock <= depth; p += kBlock) {
        for (int i = 0; i < kBlock * kLanes; i += kLine) {
            prefetchFar(ahead + p * kLanes + i);
        }
        hn::Vec<decltype(d)> out[kBlock];
        transposeBlocks(d, rows, p, out);
        for (int i = 0; i < kBlock; ++i) {
            hn::Store(out[i], d, to + (p + i) * kStep);
            squares = hn::MulAdd(out[i], out[i], squares);
        }
    }
    if (p < depth && depth >= kBlock) {
        // The last components, with some that are packed already.
        hn::Vec<decltype(d)> out[kBlock];
        transposeBlocks(d, rows, depth - kBlock, out);
        for (int i = kBlock - int(depth - p); i < kBlock; ++i) {
            hn::Store(out[i], d, to + (depth - kBlock + i) * kStep);
            squares = hn::MulAdd(out[i], out[i], squares);
        }
        return squares;
    }
#else
    (void)ahead;
#endif
    for (; p < depth; ++p) {
        for (int lane = 0; lane < kLanes; ++lane) {
            to[p * kStep + lane] = rows[lane][p];
        }
        const auto v = hn::Load(d, to + p * kStep);
        squares = hn::MulAdd(v, v, squares);
    }
    return squares;
}

/// A panel; `terms` may be null.
template <class T, class Rows>
HWY_INLINE void packPanel(
        const Rows& rows,
        const T* ahead,
        int depth,
        KernelMetric metric,
        T* to,
        T* terms) {
    const hn::ScalableTag<T> d;
    constexpr int kLanes = lanesOf<T>();
    for (int first = 0; first < tileVectors<T>(); first += kLanes) {
        auto squares = packLanes<T>(
                rows.from(first),
                ahead + idx_t(first) * depth,
                depth,
                to + first);
        if (metric == KernelMetric::Cosine) {
            const auto zero = hn::Zero(d);
            squares = hn::IfThenElse(
                    hn::Eq(squares, zero),
                    zero,
                    hn::Div(hn::Set(d, T(1)), hn::Sqrt(squares)));
        }
        if (metric == KernelMetric::Cosine || metric == KernelMetric::L2 ||
            metric == KernelMetric::Product) {
            hn::Store(squares, d, terms + first);
        }
    }
}

template <class T>
void packVectors(const PackJob<T>& job, KernelMetric metric) {
    constexpr int kTile = tileVectors<T>();
    const T* rows[kTile];
    for (idx_t first = 0; first < job.count; first += kTile) {
        T* to = job.panels + first * job.depth;
        T* terms = job.terms + first;
        const idx_t row = job.begin + first;
        if (!job.rows.ids && first + kTile <= job.count) {
            const T* from = job.rows.row(row);
            packPanel<T>(
                    RegularRows<T>{from, job.rows.stride},
                    from + kTile * job.rows.stride,
                    job.depth,
                    metric,
                    to,
                    terms);
            continue;
        }
        // Rows that are not there: the last one again.
        const idx_t last = job.begin + job.count - 1;
        for (int i = 0; i < kTile; ++i) {
            rows[i] = job.rows.row(std::min(row + i, last));
        }
        packPanel<T>(
                ListedRows<T>{rows},
                job.rows.row(std::min(row + kTile, last)),
                job.depth,
                metric,
                to,
                terms);
    }
}

/// What a query is multiplied by while it is packed.
template <class T>
T queryScale(const T* row, int depth, KernelMetric metric) {
    if (metric == KernelMetric::Product) {
        return -1;
    }
    if (metric != KernelMetric::Cosine) {
        return 1;
    }
    double squares = 0;
    for (idx_t p = 0; p < depth; ++p) {
        squares += double(row[p]) * double(row[p]);
    }
    return squares == 0 ? T(0) : T(-1 / std::sqrt(squares));
}

/// |q|^2 of every row of a panel, added as a product with itself is, so that a
/// vector's distance to itself is zero. Reads up to a vector behind the panel.
template <class T>
void sumPanelSquares(const T* panel, int depth, T* terms) {
    const hn::ScalableTag<T> d;
    constexpr int kTile = tileQueries<T>();
    constexpr int kLanes = lanesOf<T>();
    HWY_ALIGN T sums[kTile + kLanes];
    for (int first = 0; first < kTile; first += kLanes) {
        auto squares = hn::Zero(d);
        for (idx_t p = 0; p < depth; ++p) {
            const auto v = hn::LoadU(d, panel + p * kTile + first);
            squares = hn::MulAdd(v, v, squares);
        }
        hn::StoreU(squares, d, sums + first);
    }
    std::copy(sums, sums + kTile, terms);
}

template <class T>
void packQueries(const PackJob<T>& job, KernelMetric metric) {
    constexpr int kTile = tileQueries<T>();
    const idx_t panels = (job.count + kTile - 1) / kTile;
    for (idx_t panel = 0; panel < panels; ++panel) {
        T* to = job.panels + panel * kTile * idx_t(job.depth);
        const int count =
                int(std::min<idx_t>(kTile, job.count - panel * kTile));
        for (int i = 0; i < count; ++i) {
            const T* row = job.rows.row(job.begin + panel * kTile + i);
            const T scale = queryScale(row, job.depth, metric);
            for (idx_t p = 0; p < job.depth; ++p) {
                to[p * kTile + i] = row[p] * scale;
            }
        }
        for (int i = count; i < kTile; ++i) {
            for (idx_t p = 0; p < job.depth; ++p) {
                to[p * kTile + i] = 0;
            }
        }
        T terms[kTile] = {};
        if (metric == KernelMetric::L2) {
            sumPanelSquares(to, job.depth, terms);
        }
        std::copy(terms, terms + count, job.terms + panel * kTile);
    }
}

template <class T>
void copyQueries(const PackJob<T>& job, KernelMetric metric, idx_t stride) {
    for (idx_t i = 0; i < job.count; ++i) {
        const T* row = job.rows.row(job.begin + i);
        T* to = job.panels + i * stride;
        const T scale = queryScale(row, job.depth, metric);
        for (idx_t p = 0; p < job.depth; ++p) {
            to[p] = row[p] * scale;
        }
        std::fill(to + job.depth, to + stride, T(0));
        job.terms[i] = 0;
    }
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
