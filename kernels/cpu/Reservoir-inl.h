// Narrows a list of candidates to the k nearest, or a few more: by bisection on
// the keys, counting with vectors, and one stable compaction.

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/KernelTypes.h"

#if defined(FAISS_BITS_KERNELS_CPU_RESERVOIR_INL_H_) == \
        defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_BITS_KERNELS_CPU_RESERVOIR_INL_H_
#undef FAISS_BITS_KERNELS_CPU_RESERVOIR_INL_H_
#else
#define FAISS_BITS_KERNELS_CPU_RESERVOIR_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace faiss_bits::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_AVX2

/// For every mask of eight lanes, the numbers of its lanes, then of the others.
struct CompressTable {
    constexpr CompressTable() {
        for (int mask = 0; mask < 256; ++mask) {
            int place = 0;
            for (const int bit : {1, 0}) {
                for (int lane = 0; lane < 8; ++lane) {
                    if ((mask >> lane & 1) == bit) {
                        lanes[mask][place++] = uint8_t(lane);
                    }
                }
            }
        }
    }
    alignas(64) uint8_t lanes[256][8] = {};
};
inline constexpr CompressTable kCompressTable;

/// hn::Compress: Highway's tables are on the stack, copied there by GCC at
/// every call, which takes ten times as long as the rest.
template <class D, class V, class M>
HWY_INLINE V compressLanes(D d, V v, M mask) {
    const hn::Repartition<uint32_t, D> words;
    const hn::Rebind<uint8_t, decltype(words)> bytes;
    uint8_t bits[8] = {};
    hn::StoreMaskBits(d, mask, bits);
    unsigned of = bits[0];
    if constexpr (sizeof(hn::TFromD<D>) == 8) {
        // Each bit twice.
        of = (of | of << 2) & 0x33;
        of = (of | of << 1) & 0x55;
        of |= of << 1;
    }
    const auto indices =
            hn::PromoteTo(words, hn::LoadU(bytes, kCompressTable.lanes[of]));
    return hn::BitCast(
            d,
            hn::TableLookupLanes(
                    hn::BitCast(words, v), hn::IndicesFromVec(words, indices)));
}

#else

template <class D, class V, class M>
HWY_INLINE V compressLanes(D, V v, M mask) {
    return hn::Compress(v, mask);
}

#endif

/// Lanes of `v` that `mask` names, at `to` and behind; writes a whole vector.
/// Not CompressStore: that is slow on some processors (Zen 4).
template <class D, class V, class M>
HWY_INLINE void storeCompressed(D d, V v, M mask, hn::TFromD<D>* to) {
    hn::StoreU(compressLanes(d, v, mask), d, to);
}

template <class T>
idx_t countNotAbove(const T* keys, idx_t count, T pivot) {
    const hn::ScalableTag<T> d;
    const hn::RebindToSigned<decltype(d)> di;
    const idx_t lanes = hn::Lanes(d);
    const auto limit = hn::Set(d, pivot);
    // A lane counts down by one for each key; 2^30 keys fit.
    auto found = hn::Zero(di);
    idx_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        const auto mask = hn::Le(hn::LoadU(d, keys + i), limit);
        found = hn::Add(found, hn::VecFromMask(di, hn::RebindMask(di, mask)));
    }
    HWY_ALIGN hn::TFromD<decltype(di)> sums[hn::MaxLanes(di)];
    hn::Store(found, di, sums);
    idx_t total = 0;
    for (idx_t lane = 0; lane < lanes; ++lane) {
        total -= sums[lane];
    }
    for (; i < count; ++i) {
        total += keys[i] <= pivot;
    }
    return total;
}

/// Finite keys' range; false where there is none.
template <class T>
bool finiteRange(const T* keys, idx_t count, T& low, T& high) {
    const hn::ScalableTag<T> d;
    const idx_t lanes = hn::Lanes(d);
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    const auto infinity = hn::Set(d, kInfinity);
    const auto minusInfinity = hn::Set(d, -kInfinity);
    auto lows = infinity;
    auto highs = minusInfinity;
    idx_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        const auto v = hn::LoadU(d, keys + i);
        const auto finite = hn::Lt(hn::Abs(v), infinity);
        lows = hn::Min(lows, hn::IfThenElse(finite, v, infinity));
        highs = hn::Max(highs, hn::IfThenElse(finite, v, minusInfinity));
    }
    low = hn::GetLane(hn::MinOfLanes(d, lows));
    high = hn::GetLane(hn::MaxOfLanes(d, highs));
    for (; i < count; ++i) {
        if (std::abs(keys[i]) < kInfinity) {
            low = std::min(low, keys[i]);
            high = std::max(high, keys[i]);
        }
    }
    return low <= high;
}

