#include "kernels/cpu/ivf/IvfBlock.h"

#include <algorithm>

#include "kernels/common/Error.h"

namespace faiss_bits::cpu {

void IvfBlock::clear(idx_t first, idx_t count) {
    first_ = first;
    numSlots_ = largestTotal_ = 0;
    numPairs_ = 0;
    items_.clear();
    rows_.clear();
    pairs_.clear();
    shortPairs_.clear();
    totals_.assign(count, 0);
}

template <class Take>
void IvfBlock::forEachList(const IvfSetup& setup, idx_t row, const Take& take) {
    const IvfKnnProblem& problem = setup.problem;
    const idx_t* probes =
            problem.probes + setup.query(first_ + row) * problem.nprobe;
    idx_t left = problem.mostVectors;
    for (idx_t i = 0; i < problem.nprobe; ++i) {
        const idx_t list = probes[i];
        const idx_t length = list < 0 ? 0 : problem.lists->length(list);
        if (length == 0) {
            continue;
        }
        const IvfPlaces* allowed = setup.allowed(list);
        idx_t columns = allowed ? idx_t(allowed->size()) : length;
        const bool isShort = problem.mostVectors > 0 && length > left;
        if (isShort) {
            columns = allowed
                    ? std::lower_bound(allowed->begin(), allowed->end(), left) -
                            allowed->begin()
                    : left;
        }
        totals_[row] += columns;
        if (columns > 0) {
            take(list, columns, isShort);
        }
        left -= length;
        if (problem.mostVectors > 0 && left <= 0) {
            break;
        }
    }
    largestTotal_ = std::max(largestTotal_, totals_[row]);
    numPairs_ += double(totals_[row]);
}

void IvfBlock::build(
        const IvfSetup& setup,
        idx_t first,
        idx_t count,
        idx_t mostColumns) {
    const IvfKnnProblem& problem = setup.problem;
    clear(first, count);
    for (idx_t row = 0; row < count; ++row) {
        forEachList(setup, row, [&](idx_t list, idx_t columns, bool isShort) {
            if (isShort) {
                shortPairs_.push_back({list, columns, int32_t(row)});
            } else {
                pairs_.push_back({list, int32_t(row)});
            }
        });
    }
    sortPairs(setup);
    rows_.reserve(pairs_.size() + shortPairs_.size());
    for (size_t begin = 0; begin < pairs_.size();) {
        const idx_t list = pairs_[begin].list;
        size_t end = begin;
        for (; end < pairs_.size() && pairs_[end].list == list; ++end) {
            rows_.push_back(pairs_[end].row);
        }
        const IvfPlaces* allowed = setup.allowed(list);
        addItems(
                list,
                allowed ? idx_t(allowed->size()) : problem.lists->length(list),
                mostColumns,
                idx_t(begin),
                idx_t(end - begin));
        begin = end;
    }
    for (const ShortPair& pair : shortPairs_) {
        const idx_t place = idx_t(rows_.size());
        rows_.push_back(pair.row);
        addItems(pair.list, pair.columns, mostColumns, place, 1);
    }
    findItemsOfSlots();
}

void IvfBlock::buildByRows(const IvfSetup& setup, idx_t first, idx_t count) {
    clear(first, count);
    firstItems_.resize(count + 1);
    for (idx_t row = 0; row < count; ++row) {
        firstItems_[row] = idx_t(items_.size());
        rows_.push_back(int32_t(row));
        forEachList(setup, row, [&](idx_t list, idx_t columns, bool) {
            items_.push_back({list, 0, columns, numSlots_, row, 1});
            numSlots_ += columns;
        });
    }
    firstItems_[count] = idx_t(items_.size());
    findItemsOfSlots();
}

void IvfBlock::findItemsOfSlots() {
    BITS_THROW_IF_NOT_FMT(
            numSlots_ <= INT32_MAX,
            "the lists that %lld queries probe have %lld vectors together: up "
            "to 2^31 - 1 can be searched",
            (long long)numRows(),
            (long long)numSlots_);
    itemOfSlots_.resize((numSlots_ >> kSlotBits) + 1);
    size_t item = 0;
    for (idx_t slot = 0; slot < numSlots_; slot += idx_t(1) << kSlotBits) {
        while (slot - items_[item].firstSlot >= items_[item].count) {
            ++item;
        }
        itemOfSlots_[slot >> kSlotBits] = int32_t(item);
    }
}

void IvfBlock::addItems(
        idx_t list,
        idx_t columns,
        idx_t mostColumns,
        idx_t firstPair,
        idx_t numPairs) {
    const idx_t pieces = (columns + mostColumns - 1) / mostColumns;
    for (idx_t i = 0; i < pieces; ++i) {
        const idx_t begin =
                columns / pieces * i + std::min(i, columns % pieces);
        const idx_t count = columns / pieces + (i < columns % pieces);
        items_.push_back({list, begin, count, numSlots_, firstPair, numPairs});
        numSlots_ += count;
    }
}

void IvfBlock::sortPairs(const IvfSetup& setup) {
    const idx_t numLists = setup.problem.numLists;
    if (idx_t(pairs_.size()) < numLists / 8) {
        std::sort(
                pairs_.begin(), pairs_.end(), [](const Pair& a, const Pair& b) {
                    return a.list != b.list ? a.list < b.list : a.row < b.row;
                });
        return;
    }
    places_.assign(numLists + 1, 0);
    for (const Pair& pair : pairs_) {
        ++places_[pair.list + 1];
    }
    for (idx_t list = 0; list < numLists; ++list) {
        places_[list + 1] += places_[list];
    }
    sorted_.resize(pairs_.size());
    for (const Pair& pair : pairs_) {
        sorted_[places_[pair.list]++] = pair;
    }
    pairs_.swap(sorted_);
}

} // namespace faiss_bits::cpu
