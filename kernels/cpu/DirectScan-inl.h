// Vectors against few queries without packing: every vector is read once, and
// the sums of as many vectors as there are lanes are joined at once.

#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "kernels/cpu/Emit-inl.h"
#include "kernels/cpu/KernelTypes.h"
#include "kernels/cpu/MicroKernel-inl.h"

#if defined(FAISS_BITS_KERNELS_CPU_DIRECTSCAN_INL_H_) == \
        defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_BITS_KERNELS_CPU_DIRECTSCAN_INL_H_
#undef FAISS_BITS_KERNELS_CPU_DIRECTSCAN_INL_H_
#else
#define FAISS_BITS_KERNELS_CPU_DIRECTSCAN_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace faiss_bits::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <KernelMetric kMetric>
constexpr auto scanTerms() {
    if constexpr (kMetric == KernelMetric::L2) {
        return SquareTerms();
    } else {
        return tileTerms<kMetric>();
    }
}

/// Lane i of the result joins the lanes of sums[i]. Overwrites sums.
template <class Terms, class D, int kLanes>
HWY_INLINE hn::Vec<D> joinLanes(D d, hn::Vec<D> (&sums)[kLanes]) {
#if HWY_TARGET != HWY_SCALAR
    FAISS_BITS_UNROLL
    for (int count = kLanes / 2; count > 0; count /= 2) {
        FAISS_BITS_UNROLL
        for (int i = 0; i < count; ++i) {
            const auto low = sums[2 * i];
            const auto high = sums[2 * i + 1];
            sums[i] = Terms::join(
                    d,
                    hn::ConcatEven(d, high, low),
                    hn::ConcatOdd(d, high, low));
        }
    }
#else
    (void)d;
#endif
    return sums[0];
}

/// The first `count` components of a row, zeros behind.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> loadFirst(D d, const T* from, int count) {
#if HWY_MEM_OPS_MIGHT_FAULT
    HWY_ALIGN T lanes[hn::MaxLanes(D())] = {};
    for (int i = 0; i < count; ++i) {
        lanes[i] = from[i];
    }
    return hn::Load(d, lanes);
#else
    return hn::MaskedLoad(hn::FirstN(d, size_t(count)), d, from);
#endif
}

/// Sums of one row, lane by lane. Memory is read in order, which the prefetch
/// of processors needs to keep up; four sums hide the latency of an addition.
template <class Terms, bool kSelf, class T>
HWY_INLINE hn::Vec<hn::ScalableTag<T>> scanRow(
        const T* query,
        const T* row,
        int depth,
        const PowerOf<T>& power) {
    const hn::ScalableTag<T> d;
    using V = hn::Vec<decltype(d)>;
    constexpr int kLanes = lanesOf<T>();
    constexpr int kSums = 4;
    const auto add = [&](V sum, V q, V x) HWY_ATTR {
        return Terms::add(d, sum, kSelf ? x : q, x, power);
    };
    V sums[kSums];
    FAISS_BITS_UNROLL
    for (int i = 0; i < kSums; ++i) {
        sums[i] = hn::Zero(d);
    }
    idx_t p = 0;
    for (; p + kSums * kLanes <= depth; p += kSums * kLanes) {
        FAISS_BITS_UNROLL
        for (int i = 0; i < kSums; ++i) {
            sums[i] =
                    add(sums[i],
                        hn::Load(d, query + p + i * kLanes),
                        hn::LoadU(d, row + p + i * kLanes));
        }
    }
    for (; p + kLanes <= depth; p += kLanes) {
        sums[0] = add(sums[0], hn::Load(d, query + p), hn::LoadU(d, row + p));
    }
    if (p < depth) {
        sums[1] =
                add(sums[1],
                    hn::Load(d, query + p),
                    loadFirst(d, row + p, int(depth - p)));
    }
    return Terms::join(
            d,
            Terms::join(d, sums[0], sums[1]),
            Terms::join(d, sums[2], sums[3]));
}