/// A key with k .. most keys at or under it; false where that is not found soon
/// (many equal keys, infinities, NaN). Guesses by the ranks at both ends, which
/// a smooth distribution needs two or three of; every third time halves.
template <class T>
bool findPivot(const NarrowJob<T>& job, T& pivot) {
    constexpr int kSteps = 24;
    T low, high;
    if (!finiteRange(job.keys, job.count, low, high)) {
        return false;
    }
    const T rank = T(job.k) + T(job.most - job.k) / 2;
    T rankLow = 0, rankHigh = T(job.count);
    for (int step = 0; step < kSteps; ++step) {
        T share = (rank - rankLow) / (rankHigh - rankLow);
        if (step % 3 == 2) {
            share = T(0.5);
        }
        pivot = low + (high - low) * share;
        const idx_t found = countNotAbove(job.keys, job.count, pivot);
        if (found >= job.k && found <= job.most) {
            return true;
        }
        if (!(low < pivot && pivot < high)) {
            return false;
        }
        (found < job.k ? low : high) = pivot;
        (found < job.k ? rankLow : rankHigh) = T(found);
    }
    return false;
}

template <class T>
Narrowed<T> keepNotAbove(const NarrowJob<T>& job, T pivot) {
    const hn::ScalableTag<T> d;
    const hn::RebindToSigned<decltype(d)> di;
    using Id = CandidateId<T>;
    const idx_t lanes = hn::Lanes(d);
    const auto limit = hn::Set(d, pivot);
    idx_t kept = 0, i = 0;
    auto place = hn::Iota(di, Id(job.firstId));
    const auto step = hn::Set(di, Id(lanes));
    for (; i + lanes <= job.count; i += lanes) {
        const auto keys = hn::LoadU(d, job.keys + i);
        const auto mask = hn::Le(keys, limit);
        const auto ids = job.ids ? hn::LoadU(di, job.ids + i) : place;
        place = hn::Add(place, step);
        storeCompressed(d, keys, mask, job.outKeys + kept);
        storeCompressed(di, ids, hn::RebindMask(di, mask), job.outIds + kept);
        kept += idx_t(hn::CountTrue(d, mask));
    }
    for (; i < job.count; ++i) {
        if (job.keys[i] <= pivot) {
            const T key = job.keys[i];
            job.outIds[kept] = job.ids ? job.ids[i] : Id(job.firstId + i);
            job.outKeys[kept++] = key;
        }
    }
    return {kept, pivot, RowState::Below};
}

/// Those above one pivot and not above another, of which there are few.
template <class T>
idx_t keepBetween(const NarrowJob<T>& job, T above, T pivot) {
    const hn::ScalableTag<T> d;
    const idx_t lanes = hn::Lanes(d);
    const auto low = hn::Set(d, above);
    const auto limit = hn::Set(d, pivot);
    idx_t kept = 0, i = 0;
    const auto take = [&](idx_t end) {
        for (; i < end; ++i) {
            if (job.keys[i] > above && job.keys[i] <= pivot) {
                job.outIds[kept] =
                        job.ids ? job.ids[i] : CandidateId<T>(job.firstId + i);
                job.outKeys[kept++] = job.keys[i];
            }
        }
    };
    while (i + lanes <= job.count) {
        const auto keys = hn::LoadU(d, job.keys + i);
        if (HWY_UNLIKELY(!hn::AllFalse(
                    d, hn::And(hn::Gt(keys, low), hn::Le(keys, limit))))) {
            take(i + lanes);
        } else {
            i += lanes;
        }
    }
    take(job.count);
    return kept;
}

/// Exactly k, whatever the keys are.
template <class T>
Narrowed<T> keepExactly(const NarrowJob<T>& job) {
    std::vector<T> sorted(job.keys, job.keys + job.count);
    const auto kth = sorted.begin() + (job.k - 1);
    std::nth_element(sorted.begin(), kth, sorted.end(), [](T a, T b) {
        return std::isnan(b) ? !std::isnan(a) : a < b;
    });
    const T limit = *kth;
    const bool numbers = std::isnan(limit);
    const auto isLess = [&](T key) {
        return numbers ? !std::isnan(key) : key < limit;
    };
    idx_t ties = job.k;
    for (idx_t i = 0; i < job.count; ++i) {
        ties -= isLess(job.keys[i]);
    }
    idx_t kept = 0;
    for (idx_t i = 0; i < job.count; ++i) {
        const T key = job.keys[i];
        bool keep = isLess(key);
        if (!keep && ties > 0 && (numbers || key == limit)) {
            keep = true;
            --ties;
        }
        if (keep) {
            job.outIds[kept] =
                    job.ids ? job.ids[i] : CandidateId<T>(job.firstId + i);
            job.outKeys[kept++] = key;
        }
    }
    return {kept, limit, numbers ? RowState::Numbers : RowState::Below};
}

template <class T>
T findLimit(const NarrowJob<T>& job) {
    T pivot;
    if (findPivot(job, pivot)) {
        return pivot;
    }
    std::vector<T> sorted(job.keys, job.keys + job.count);
    const auto kth = sorted.begin() + (job.k - 1);
    std::nth_element(sorted.begin(), kth, sorted.end(), [](T a, T b) {
        return std::isnan(b) ? !std::isnan(a) : a < b;
    });
    return *kth;
}

template <class T>
Narrowed<T> narrow(const NarrowJob<T>& job) {
    T pivot;
    return findPivot(job, pivot) ? keepNotAbove(job, pivot) : keepExactly(job);
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
