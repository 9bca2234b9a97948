#include "faiss_bits/many/ShardMap.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace faiss_bits::gpu::detail {

ShardMap::ShardMap(int numShards, idx_t leastPiece)
        : leastPiece_(leastPiece), sizes_(numShards), segments_(numShards) {}

std::vector<ShardPiece> dealOut(
        idx_t n,
        const std::vector<idx_t>& sizes,
        idx_t leastPiece,
        int last) {
    if (n <= 0) {
        return {};
    }
    const int shards = int(sizes.size());
    // The shortest first; of equal ones the first.
    std::vector<int> order(shards);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        return sizes[a] < sizes[b];
    });
    if (n < leastPiece && last >= 0 &&
        sizes[last] < sizes[order[0]] + leastPiece) {
        return {{last, 0, n}};
    }

    // Up to a common level, as water: to the shards below it.
    const idx_t mostPieces =
            std::clamp<idx_t>(n / std::max<idx_t>(leastPiece, 1), 1, shards);
    int used = 1;
    idx_t filled = 0; // what raises the used shards to the next one's size
    while (used < mostPieces) {
        const idx_t step = sizes[order[used]] - sizes[order[used - 1]];
        if (step > 0 && filled + step * used > n) {
            break;
        }
        filled += step * used;
        ++used;
    }
    const idx_t above = n - filled;
    const idx_t level = sizes[order[used - 1]];
    std::vector<idx_t> counts(shards);
    std::vector<int> chosen(order.begin(), order.begin() + used);
    std::sort(chosen.begin(), chosen.end());
    for (int i = 0; i < used; ++i) {
        const idx_t share =
                sliceBegin(above, used, i + 1) - sliceBegin(above, used, i);
        counts[chosen[i]] = level - sizes[chosen[i]] + share;
    }
    std::vector<ShardPiece> pieces;
    idx_t first = 0;
    for (int shard = 0; shard < shards; ++shard) {
        if (counts[shard] > 0) {
            pieces.push_back({shard, first, counts[shard]});
            first += counts[shard];
        }
    }
    return pieces;
}

std::vector<ShardPiece> ShardMap::plan(idx_t n) const {
    const int last = runs_.empty() ? -1 : runs_.back().shard;
    return dealOut(n, sizes_, leastPiece_, last);
}

void ShardMap::commit(const std::vector<ShardPiece>& pieces) {
    for (const ShardPiece& piece : pieces) {
        idx_t& size = sizes_[piece.shard];
        if (!runs_.empty() && runs_.back().shard == piece.shard) {
            runs_.back().count += piece.count;
        } else {
            runs_.push_back({piece.shard, size, total_, piece.count});
            segments_[piece.shard].push_back({size, total_});
        }
        size += piece.count;
        total_ += piece.count;
    }
}

void ShardMap::clear() {
    *this = ShardMap(numShards(), leastPiece_);
}

bool ShardMap::isInOrder() const {
    for (size_t i = 1; i < runs_.size(); ++i) {
        if (runs_[i].shard <= runs_[i - 1].shard) {
            return false;
        }
    }
    return true;
}

std::vector<idx_t> groupSlices(
        idx_t rows,
        const std::vector<int>& partsOfGroups,
        const std::vector<idx_t>& lateRows,
        const std::vector<double>& speeds,
        idx_t tile) {
    const idx_t groups = idx_t(partsOfGroups.size());
    const int parts =
            std::accumulate(partsOfGroups.begin(), partsOfGroups.end(), 0);
    std::vector<idx_t> sizes;
    int before = 0;
    for (int ofGroup : partsOfGroups) {
        sizes.push_back(
                sliceBegin(rows, parts, before + ofGroup) -
                sliceBegin(rows, parts, before));
        before += ofGroup;
    }
    const std::vector<idx_t> even = sizes;
    if (!speeds.empty()) {
        double all = 0;
        for (idx_t group = 0; group < groups; ++group) {
            all += double(partsOfGroups[group]) * speeds[group];
        }
        idx_t left = rows;
        for (idx_t group = groups - 1; group > 0; --group) {
            const double share =
                    double(partsOfGroups[group]) * speeds[group] / all;
            sizes[group] =
                    std::min(left, idx_t(std::llround(share * double(rows))));
            left -= sizes[group];
        }
        sizes[0] = left;
    }
    const idx_t late =
            std::accumulate(lateRows.begin(), lateRows.end(), idx_t(0));
    for (idx_t group = 1; group < groups && !lateRows.empty(); ++group) {
        const idx_t most = sizes[group] / 8;
        const idx_t given = std::clamp(
                (groups * lateRows[group] - late) / groups,
                -std::min(most, sizes[0] / 8 / groups),
                most);
        sizes[group] -= given;
        sizes[0] += given;
    }
    for (idx_t group = 1; group < groups; ++group) {
        const idx_t whole = (even[group] + tile / 2) / tile * tile;
        const idx_t moved = (sizes[group] - even[group]) / tile * tile;
        const idx_t most = (sizes[0] + sizes[group]) / tile * tile;
        const idx_t size = std::clamp<idx_t>(whole + moved, 0, most);
        sizes[0] += sizes[group] - size;
        sizes[group] = size;
    }
    std::vector<idx_t> begins = {0};
    for (idx_t size : sizes) {
        begins.push_back(begins.back() + size);
    }
    return begins;
}

idx_t firstWidth(idx_t k, idx_t n, idx_t total) {
    const double expected = double(k) * double(n) / double(total);
    const double likely = expected + 6 * std::sqrt(expected) + 8;
    return std::min({k, n, idx_t(std::ceil(likely))});
}

std::vector<ShardRun> ShardMap::runs(idx_t first, idx_t n) const {
    std::vector<ShardRun> found;
    auto run = std::upper_bound(
            runs_.begin(), runs_.end(), first, [](idx_t id, const ShardRun& r) {
                return id < r.inWhole;
            });
    if (run != runs_.begin()) {
        --run;
    }
    for (; run != runs_.end() && run->inWhole < first + n; ++run) {
        const idx_t begin = std::max(first, run->inWhole);
        const idx_t end = std::min(first + n, run->inWhole + run->count);
        if (begin < end) {
            found.push_back(
                    {run->shard,
                     run->inShard + (begin - run->inWhole),
                     begin,
                     end - begin});
        }
    }
    return found;
}

} // namespace faiss_bits::gpu::detail
