#include "faiss_bits/ivf/AllowedPlaces.h"

#include <unordered_set>

#include "faiss_bits/common/FaissErrors.h"
#include "faiss_bits/flat/SelectedIds.h"

namespace faiss_bits::detail {

namespace {

/// Lists in assign [n], each once.
std::vector<idx_t> listsOf(
        const faiss::InvertedLists& lists,
        idx_t n,
        const idx_t* assign) {
    std::vector<bool> isThere(lists.nlist);
    std::vector<idx_t> each;
    for (idx_t i = 0; i < n; ++i) {
        const idx_t list = assign[i];
        if (list >= 0 && !isThere[list]) {
            isThere[list] = true;
            each.push_back(list);
        }
    }
    return each;
}

/// Places of the ids that has(id) is true of.
template <class Has>
AllowedPlaces placesWhere(
        const faiss::InvertedLists& lists,
        const std::vector<idx_t>& each,
        const Has& has) {
    size_t most = 0;
    for (idx_t list : each) {
        most += lists.list_size(list);
    }
    AllowedPlaces allowed;
    allowed.ofList.resize(lists.nlist);
    allowed.places = std::make_unique_for_overwrite<idx_t[]>(most);
    idx_t* to = allowed.places.get();
    for (idx_t list : each) {
        const idx_t count = idx_t(lists.list_size(list));
        if (count == 0) {
            continue;
        }
        faiss::InvertedLists::ScopedIds ids(&lists, list);
        const idx_t* const from = ids.get();
        idx_t* const begin = to;
        // Without branches: which ids are selected cannot be predicted.
        for (idx_t place = 0; place < count; ++place) {
            *to = place;
            to += has(from[place]);
        }
        allowed.ofList[list] = {begin, to};
    }
    return allowed;
}

} // namespace

AllowedPlaces allowedPlaces(
        const faiss::IDSelector& selector,
        const faiss::InvertedLists& lists,
        idx_t n,
        const idx_t* assign) {
    const std::vector<idx_t> each = listsOf(lists, n, assign);
    const faiss::IDSelector* of = &selector;
    bool isNot = false;
    while (auto* no = dynamic_cast<const faiss::IDSelectorNot*>(of)) {
        requireNotNull(no->sel, "sel of an IDSelectorNot");
        of = no->sel;
        isNot = !isNot;
    }
    requireMemory(*of);
    if (auto* range = dynamic_cast<const faiss::IDSelectorRange*>(of)) {
        const idx_t first = range->imin, end = range->imax;
        return placesWhere(lists, each, [=](idx_t id) {
            return ((id >= first) & (id < end)) != isNot;
        });
    }
    // An array's is_member is a search from its begin to its end.
    if (auto* array = dynamic_cast<const faiss::IDSelectorArray*>(of)) {
        const std::unordered_set<idx_t> ids(array->ids, array->ids + array->n);
        return placesWhere(lists, each, [&](idx_t id) {
            return (ids.count(id) > 0) != isNot;
        });
    }
    return placesWhere(
            lists, each, [=](idx_t id) { return of->is_member(id) != isNot; });
}

} // namespace faiss_bits::detail
