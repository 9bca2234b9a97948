// Vectors against few queries without packing: every vector is read once, and
// the sums of as many vectors as there are lanes are joined at once.

#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "kernels/cpu/DirectRows-inl.h"
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

/// A query and as many vectors as a tile has, of which `valid` exist.
template <KernelMetric kMetric, int kDepth, class T, class Noted>
HWY_INLINE void scanQuery(
        const ScanJob<T>& job,
        int row,
        const ScanRows<T>& rows,
        idx_t begin,
        int valid,
        const T* scales,
        Noted& noted) {
    using Terms = decltype(scanTerms<kMetric>());
    const hn::ScalableTag<T> d;
    constexpr int kLanes = lanesOf<T>();
    constexpr int kWidth = tileVectors<T>();
    HWY_ALIGN T values[kWidth];
    Sink<T>& sink = *job.sink;
    const T* query = job.queries + row * job.queryStride;
    for (int v = 0; v < kWidth; v += kLanes) {
        const idx_t first = begin + std::min(v, valid - 1);
        auto sums = scanRows<Terms, false, kDepth>(
                query, rows, first, valid - v, noted);
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

/// A number that no |x|^2 of the rows is above, but for its rounding.
template <int kDepth, class T>
HWY_INLINE T largestSquareOf(const SquaresNoted<T>& noted) {
    const hn::ScalableTag<T> d;
    HWY_ALIGN T lanes[lanesOf<T>()];
    hn::Store(hn::Max(noted.most[1], noted.most[0]), d, lanes);
    T sum = 0, most = 0;
    for (const T lane : lanes) {
        if (lane != lane) { // what it hides is not known
            return std::numeric_limits<T>::infinity();
        }
        sum += lane;
        most = std::max(most, lane);
    }
    // Lanes hold sums of parts of a row, or single components of some rows.
    return kDepth > 0 ? kDepth * most : sum;
}

template <KernelMetric kMetric, int kDepth, class T>
void scanDirectly(const ScanJob<T>& job) {
    const hn::ScalableTag<T> d;
    constexpr int kLanes = lanesOf<T>();
    constexpr int kWidth = tileVectors<T>();
    HWY_ALIGN T scales[kWidth];
    const ScanRows<T> rows(job);
    NothingNoted nothing;
    SquaresNoted<T> squares = {{hn::Zero(d), hn::Zero(d)}};
    for (idx_t begin = job.begin; begin < job.end; begin += kWidth) {
        const int valid = int(std::min<idx_t>(kWidth, job.end - begin));
        if constexpr (kMetric == KernelMetric::Cosine) {
            for (int v = 0; v < kWidth; v += kLanes) {
                const idx_t first = begin + std::min(v, valid - 1);
                hn::Store(
                        scanScales<kDepth>(job.queries, rows, first, valid - v),
                        d,
                        scales + v);
            }
            if (job.scales) {
                std::copy_n(scales, valid, job.scales + (begin - job.begin));
            }
        }
        int row = 0;
        if constexpr (kMetric == KernelMetric::Product) {
            if (job.largestSquare) {
                scanQuery<kMetric, kDepth>(
                        job, row++, rows, begin, valid, scales, squares);
            }
        }
        for (; row < job.rows; ++row) {
            scanQuery<kMetric, kDepth>(
                    job, row, rows, begin, valid, scales, nothing);
        }
    }
    if (job.largestSquare) {
        *job.largestSquare =
                std::max(*job.largestSquare, largestSquareOf<kDepth>(squares));
    }
}

/// scanDirectly for rows of kDepth components, if these fit into a vector.
template <KernelMetric kMetric, int kDepth, class T>
void scanShort(const ScanJob<T>& job) {
    if constexpr (kDepth <= lanesOf<T>()) {
        scanDirectly<kMetric, kDepth>(job);
    } else {
        scanDirectly<kMetric, kAnyDepth>(job);
    }
}

template <KernelMetric kMetric, class T>
void scanDirect(const ScanJob<T>& job) {
    const bool isDense = !job.vectors.ids && job.vectors.stride == job.depth;
    switch (isDense ? job.depth : kAnyDepth) {
        case 1:
            return scanShort<kMetric, 1>(job);
        case 2:
            return scanShort<kMetric, 2>(job);
        case 3:
            return scanShort<kMetric, 3>(job);
        case 4:
            return scanShort<kMetric, 4>(job);
        case 8:
            return scanShort<kMetric, 8>(job);
        case 16:
            return scanShort<kMetric, 16>(job);
        default:
            break;
    }
    if constexpr (
            kMetric == KernelMetric::L2 || kMetric == KernelMetric::Product) {
        if (job.isNear) {
            return scanDirectly<kMetric, kAnyDepthNear>(job);
        }
    }
    return scanDirectly<kMetric, kAnyDepth>(job);
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