/// One value for each of as many rows as there are lanes. With kSelf, rows are
/// their own queries.
template <class Terms, bool kSelf, class T>
HWY_INLINE hn::Vec<hn::ScalableTag<T>> scanRows(
        const T* query,
        const T* const* rows,
        int depth,
        const PowerOf<T>& power) {
    const hn::ScalableTag<T> d;
    constexpr int kLanes = lanesOf<T>();
    hn::Vec<decltype(d)> sums[kLanes];
    FAISS_BITS_UNROLL
    for (int i = 0; i < kLanes; ++i) {
        sums[i] = scanRow<Terms, kSelf>(query, rows[i], depth, power);
    }
    return joinLanes<Terms>(d, sums);
}

/// Raises `largest` to the largest |component| of some rows. NaN is none, or is
/// the result.
template <class T>
HWY_INLINE hn::Vec<hn::ScalableTag<T>> largestOf(
        const T* const* rows,
        int count,
        int depth,
        hn::Vec<hn::ScalableTag<T>> largest) {
    const hn::ScalableTag<T> d;
    constexpr int kLanes = lanesOf<T>();
    for (int i = 0; i < count; ++i) {
        idx_t p = 0;
        for (; p + kLanes <= depth; p += kLanes) {
            largest = hn::Max(hn::Abs(hn::LoadU(d, rows[i] + p)), largest);
        }
        if (p < depth) {
            const auto x = loadFirst(d, rows[i] + p, int(depth - p));
            largest = hn::Max(hn::Abs(x), largest);
        }
    }
    return largest;
}

template <KernelMetric kMetric, class T>
void scanDirect(const ScanJob<T>& job) {
    using Terms = decltype(scanTerms<kMetric>());
    const hn::ScalableTag<T> d;
    constexpr int kLanes = lanesOf<T>();
    constexpr int kWidth = tileVectors<T>();
    HWY_ALIGN T values[kWidth];
    HWY_ALIGN T scales[kWidth];
    const T* rows[kWidth];
    const PowerOf<T> power(job.power);
    Sink<T>& sink = *job.sink;
    auto largest = hn::Zero(d);
    for (idx_t begin = job.begin; begin < job.end; begin += kWidth) {
        const int valid = int(std::min<idx_t>(kWidth, job.end - begin));
        for (int i = 0; i < kWidth; ++i) {
            rows[i] = job.vectors.row(begin + std::min(i, valid - 1));
        }
        if constexpr (kMetric == KernelMetric::Cosine) {
            for (int v = 0; v < kWidth; v += kLanes) {
                const auto squares = scanRows<ProductTerms, true>(
                        job.queries, rows + v, job.depth, power);
                const auto zero = hn::Zero(d);
                hn::Store(
                        hn::IfThenElse(
                                hn::Eq(squares, zero),
                                zero,
                                hn::Div(hn::Set(d, T(1)), hn::Sqrt(squares))),
                        d,
                        scales + v);
            }
            if (job.scales) {
                std::copy_n(scales, valid, job.scales + (begin - job.begin));
            }
        }
        if constexpr (kMetric == KernelMetric::Product) {
            if (job.largestComponent) {
                largest = largestOf(rows, valid, job.depth, largest);
            }
        }
        for (int row = 0; row < job.rows; ++row) {
            const T* query = job.queries + row * job.queryStride;
            for (int v = 0; v < kWidth; v += kLanes) {
                auto sums = scanRows<Terms, false>(
                        query, rows + v, job.depth, power);
                if constexpr (kMetric == KernelMetric::Cosine) {
                    sums = hn::Mul(sums, hn::Load(d, scales + v));
                }
                hn::Store(sums, d, values + v);
            }
            if (takesAll(sink, row) || passesFilter(sink.filter[row], values)) {
                const idx_t id = job.firstId + (begin - job.begin);
                emitRow(sink, row, TileRow<T>{values, id, valid});
            }
        }
    }
    if (job.largestComponent) {
        HWY_ALIGN T lanes[kLanes];
        hn::Store(largest, d, lanes);
        for (const T lane : lanes) {
            // NaN: what it hides is not known.
            *job.largestComponent = lane != lane
                    ? std::numeric_limits<T>::infinity()
                    : std::max(lane, *job.largestComponent);
        }
    }
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
