#include "faiss_bits/flat/SelectedIds.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "faiss_bits/common/FaissErrors.h"

namespace faiss_bits::detail {

namespace {

/// Ids of an array that exist in the index, as the array has them.
std::vector<idx_t> existing(const faiss::IDSelectorArray& array, idx_t n) {
    std::vector<idx_t> ids;
    std::copy_if(
            array.ids,
            array.ids + array.n,
            std::back_inserter(ids),
            [n](idx_t id) { return 0 <= id && id < n; });
    return ids;
}

/// What lies in bytes that are not 0, some of them at a time, as most selectors
/// take few of many: body(place).
template <class Body>
void forPlacesOf(const uint8_t* bytes, idx_t count, const Body& body) {
    constexpr idx_t kTogether = sizeof(uint64_t);
    idx_t i = 0;
    while (i < count) {
        uint64_t together = 1;
        if (i + kTogether <= count) {
            std::memcpy(&together, bytes + i, sizeof(together));
        }
        const idx_t end = std::min(i + kTogether, count);
        for (; together && i < end; ++i) {
            if (bytes[i]) {
                body(i);
            }
        }
        i = end;
    }
}

/// body(id) for every id below n of a bitmap, ascending.
template <class Body>
void forIdsOf(
        const faiss::IDSelectorBitmap& bitmap,
        idx_t n,
        const Body& body) {
    const idx_t count = std::min((n + 7) / 8, idx_t(bitmap.n));
    forPlacesOf(bitmap.bitmap, count, [&](idx_t place) {
        for (unsigned bits = bitmap.bitmap[place]; bits; bits &= bits - 1) {
            const idx_t id = 8 * place + std::countr_zero(bits);
            if (id < n) {
                body(id);
            }
        }
    });
}

} // namespace

void requireMemory(const faiss::IDSelector& selector) {
    if (auto* array = dynamic_cast<const faiss::IDSelectorArray*>(&selector)) {
        if (array->n > 0) {
            requireNotNull(array->ids, "ids of an IDSelectorArray");
        }
    } else if (
            auto* bitmap =
                    dynamic_cast<const faiss::IDSelectorBitmap*>(&selector)) {
        if (bitmap->n > 0) {
            requireNotNull(bitmap->bitmap, "bitmap of an IDSelectorBitmap");
        }
    }
}

std::vector<uint8_t> membersOf(const faiss::IDSelector& selector, idx_t n) {
    using faiss::IDSelectorArray;
    using faiss::IDSelectorBatch;
    using faiss::IDSelectorBitmap;
    using faiss::IDSelectorNot;
    requireMemory(selector);
    std::vector<uint8_t> members(n);
    if (auto* array = dynamic_cast<const IDSelectorArray*>(&selector)) {
        for (idx_t id : existing(*array, n)) {
            members[id] = 1;
        }
    } else if (auto* batch = dynamic_cast<const IDSelectorBatch*>(&selector)) {
        for (idx_t id : batch->set) {
            if (0 <= id && id < n) {
                members[id] = 1;
            }
        }
    } else if (
            auto* bitmap = dynamic_cast<const IDSelectorBitmap*>(&selector)) {
        forIdsOf(*bitmap, n, [&](idx_t id) { members[id] = 1; });
    } else if (auto* no = dynamic_cast<const IDSelectorNot*>(&selector)) {
        requireNotNull(no->sel, "sel of an IDSelectorNot");
        members = membersOf(*no->sel, n);
        for (uint8_t& member : members) {
            member = !member;
        }
    } else {
        for (idx_t id = 0; id < n; ++id) {
            members[id] = selector.is_member(id);
        }
    }
    return members;
}

std::vector<idx_t> selectedIds(const faiss::IDSelector& selector, idx_t n) {
    using faiss::IDSelectorArray;
    using faiss::IDSelectorBitmap;
    using faiss::IDSelectorRange;
    requireMemory(selector);
    std::vector<idx_t> ids;
    if (auto* range = dynamic_cast<const IDSelectorRange*>(&selector)) {
        const idx_t first = std::clamp<idx_t>(range->imin, 0, n);
        const idx_t end = std::clamp<idx_t>(range->imax, first, n);
        ids.resize(end - first);
        std::iota(ids.begin(), ids.end(), first);
    } else if (auto* array = dynamic_cast<const IDSelectorArray*>(&selector)) {
        ids = existing(*array, n);
        std::sort(ids.begin(), ids.end());
        ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    } else if (
            auto* bitmap = dynamic_cast<const IDSelectorBitmap*>(&selector)) {
        forIdsOf(*bitmap, n, [&](idx_t id) { ids.push_back(id); });
    } else {
        const std::vector<uint8_t> members = membersOf(selector, n);
        ids.reserve(std::accumulate(members.begin(), members.end(), idx_t(0)));
        forPlacesOf(members.data(), n, [&](idx_t id) { ids.push_back(id); });
    }
    return ids;
}

} // namespace faiss_bits::detail
