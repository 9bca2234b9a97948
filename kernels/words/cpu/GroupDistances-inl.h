// One query against a group of words, one word in each lane. Included once per
// instruction set.

#if defined(FAISS_BITS_GROUP_DISTANCES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_BITS_GROUP_DISTANCES_INL
#undef FAISS_BITS_GROUP_DISTANCES_INL
#else
#define FAISS_BITS_GROUP_DISTANCES_INL
#endif

#include <algorithm>

#include "kernels/words/cpu/WordKernels.h"

HWY_BEFORE_NAMESPACE();
namespace faiss_bits::words::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Differences of neighbours in a column of the matrix of edit distances:
/// where the next is one more, and where it is one less.
template <class V>
struct DifferenceColumn {
    V more, less;

    /// Steps over a letter (Myers 1999 as Hyyro 2003 has it, for whole words:
    /// the row of no letters grows by one a column).
    template <class D>
    HWY_INLINE void step(D d, V same) {
        using T = hn::TFromD<D>;
        const V diagonal =
                hn::Or(hn::Xor(hn::Add(hn::And(same, more), more), more),
                       hn::Or(same, less));
        const V right = hn::Or(less, hn::Not(hn::Or(more, diagonal)));
        const V left = hn::And(more, diagonal);
        const V shifted = hn::Or(hn::ShiftLeft<1>(right), hn::Set(d, T(1)));
        more = hn::Or(
                hn::ShiftLeft<1>(left), hn::Not(hn::Or(shifted, diagonal)));
        less = hn::And(shifted, diagonal);
    }
};

template <class T>
void groupDistances(const GroupDistances<T>& group) {
    const hn::CappedTag<T, kGroupWords> d;
    const hn::RebindToSigned<decltype(d)> indices;
    const hn::CappedTag<uint32_t, kGroupWords> words;
    using V = hn::Vec<decltype(d)>;
    const size_t lanes = hn::Lanes(d);
    const int spare = int(8 * sizeof(T)) - int(group.queryLength);
    const V rows = hn::Set(d, T(~T(0)) >> spare);
    for (size_t first = 0; first < kGroupWords; first += lanes) {
        V lengths;
        const auto letters = [&](const uint32_t* from) {
            if constexpr (sizeof(T) == sizeof(uint32_t)) {
                return hn::LoadU(d, from);
            } else {
                const hn::Rebind<uint32_t, decltype(d)> half;
                return hn::PromoteTo(d, hn::LoadU(half, from));
            }
        };
        lengths = letters(group.lengths + first);
        DifferenceColumn<V> column{hn::Set(d, T(~T(0))), hn::Zero(d)};
        const auto same = [&](uint32_t place) {
            const V letter =
                    letters(group.columns + place * kGroupWords + first);
            return hn::GatherIndex(
                    d, group.table, hn::BitCast(indices, letter));
        };
        uint32_t place = 0;
        for (; place < group.shortest; ++place) {
            column.step(d, same(place));
        }
        for (; place < group.longest; ++place) {
            const auto goesOn = hn::Gt(lengths, hn::Set(d, T(place)));
            const DifferenceColumn<V> before = column;
            column.step(d, same(place));
            column.more = hn::IfThenElse(goesOn, column.more, before.more);
            column.less = hn::IfThenElse(goesOn, column.less, before.less);
        }
        const V distance = hn::Sub(
                hn::Add(lengths,
                        hn::PopulationCount(hn::And(column.more, rows))),
                hn::PopulationCount(hn::And(column.less, rows)));
        if constexpr (sizeof(T) == sizeof(uint32_t)) {
            hn::StoreU(distance, words, group.distances + first);
        } else {
            HWY_ALIGN T values[kGroupWords];
            hn::Store(distance, d, values);
            std::copy_n(values, lanes, group.distances + first);
        }
    }
}

inline uint64_t pivotSurvivors(const PivotTest& test) {
    const hn::CappedTag<uint16_t, kPivotBlock> d;
    const size_t lanes = hn::Lanes(d);
    const auto most = hn::Set(d, test.most);
    uint64_t survivors = 0;
    for (size_t first = 0; first < kPivotBlock; first += lanes) {
        auto alive = hn::Eq(most, most);
        for (int pivot = 0; pivot < test.pivots; ++pivot) {
            const auto query = hn::Set(d, test.query[pivot]);
            const auto word = hn::LoadU(
                    d, test.words + size_t(pivot) * kPivotBlock + first);
            // Saturated: one of the two is zero.
            const auto difference =
                    hn::Or(hn::SaturatedSub(query, word),
                           hn::SaturatedSub(word, query));
            alive = hn::And(
                    alive,
                    hn::Eq(hn::SaturatedSub(difference, most), hn::Zero(d)));
            if (hn::AllFalse(d, alive)) {
                break;
            }
        }
        uint8_t bits[8] = {};
        hn::StoreMaskBits(d, alive, bits);
        uint64_t part = 0;
        for (size_t i = 0; i < (lanes + 7) / 8; ++i) {
            part |= uint64_t(bits[i]) << (8 * i);
        }
        survivors |= part << first;
    }
    return survivors;
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::words::cpu
HWY_AFTER_NAMESPACE();

#endif
