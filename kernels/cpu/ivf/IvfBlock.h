#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/ivf/IvfSetup.h"

namespace faiss_bits::cpu {

/// A list, or a piece of one, and the queries that meet it.
struct IvfItem {
    idx_t list = 0;
    /// Columns: vectors of the list, or its allowed places.
    idx_t begin = 0, count = 0;
    idx_t firstSlot = 0; ///< number of the first column among all items'
    idx_t firstPair = 0, numPairs = 0; ///< of IvfBlock::rows
};

/// Some queries with their lists: pairs sorted by list. A candidate is called
/// by its slot, as ids in lists are not dense; slots ascend with the items.
class IvfBlock {
   public:
    /// Queries first .. first + count - 1 of a setup. Longer items than
    /// `mostColumns` are cut, so that threads can share them.
    void build(
            const IvfSetup& setup,
            idx_t first,
            idx_t count,
            idx_t mostColumns);
    /// The same, but every item is met by one row, and those of a row are
    /// neighbours: to scan them at a time.
    void buildByRows(const IvfSetup& setup, idx_t first, idx_t count);

    /// After buildByRows(): the items of a row.
    const IvfItem* beginOf(idx_t row) const {
        return items_.data() + firstItems_[row];
    }
    const IvfItem* endOf(idx_t row) const {
        return items_.data() + firstItems_[row + 1];
    }
    const std::vector<IvfItem>& items() const {
        return items_;
    }
    idx_t first() const {
        return first_;
    }
    idx_t numRows() const {
        return idx_t(totals_.size());
    }
    /// Rows of the block, 0 .. numRows() - 1, that meet an item.
    const int32_t* rowsOf(const IvfItem& item) const {
        return rows_.data() + item.firstPair;
    }
    /// Vectors that a row meets.
    idx_t total(idx_t row) const {
        return totals_[row];
    }
    idx_t largestTotal() const {
        return largestTotal_;
    }
    /// Pairs of a row and a vector.
    double numPairs() const {
        return numPairs_;
    }
    const IvfItem& itemOfSlot(idx_t slot) const {
        idx_t i = itemOfSlots_[slot >> kSlotBits];
        while (slot - items_[i].firstSlot >= items_[i].count) {
            ++i;
        }
        return items_[i];
    }

   private:
    static constexpr int kSlotBits = 6;

    /// Vectors of the lists that count; what a limit of vectors cuts short is
    /// an item of its own.
    void addItems(
            idx_t list,
            idx_t columns,
            idx_t mostColumns,
            idx_t firstPair,
            idx_t numPairs);
    void sortPairs(const IvfSetup& setup);
    void clear(idx_t first, idx_t count);
    /// Calls take(list, columns, isShort) for what a row meets of its lists,
    /// empty ones aside, and notes its total.
    template <class Take>
    void forEachList(const IvfSetup& setup, idx_t row, const Take& take);
    /// Once all items are there.
    void findItemsOfSlots();

    struct Pair {
        idx_t list;
        int32_t row;
    };
    struct ShortPair {
        idx_t list, columns;
        int32_t row;
    };

    idx_t first_ = 0;
    idx_t numSlots_ = 0, largestTotal_ = 0;
    double numPairs_ = 0;
    std::vector<IvfItem> items_;
    std::vector<int32_t> rows_;
    std::vector<idx_t> totals_;
    std::vector<int32_t> itemOfSlots_; ///< of every 64th slot
    std::vector<idx_t> firstItems_;    ///< [rows + 1]
    std::vector<Pair> pairs_, sorted_;
    std::vector<ShortPair> shortPairs_;
    std::vector<idx_t> places_;
};

} // namespace faiss_bits::cpu
