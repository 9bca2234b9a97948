// Canonical distances of some queries and all of a few vectors, none of them
// packed: a component that is converted meets several queries.

#include <hwy/highway.h>

#include <algorithm>

#include "kernels/cpu/CanonicalSums-inl.h"

#if defined(FAISS_BITS_KERNELS_CPU_CANONICALPAIRS_INL_H_) == \
        defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_BITS_KERNELS_CPU_CANONICALPAIRS_INL_H_
#undef FAISS_BITS_KERNELS_CPU_CANONICALPAIRS_INL_H_
#else
#define FAISS_BITS_KERNELS_CPU_CANONICALPAIRS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace faiss_bits::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Queries and vectors that meet at a time: their sums are 16 of 32 registers,
/// or 8 of 16. Whole registers also where their conversion takes twice as long
/// (Zen 4): here it is shared by the queries.
#ifdef FAISS_BITS_WHOLE_ROWS
using PairTag = WholeRows;
constexpr int kPairQueries = 4, kPairRows = 4;
#else
using PairTag = RowTag;
constexpr int kPairQueries = 2, kPairRows = 2;
#endif

static_assert(kPairQueries <= kMostPairQueries);
constexpr int kMostPairs = kPairQueries * kPairRows;

/// Queries that meet the vectors together, as float64.
struct WideQueries {
    const double* components = nullptr; ///< [kPairQueries][stride]
    idx_t stride = 0;
    double squares[kPairQueries]; ///< sums of squares, if they are wanted
};

/// Widens a query, zeros behind it. Returns the sum of its squares.
template <class T>
HWY_INLINE double widenQuery(const T* row, int depth, double* to) {
    const PairTag d;
    using Vec = hn::Vec<PairTag>;
    constexpr int kLanes = rowLanes<PairTag>(), kVecs = rowVecs<PairTag>();
    Vec sums[kVecs];
    FAISS_BITS_UNROLL_SUMS
    for (int v = 0; v < kVecs; ++v) {
        sums[v] = hn::Zero(d);
    }
    int p = 0;
    for (; p + kCanonicalSlots <= depth; p += kCanonicalSlots) {
        FAISS_BITS_UNROLL_SUMS
        for (int v = 0; v < kVecs; ++v) {
            const Vec x = loadWide(d, row + p + v * kLanes);
            hn::StoreU(x, d, to + p + v * kLanes);
            sums[v] = hn::MulAdd(x, x, sums[v]);
        }
    }
    for (int v = 0; p < depth && v < kVecs; ++v) {
        const int at = p + v * kLanes;
        const Vec x =
                loadRowEnd(d, row + at, std::clamp(depth - at, 0, kLanes));
        hn::StoreU(x, d, to + at);
        sums[v] = hn::MulAdd(x, x, sums[v]);
    }
    return joinHalves<CanonicalProduct>(
            d, joinVectors<CanonicalProduct>(d, sums));
}

