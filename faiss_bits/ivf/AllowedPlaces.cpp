#include "faiss_bits/ivf/AllowedPlaces.h"

#include <algorithm>
#include <unordered_set>

#include "faiss_bits/common/FaissErrors.h"

namespace faiss_bits::detail {

namespace {

/// is_member of any selector; an array's is a search from its begin to its end.
class Members {
   public:
    explicit Members(const faiss::IDSelector& selector) : selector_(&selector) {
        while (auto* no =
                       dynamic_cast<const faiss::IDSelectorNot*>(selector_)) {
            requireNotNull(no->sel, "sel of an IDSelectorNot");
            selector_ = no->sel;
            isNot_ = !isNot_;
        }
        if (auto* array =
                    dynamic_cast<const faiss::IDSelectorArray*>(selector_)) {
            isArray_ = true;
            ids_.insert(array->ids, array->ids + array->n);
        }
    }

    bool has(idx_t id) const {
        const bool is =
                isArray_ ? ids_.count(id) > 0 : selector_->is_member(id);
        return is != isNot_;
    }

   private:
    const faiss::IDSelector* selector_;
    bool isNot_ = false, isArray_ = false;
    std::unordered_set<idx_t> ids_;
};

} // namespace

std::vector<std::vector<idx_t>> allowedPlaces(
        const faiss::IDSelector& selector,
        const faiss::InvertedLists& lists,
        idx_t n,
        const idx_t* assign) {
    const Members members(selector);
    std::vector<std::vector<idx_t>> allowed(lists.nlist);
    std::vector<bool> done(lists.nlist);
    for (idx_t i = 0; i < n; ++i) {
        const idx_t list = assign[i];
        if (list < 0 || done[list]) {
            continue;
        }
        done[list] = true;
        const idx_t count = idx_t(lists.list_size(list));
        if (count == 0) {
            continue;
        }
        faiss::InvertedLists::ScopedIds ids(&lists, list);
        for (idx_t place = 0; place < count; ++place) {
            if (members.has(ids[place])) {
                allowed[list].push_back(place);
            }
        }
    }
    return allowed;
}

} // namespace faiss_bits::detail
