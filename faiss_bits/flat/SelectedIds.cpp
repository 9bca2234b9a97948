#include "faiss_bits/flat/SelectedIds.h"

#include <algorithm>
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

} // namespace

std::vector<uint8_t> membersOf(const faiss::IDSelector& selector, idx_t n) {
    using faiss::IDSelectorArray;
    using faiss::IDSelectorNot;
    std::vector<uint8_t> members(n);
    if (auto* array = dynamic_cast<const IDSelectorArray*>(&selector)) {
        for (idx_t id : existing(*array, n)) {
            members[id] = 1;
        }
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
    using faiss::IDSelectorRange;
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
    } else {
        const std::vector<uint8_t> members = membersOf(selector, n);
        ids.reserve(std::accumulate(members.begin(), members.end(), idx_t(0)));
        for (idx_t id = 0; id < n; ++id) {
            if (members[id]) {
                ids.push_back(id);
            }
        }
    }
    return ids;
}

} // namespace faiss_bits::detail
