// Entries of a list of candidates, and rows of a result of sorted entries: what
// is before and behind the sort, a vector at a time.

#include <bit>

#include <hwy/highway.h>

#include "kernels/cpu/KernelTypes.h"
#include "kernels/cpu/OrderedEntry.h"

#if defined(FAISS_BITS_KERNELS_CPU_ENTRIES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_BITS_KERNELS_CPU_ENTRIES_INL_H_
#undef FAISS_BITS_KERNELS_CPU_ENTRIES_INL_H_
#else
#define FAISS_BITS_KERNELS_CPU_ENTRIES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace faiss_bits::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// orderedBits of a vector of keys.
template <class D, class V>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> orderedBitsOf(D d, V key) {
    using T = hn::TFromD<D>;
    const hn::RebindToUnsigned<D> du;
    const hn::RebindToSigned<D> di;
    using Bits = hn::TFromD<decltype(du)>;
    const auto ones = hn::Set(du, Bits(~Bits(0)));
    const auto bits = hn::BitCast(di, hn::Add(key, hn::Set(d, T(0))));
    const auto flipped =
            hn::Xor(hn::BitCast(du, bits),
                    hn::Or(hn::BitCast(du, hn::BroadcastSignBit(bits)),
                           hn::Set(du, Bits(Bits(1) << (8 * sizeof(T) - 1)))));
    return hn::IfThenElse(hn::RebindMask(du, hn::Eq(key, key)), flipped, ones);
}

/// keyOfBits of those of numbers.
template <class D, class V>
HWY_INLINE hn::Vec<D> keysOfBits(D d, V bits) {
    using T = hn::TFromD<D>;
    const hn::RebindToUnsigned<D> du;
    const hn::RebindToSigned<D> di;
    using Bits = hn::TFromD<decltype(du)>;
    const auto sign = hn::Set(du, Bits(Bits(1) << (8 * sizeof(T) - 1)));
    const auto below = hn::AndNot(
            hn::BitCast(du, hn::BroadcastSignBit(hn::BitCast(di, bits))),
            hn::Set(du, Bits(~Bits(0))));
    return hn::BitCast(d, hn::Xor(bits, hn::Or(below, sign)));
}

// A float entry is stored as its id and its key's bits.
static_assert(std::endian::native == std::endian::little);

/// Entries of `count` candidates; ids: nullptr: firstId and on. Their range.
template <class T>
OrderRange<T> makeEntries(
        const T* keys,
        const CandidateId<T>* ids,
        idx_t firstId,
        idx_t count,
        OrderedEntry<T>* to) {
    using Id = CandidateId<T>;
    OrderRange<T> range;
    idx_t i = 0;
    // Targets without vectors read memory as plain C++ does, to which an entry
    // is no pair of numbers.
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
    const hn::ScalableTag<T> d;
    const hn::RebindToSigned<decltype(d)> di;
    const hn::RebindToUnsigned<decltype(d)> du;
    using Order = typename OrderRange<T>::Order;
    const idx_t lanes = hn::Lanes(d);
    auto least = hn::Set(du, range.least);
    auto most = hn::Set(du, range.most);
    auto place = hn::Iota(di, Id(firstId));
    const auto step = hn::Set(di, Id(lanes));
    for (; i + lanes <= count; i += lanes) {
        const auto order = orderedBitsOf(d, hn::LoadU(d, keys + i));
        const auto id = hn::BitCast(du, ids ? hn::LoadU(di, ids + i) : place);
        place = hn::Add(place, step);
        least = hn::Min(least, order);
        most = hn::Max(most, order);
        Order* const out = reinterpret_cast<Order*>(to + i);
        if constexpr (sizeof(T) == 4) {
            hn::StoreInterleaved2(id, order, du, out);
        } else {
            hn::StoreInterleaved2(order, id, du, out);
        }
    }
    HWY_ALIGN Order ends[2 * hn::MaxLanes(du)];
    hn::Store(least, du, ends);
    hn::Store(most, du, ends + lanes);
    for (idx_t lane = 0; i > 0 && lane < 2 * lanes; ++lane) {
        range.include(ends[lane]);
    }
#endif
    for (; i < count; ++i) {
        to[i] = OrderedEntry<T>(keys[i], ids ? ids[i] : Id(firstId + i));
        range.include(to[i].order());
    }
    return range;
}

/// Keys and ids of sorted entries, none of them NaN. idMap: nullptr: as they
/// are. Negated keys are similarities.
template <class T>
void writeEntries(
        const OrderedEntry<T>* entries,
        idx_t count,
        bool negate,
        const idx_t* idMap,
        T* keys,
        idx_t* ids) {
    idx_t i = 0;
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
    const hn::ScalableTag<T> d;
    const hn::RebindToUnsigned<decltype(d)> du;
    const hn::ScalableTag<idx_t> dw;
    using Order = typename OrderRange<T>::Order;
    const idx_t lanes = hn::Lanes(d);
    const auto zero = hn::Zero(d);
    for (; !idMap && i + lanes <= count; i += lanes) {
        hn::Vec<decltype(du)> order, id;
        const Order* const from = reinterpret_cast<const Order*>(entries + i);
        if constexpr (sizeof(T) == 4) {
            const hn::Rebind<int32_t, decltype(dw)> half;
            const hn::RebindToSigned<decltype(d)> di;
            hn::LoadInterleaved2(du, from, id, order);
            const auto narrow = hn::BitCast(di, id);
            hn::StoreU(
                    hn::PromoteTo(dw, hn::LowerHalf(half, narrow)),
                    dw,
                    ids + i);
            hn::StoreU(
                    hn::PromoteTo(dw, hn::UpperHalf(half, narrow)),
                    dw,
                    ids + i + lanes / 2);
        } else {
            hn::LoadInterleaved2(du, from, order, id);
            hn::StoreU(hn::BitCast(dw, id), dw, ids + i);
        }
        const auto key = keysOfBits(d, order);
        hn::StoreU(negate ? hn::Sub(zero, key) : key, d, keys + i);
    }
#endif
    for (; i < count; ++i) {
        const T key = entries[i].key();
        keys[i] = negate ? T(0) - key : key;
        ids[i] = idMap ? idMap[entries[i].id()] : idx_t(entries[i].id());
    }
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