/// [kQueries][kRows]
template <class Terms, int kQueries, int kRows, class T>
HWY_INLINE void sumPairs(
        const WideQueries& queries,
        const T* const (&rows)[kPairRows],
        int depth,
        double (&out)[kMostPairs]) {
    const PairTag d;
    using Vec = hn::Vec<PairTag>;
    const CanonicalPowers power(2); // of metrics that are not met here
    constexpr int kLanes = rowLanes<PairTag>(), kVecs = rowVecs<PairTag>();
    constexpr int kPairs = kQueries * kRows;
    // As many pairs as are joined at a time.
    constexpr int kJoined = kLanes;
    constexpr int kRoom = (kPairs + kJoined - 1) / kJoined * kJoined;
    static_assert(kRoom <= kMostPairs);
    Vec sums[kRoom * kVecs];
    FAISS_BITS_UNROLL_SUMS
    for (int i = 0; i < kRoom * kVecs; ++i) {
        sums[i] = hn::Zero(d);
    }
    const double* query[kQueries];
    FAISS_BITS_UNROLL_SUMS
    for (int q = 0; q < kQueries; ++q) {
        query[q] = queries.components + q * queries.stride;
    }
    const auto addSlots = [&](int p, const auto& load) HWY_ATTR {
        FAISS_BITS_UNROLL_SUMS
        for (int v = 0; v < kVecs; ++v) {
            Vec x[kRows];
            FAISS_BITS_UNROLL_SUMS
            for (int r = 0; r < kRows; ++r) {
                x[r] = load(rows[r] + p + v * kLanes, v);
            }
            FAISS_BITS_UNROLL_SUMS
            for (int q = 0; q < kQueries; ++q) {
                const Vec y = hn::LoadU(d, query[q] + p + v * kLanes);
                FAISS_BITS_UNROLL_SUMS
                for (int r = 0; r < kRows; ++r) {
                    Vec& sum = sums[(q * kRows + r) * kVecs + v];
                    sum = Terms::add(d, sum, x[r], y, power);
                }
            }
        }
    };
    int p = 0;
    for (; p + kCanonicalSlots <= depth; p += kCanonicalSlots) {
        addSlots(p, [&](const T* from, int) HWY_ATTR {
            return loadWide(d, from);
        });
    }
    if (p < depth) {
        const int left = depth - p;
        addSlots(p, [&](const T* from, int v) HWY_ATTR {
            return loadRowEnd(
                    d, from, std::clamp(left - v * kLanes, 0, kLanes));
        });
    }
    FAISS_BITS_UNROLL_SUMS
    for (int i = 0; i < kRoom; i += kJoined) {
#ifdef FAISS_BITS_WHOLE_ROWS
        joinEight<Terms>(d, sums + i, out + i);
#else
        if constexpr (kLanes == 4) {
            joinFour<Terms>(d, sums + i * kVecs, out + i);
        } else {
            for (int r = i; r < i + kJoined; ++r) {
                Vec slots[kVecs];
                std::copy_n(sums + r * kVecs, kVecs, slots);
                out[r] = joinHalves<Terms>(d, joinVectors<Terms>(d, slots));
            }
        }
#endif
    }
}

/// What is less work than canonical sums, and mostly leads to them, is tried
/// so often.
struct PairTriesLeft {
    idx_t products, fused;
};

/// Distances by products and lengths. True if all have the float32 of the
/// canonical ones.
template <int kQueries, int kRows>
HWY_INLINE bool distancesOfPairs(
        const WideQueries& queries,
        const double (&squares)[kPairRows],
        double share,
        double (&sums)[kMostPairs]) {
    const PairTag d;
    HWY_ALIGN double sizes[kMostPairs] = {};
    for (int q = 0; q < kQueries; ++q) {
        for (int r = 0; r < kRows; ++r) {
            sizes[q * kRows + r] = queries.squares[q] + squares[r];
        }
    }
    bool alike = true;
    for (int i = 0; i < kQueries * kRows; i += rowLanes<PairTag>()) {
        const auto size = hn::Load(d, sizes + i);
        const auto product = hn::Load(d, sums + i);
        const auto distance = hn::Sub(size, hn::Add(product, product));
        hn::Store(distance, d, sums + i);
        alike = roundAlike(d, distance, hn::Mul(size, hn::Set(d, share))) &&
                alike;
    }
    return alike;
}

