#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <faiss/impl/IDSelector.h>

#include "faiss_bits/common/FaissCompat.h"

/// The selectors that bench_filters times.
namespace faiss_bits::bench {

/// A selector of FAISS's that selects exactly `members`, and what it reads.
class NamedSelector {
   public:
    NamedSelector(const std::string& name, const std::vector<bool>& members)
            : members_(members) {
        if (name == "range") {
            const auto first = std::find(members.begin(), members.end(), true);
            const auto end = std::find(first, members.end(), false);
            keep(new faiss::IDSelectorRange(
                    first - members.begin(), end - members.begin()));
        } else if (name == "array") {
            ids_ = idsWhere([&](size_t i) { return members_[i]; });
            std::shuffle(ids_.begin(), ids_.end(), std::mt19937(3));
            keep(new faiss::IDSelectorArray(ids_.size(), ids_.data()));
        } else if (name == "batch") {
            ids_ = idsWhere([&](size_t i) { return members_[i]; });
            keep(new faiss::IDSelectorBatch(ids_.size(), ids_.data()));
        } else if (name == "bitmap") {
            bitmap([&](size_t i) { return members_[i]; });
        } else if (name == "not") {
            ids_ = idsWhere([&](size_t i) { return !members_[i]; });
            keep(new faiss::IDSelectorNot(keep(
                    new faiss::IDSelectorArray(ids_.size(), ids_.data()))));
        } else {
            pair(name);
        }
    }

    faiss::IDSelector* get() const {
        return parts_.back().get();
    }

   private:
    template <class Selector>
    Selector* keep(Selector* selector) {
        parts_.emplace_back(selector);
        return selector;
    }

    template <class Has>
    std::vector<idx_t> idsWhere(Has has) const {
        std::vector<idx_t> ids;
        for (size_t i = 0; i < members_.size(); ++i) {
            if (has(i)) {
                ids.push_back(idx_t(i));
            }
        }
        return ids;
    }

    template <class Has>
    faiss::IDSelector* bitmap(Has has) {
        std::vector<uint8_t> bytes((members_.size() + 7) / 8);
        for (size_t i = 0; i < members_.size(); ++i) {
            bytes[i / 8] |= uint8_t(uint8_t(has(i)) << (i % 8));
        }
        bytes_.push_back(std::move(bytes));
        return keep(new faiss::IDSelectorBitmap(
                bytes_.back().size(), bytes_.back().data()));
    }

    /// Of two bitmaps that say each its part of it.
    void pair(const std::string& name) {
#if FAISS_BITS_FAISS_HAS_LOGICAL_SELECTORS
        const auto& m = members_;
        if (name == "and") {
            auto* even = bitmap([&](size_t i) { return m[i] || i % 2 == 0; });
            auto* odd = bitmap([&](size_t i) { return m[i] || i % 2 == 1; });
            keep(new faiss::IDSelectorAnd(even, odd));
            return;
        }
        if (name == "or") {
            auto* even = bitmap([&](size_t i) { return m[i] && i % 2 == 0; });
            auto* odd = bitmap([&](size_t i) { return m[i] && i % 2 == 1; });
            keep(new faiss::IDSelectorOr(even, odd));
            return;
        }
        if (name == "xor") {
            auto* half = keep(new faiss::IDSelectorRange(0, m.size() / 2));
            auto* rest = bitmap(
                    [&](size_t i) { return m[i] != (i < m.size() / 2); });
            keep(new faiss::IDSelectorXOr(half, rest));
            return;
        }
#endif
        std::fprintf(stderr, "--selectors: no %s here\n", name.c_str());
        std::exit(2);
    }

    const std::vector<bool>& members_;
    std::vector<idx_t> ids_;
    std::vector<std::vector<uint8_t>> bytes_;
    std::vector<std::unique_ptr<faiss::IDSelector>> parts_;
};

/// share * n members: together in the middle, or anywhere.
inline std::vector<bool> makeMembers(int64_t n, double share, bool together) {
    const int64_t count = int64_t(share * double(n));
    std::vector<bool> members(n);
    if (together) {
        const int64_t first = (n - count) / 2;
        std::fill_n(members.begin() + first, count, true);
        return members;
    }
    std::vector<int64_t> ids(n);
    std::iota(ids.begin(), ids.end(), 0);
    std::shuffle(ids.begin(), ids.end(), std::mt19937_64(7));
    for (int64_t i = 0; i < count; ++i) {
        members[ids[i]] = true;
    }
    return members;
}

} // namespace faiss_bits::bench
