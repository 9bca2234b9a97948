// Rows of a scan: what is read of them and noted, and the sums of rows that are
// in a cache.

#include <hwy/highway.h>

#include <algorithm>

#include "kernels/cpu/Emit-inl.h"
#include "kernels/cpu/KernelTypes.h"
#include "kernels/cpu/MicroKernel-inl.h"

#if defined(FAISS_BITS_KERNELS_CPU_NEARROWS_INL_H_) == \
        defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_BITS_KERNELS_CPU_NEARROWS_INL_H_
#undef FAISS_BITS_KERNELS_CPU_NEARROWS_INL_H_
#else
#define FAISS_BITS_KERNELS_CPU_NEARROWS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace faiss_bits::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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

/// Bytes between what is read and what is fetched: far enough for memory, and
/// little beside a first-level cache.
constexpr idx_t kFetchBytes = 8192;

/// The rows of a scan.
template <class T>
struct ScanRows {
    explicit ScanRows(const ScanJob<T>& job)
            : vectors(job.vectors),
              last(job.end - 1),
              ahead(kFetchBytes / (idx_t(sizeof(T)) * job.depth) + 1),
              depth(job.depth),
              power(job.power) {}

    const T* row(idx_t i) const {
        return vectors.row(i);
    }

    RowView<T> vectors;
    idx_t last;  ///< row
    idx_t ahead; ///< rows between one that is read and one that is fetched
    int depth;
    PowerOf<T> power;
};

/// A vector that is loaded once, however often it is used: GCC loads it for
/// each use where an operation can, and rows between lines cost two loads.
template <class V>
HWY_INLINE V loadedOnce(V x) {
#if HWY_COMPILER_GCC_ACTUAL && HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
    asm("" : "+v"(x.raw));
#endif
    return x;
}

/// What a scan notes of the rows that it reads: nothing.
struct NothingNoted {
    static constexpr bool kSquares = false;
};

/// The largest sum of squares of a row, lane by lane. It takes a multiply-add
/// for what is in a register anyway. NaN is none, or is the result.
template <class T>
struct SquaresNoted {
    static constexpr bool kSquares = true;
    using V = hn::Vec<hn::ScalableTag<T>>;

    /// `i`: two in turn do not wait for each other.
    HWY_INLINE void take(V squares, int i = 0) {
        most[i % 2] = hn::Max(squares, most[i % 2]);
    }

    V most[2];
};

/// Rows that are read side by side, so that a component of the query is loaded
/// once for them: as many as there are registers for.
template <class T>
constexpr int nearRows() {
#if HWY_TARGET == HWY_SCALAR
    return 1;
#elif HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
    return std::min(4, lanesOf<T>());
#else
    return std::min(2, lanesOf<T>());
#endif
}

/// Sums of rows that are in a cache, lane by lane: those of scanRow, bit for
/// bit. Nothing is fetched, and no order of reads is kept, which costs more
/// than twice the time where rows come from memory.
template <class Terms, bool kSelf, class T, class Noted>
HWY_INLINE void scanNearRows(
        const T* query,
        const T* const* row,
        const ScanRows<T>& rows,
        Noted& noted,
        hn::Vec<hn::ScalableTag<T>>* to) {
    const hn::ScalableTag<T> d;
    using V = hn::Vec<decltype(d)>;
    constexpr int kLanes = lanesOf<T>();
    constexpr int kSums = 4;
    constexpr int kRows = nearRows<T>();
    const int depth = rows.depth;
    V sums[kRows][kSums], squares[kRows];
    FAISS_BITS_UNROLL
    for (int r = 0; r < kRows; ++r) {
        squares[r] = hn::Zero(d);
        FAISS_BITS_UNROLL
        for (int i = 0; i < kSums; ++i) {
            sums[r][i] = hn::Zero(d);
        }
    }
    const auto take = [&](int r, int i, V x, V q) HWY_ATTR {
        if constexpr (Noted::kSquares) {
            x = loadedOnce(x);
            squares[r] = hn::MulAdd(x, x, squares[r]);
        }
        sums[r][i] = Terms::add(d, sums[r][i], kSelf ? x : q, x, rows.power);
    };
    idx_t p = 0;
    for (; p + kSums * kLanes <= depth; p += kSums * kLanes) {
        FAISS_BITS_UNROLL
        for (int i = 0; i < kSums; ++i) {
            const idx_t at = p + i * kLanes;
            const V q = loadedOnce(hn::Load(d, query + at));
            FAISS_BITS_UNROLL
            for (int r = 0; r < kRows; ++r) {
                take(r, i, hn::LoadU(d, row[r] + at), q);
            }
        }
    }
    // Of two vectors each has a sum.
    const idx_t whole = depth - (depth == 2 * kLanes);
    for (; p + kLanes <= whole; p += kLanes) {
        const V q = loadedOnce(hn::Load(d, query + p));
        FAISS_BITS_UNROLL
        for (int r = 0; r < kRows; ++r) {
            take(r, 0, hn::LoadU(d, row[r] + p), q);
        }
    }
    if (p < depth) {
        const V q = hn::Load(d, query + p);
        FAISS_BITS_UNROLL
        for (int r = 0; r < kRows; ++r) {
            take(r, 1, loadFirst(d, row[r] + p, int(depth - p)), q);
        }
    }
    FAISS_BITS_UNROLL
    for (int r = 0; r < kRows; ++r) {
        if constexpr (Noted::kSquares) {
            noted.take(squares[r], r);
        }
        to[r] = Terms::join(
                d,
                Terms::join(d, sums[r][0], sums[r][1]),
                Terms::join(d, sums[r][2], sums[r][3]));
    }
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