/// Keys of kQueries queries and `valid` vectors, of which kRows are computed.
template <KernelMetric kMetric, int kQueries, int kRows, class T>
HWY_INLINE void pairBlock(
        const PairJob<T>& job,
        const WideQueries& queries,
        idx_t first,
        int valid,
        PairTriesLeft& triesLeft,
        T* to) {
    const PairTag d;
    using Terms = decltype(canonicalTerms<kMetric, T>());
    constexpr int kPairs = kQueries * kRows, kLanes = rowLanes<PairTag>();
    const T* rows[kPairRows];
    for (int r = 0; r < kPairRows; ++r) {
        rows[r] = job.vectors.row(first + std::min(r, valid - 1));
    }
    HWY_ALIGN double sums[kMostPairs];
    bool done = false;
    if constexpr (triesFused<kMetric, T>()) {
        if (triesLeft.products > 0) {
            double squares[kPairRows];
            for (int r = 0; r < kPairRows; ++r) {
                squares[r] = job.vectorSquares[first + std::min(r, valid - 1)];
            }
            sumPairs<FusedProduct, kQueries, kRows>(
                    queries, rows, job.depth, sums);
            done = distancesOfPairs<kQueries, kRows>(
                    queries, squares, fusedProductShare(job.depth), sums);
            triesLeft.products -= !done;
        }
        if (!done && triesLeft.fused > 0) {
            sumPairs<FusedSquares, kQueries, kRows>(
                    queries, rows, job.depth, sums);
            const auto share = hn::Set(d, fusedShare(job.depth));
            done = true;
            for (int i = 0; i < kPairs; i += kLanes) {
                const auto sum = hn::Load(d, sums + i);
                done = roundAlike(d, sum, hn::Mul(sum, share)) && done;
            }
            triesLeft.fused -= !done;
        }
    }
    if (!done) {
        sumPairs<Terms, kQueries, kRows>(queries, rows, job.depth, sums);
    }
    HWY_ALIGN T keys[kMostPairs];
    for (int i = 0; i < kPairs; i += kLanes) {
        storeKeys<kMetric>(d, hn::Load(d, sums + i), keys + i);
    }
    for (int q = 0; q < kQueries; ++q) {
        if (valid == kRows) {
            std::copy_n(keys + q * kRows, kRows, to + q * job.keyStride);
        } else {
            std::copy_n(keys + q * kRows, valid, to + q * job.keyStride);
        }
    }
}

/// kQueries queries from the i-th of the job on.
template <KernelMetric kMetric, int kQueries, class T>
void pairQueries(const PairJob<T>& job, idx_t i, PairTriesLeft& triesLeft) {
    WideQueries queries;
    queries.stride = roundUp(job.depth, kCanonicalSlots);
    queries.components = job.widened;
    for (int q = 0; q < kQueries; ++q) {
        queries.squares[q] = widenQuery(
                job.queries.row(job.firstQuery + i + q),
                job.depth,
                job.widened + q * queries.stride);
    }
    T* const keys = job.keys + i * job.keyStride;
    for (idx_t first = 0; first < job.numVectors; first += kPairRows) {
        const int valid =
                int(std::min<idx_t>(kPairRows, job.numVectors - first));
        if (valid == 1) {
            pairBlock<kMetric, kQueries, 1>(
                    job, queries, first, valid, triesLeft, keys + first);
        } else {
            pairBlock<kMetric, kQueries, kPairRows>(
                    job, queries, first, valid, triesLeft, keys + first);
        }
    }
}

template <KernelMetric kMetric, class T>
void pairDistances(const PairJob<T>& job) {
    // An eighth of all: beyond, to try what may fail is not worth it.
    PairTriesLeft triesLeft;
    triesLeft.fused = 2 + job.numQueries * job.numVectors / (8 * kMostPairs);
    triesLeft.products = job.vectorSquares ? triesLeft.fused : 0;
    idx_t i = 0;
    for (; i + kPairQueries <= job.numQueries; i += kPairQueries) {
        pairQueries<kMetric, kPairQueries>(job, i, triesLeft);
    }
    switch (job.numQueries - i) {
        case 1:
            return pairQueries<kMetric, 1>(job, i, triesLeft);
        case 2:
            return pairQueries<kMetric, std::min(2, kPairQueries)>(
                    job, i, triesLeft);
        case 3:
            return pairQueries<kMetric, std::min(3, kPairQueries)>(
                    job, i, triesLeft);
    }
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
