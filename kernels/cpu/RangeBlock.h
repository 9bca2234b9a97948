#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/cpu/Range.h"

namespace faiss_bits::cpu {

/// Results of a range search in the order in which a thread found them: those
/// of some queries, one after the other.
template <class T>
class RangeBlock {
   public:
    /// Those of `query` that are under the limit of `count` keys; idOf(i) is
    /// the id of the i-th. Returns how many there are. kOfAll: ids are asked
    /// for of all keys, which is faster where that is a look-up (measured: 15%
    /// of d = 2 with half in range); else of those under the limit alone.
    template <bool kOfAll, class IdOf>
    idx_t append(
            idx_t query,
            const T* keys,
            idx_t count,
            T limit,
            bool negate,
            const IdOf& idOf) {
        const size_t begin = ids_.size();
        distances_.resize(begin + count);
        ids_.resize(begin + count);
        T* distances = distances_.data() + begin;
        idx_t* ids = ids_.data() + begin;
        idx_t kept = 0;
        for (idx_t i = 0; i < count; ++i) {
            // Written in any case: which keys pass cannot be predicted.
            distances[kept] = negate ? T(0) - keys[i] : keys[i];
            ids[kept] = kOfAll ? idOf(i) : i;
            kept += keys[i] < limit;
        }
        for (idx_t i = 0; !kOfAll && i < kept; ++i) {
            ids[i] = idOf(ids[i]);
        }
        distances_.resize(begin + kept);
        ids_.resize(begin + kept);
        if (kept > 0) {
            rows_.push_back({query, kept});
        }
        return kept;
    }

    /// The blocks as one result of `numQueries` queries: what blocks have of
    /// the same query follows each other. They are left empty.
    static RangeResult<T> join(
            std::vector<RangeBlock>& blocks,
            idx_t numQueries) {
        RangeResult<T> all;
        all.limits.assign(numQueries + 1, 0);
        RangeBlock* only = nullptr;
        int filled = 0;
        for (RangeBlock& block : blocks) {
            for (const Row& row : block.rows_) {
                all.limits[row.query + 1] += row.count;
            }
            if (!block.rows_.empty()) {
                only = &block;
                ++filled;
            }
        }
        for (idx_t i = 0; i < numQueries; ++i) {
            all.limits[i + 1] += all.limits[i];
        }
        if (filled == 1 && only->isSorted()) {
            all.distances = std::move(only->distances_);
            all.ids = std::move(only->ids_);
            return all;
        }
        std::vector<idx_t> to(all.limits);
        all.distances.resize(to.back());
        all.ids.resize(to.back());
        for (RangeBlock& block : blocks) {
            idx_t from = 0;
            for (const Row& row : block.rows_) {
                idx_t& at = to[row.query];
                std::copy_n(
                        block.distances_.data() + from,
                        row.count,
                        all.distances.data() + at);
                std::copy_n(
                        block.ids_.data() + from,
                        row.count,
                        all.ids.data() + at);
                at += row.count;
                from += row.count;
            }
            block = {}; // results need their memory twice, not three times
        }
        return all;
    }

   private:
    struct Row {
        idx_t query, count;
    };

    bool isSorted() const {
        return std::is_sorted(
                rows_.begin(), rows_.end(), [](const Row& a, const Row& b) {
                    return a.query < b.query;
                });
    }

    std::vector<Row> rows_;
    std::vector<T> distances_;
    std::vector<idx_t> ids_;
};

} // namespace faiss_bits::cpu
