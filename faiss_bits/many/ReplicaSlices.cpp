#include "faiss_bits/many/ReplicaSlices.h"

#include <algorithm>

#include "faiss_bits/ivf/OurIvf.h"
#include "faiss_bits/many/ShardMap.h"

namespace faiss_bits::gpu::detail {

namespace {

/// Slices below are not cut, nor fitted to the devices: fewer rows may be
/// searched in another way, which is no faster.
constexpr idx_t kLeastRows = GroupSpeeds::kLeastRows;

/// Queries that a block of a flat search takes at a time, or two (kernels/knn/
/// fused/tensor). 10,241 take 2.3% longer than 10,240, and these no longer than
/// 10,112 (H200).
constexpr idx_t kFlatTile = 256;

/// Slices of lists but the first have a multiple of so many queries: what is
/// learned of the devices' speeds differs from call to call, and a search of a
/// number of queries that a thread has seen has its plan at once
/// (planOrLastPlan). 64 queries take 8 us.
constexpr idx_t kListsStep = 64;

bool isHost(const CallArray& array) {
    return array.data && array.onHost;
}

size_t deviceBytes(const CallArray& array) {
    return array.onHost ? 0 : array.rowBytes;
}

bool canGroupsWriteHome(const PartSet& set) {
    const auto& groups = set.devices.groups();
    for (int group = 1; group < int(groups.size()); ++group) {
        if (!set.copies->isDirect(group, 0) ||
            !isOurIvf(*set.parts[groups[group].parts[0]])) {
            return false;
        }
    }
    return true;
}

/// Where kernels write results home, those of all other devices go through the
/// first one's link, each behind the search of its queries. So these end one
/// after the other, each when the link has done with the one before: seconds of
/// that, as secondsPerRow counts them.
double secondsOfTurn(
        const PartSet& set,
        idx_t rows,
        const CallArrays& arrays) {
    // Four H200s, k = 100: 4e11 bytes a second, and queries take two thirds of
    // what secondsPerRow says.
    constexpr double kSpeed = 4e11 / 1.5;
    if (!arrays.areOnDevice() || !canGroupsWriteHome(set)) {
        return 0;
    }
    return double(rows) *
            double(deviceBytes(arrays.distances) + deviceBytes(arrays.labels)) /
            kSpeed;
}

} // namespace

CallArray::CallArray(
        const GpuContext& home,
        const char* name,
        const void* given,
        size_t rowBytes)
        : data(static_cast<char*>(const_cast<void*>(given))),
          rowBytes(rowBytes),
          onHost(!data || placeOf(home, name, data).onHost) {}

bool CallArrays::areOnDevice() const {
    return !isHost(x) && !isHost(distances) && !isHost(labels);
}

bool CallArrays::areOnHost() const {
    return x.onHost && distances.onHost && labels.onHost;
}

double secondsOfCopies(
        const PartSet& set,
        idx_t rows,
        const CallArrays& arrays) {
    constexpr double kSpeed = 2.5e11;
    // Of the first device's link, which all others share.
    constexpr double kSpeedOfAll = 4e11;
    // Lists on two and four H200s: another device's search is asked for 10 to
    // 40 us later than the first one's, and part of the copy goes along with
    // what the host does before the first kernel.
    constexpr double kTimeOfLists = 20e-6;
    // Two H100s: 10 us for the least copy, 14 to wake a thread, 24 for 5.2 MB.
    constexpr double kTime = 40e-6;
    const bool comeAlone = arrays.areOnDevice() && canGroupsWriteHome(set);
    const size_t rowBytes = deviceBytes(arrays.x) +
            (comeAlone ? 0
                       : deviceBytes(arrays.distances) +
                             deviceBytes(arrays.labels));
    const double others = double(set.devices.groups().size()) - 1;
    return (comeAlone ? kTimeOfLists : kTime) +
            double(rows) * double(rowBytes) *
            std::max(1 / kSpeed, others / kSpeedOfAll);
}

std::vector<idx_t> lateRowsOf(
        size_t groups,
        idx_t rows,
        double late,
        double turn) {
    constexpr double kMostShare = 1.0 / 16;
    const double turns = groups > 2 ? double(groups - 2) : 0;
    if (turns * turn > kMostShare * double(rows)) {
        turn = kMostShare * double(rows) / turns;
    }
    std::vector<idx_t> all(groups);
    for (size_t group = 1; group < groups; ++group) {
        all[group] = idx_t(late + double(groups - 1 - group) * turn);
    }
    return all;
}

int piecesHome(idx_t rows, const CallArrays& arrays) {
    // 0.26 ms of the link between two H100s.
    constexpr double kPieceBytes = 64e6;
    const size_t rowBytes =
            deviceBytes(arrays.distances) + deviceBytes(arrays.labels);
    const double pieces = double(rows) * double(rowBytes) / kPieceBytes;
    return int(
            std::max(1.0, std::min(pieces, double(rows) / double(kLeastRows))));
}

idx_t pieceBegin(idx_t rows, int pieces, int piece) {
    if (piece == pieces) {
        return rows;
    }
    const idx_t last = pieces > 1 ? kLeastRows : rows;
    const idx_t tiles = (rows - last) / kFlatTile;
    return sliceBegin(tiles, std::max(pieces - 1, 1), piece) * kFlatTile;
}

std::vector<idx_t> tileSlices(
        idx_t rows,
        const std::vector<int>& partsOfGroups,
        const std::vector<idx_t>& lateRows,
        const std::vector<double>& speeds,
        idx_t tile) {
    const std::vector<idx_t> even = groupSlices(rows, partsOfGroups);
    const size_t groups = partsOfGroups.size();
    std::vector<double> late(groups);
    std::vector<double> weights(groups);
    for (size_t g = 0; g < groups; ++g) {
        const idx_t most = (even[g + 1] - even[g]) / 8;
        late[g] = lateRows.empty() ? 0 : double(std::min(lateRows[g], most));
        weights[g] =
                double(partsOfGroups[g]) * (speeds.empty() ? 1.0 : speeds[g]);
    }
    // Rows that one part searches until the group is done.
    const auto endOf = [&](size_t g, idx_t size) {
        const idx_t tiles = (size + tile - 1) / tile;
        return late[g] + double(tiles * tile) / weights[g];
    };
    const auto lastEnd = [&](const std::vector<idx_t>& sizes) {
        double last = 0;
        for (size_t g = 0; g < groups; ++g) {
            last = std::max(last, endOf(g, sizes[g]));
        }
        return last;
    };
    std::vector<idx_t> whole(groups);
    whole[0] = rows;
    for (size_t g = 1; g < groups; ++g) {
        const idx_t size = even[g + 1] - even[g];
        whole[g] = std::min((size + tile / 2) / tile * tile, whole[0]);
        whole[0] -= whole[g];
    }
    // Each tile to who ends first with it: all end as early as they can.
    std::vector<idx_t> best(groups);
    best[0] = rows % tile;
    for (idx_t left = rows / tile; left > 0; --left) {
        size_t first = 0;
        for (size_t g = 1; g < groups; ++g) {
            if (endOf(g, best[g] + tile) < endOf(first, best[first] + tile)) {
                first = g;
            }
        }
        best[first] += tile;
    }
    // Speeds are known by some per mille: even slices stay for no less.
    const bool pays = lastEnd(best) + double(tile) / 4 < lastEnd(whole);
    std::vector<idx_t> begins = {0};
    for (idx_t size : pays ? best : whole) {
        begins.push_back(begins.back() + size);
    }
    return begins;
}

std::vector<idx_t> inSteps(std::vector<idx_t> begins, idx_t step) {
    // From the end on: the first slice has what is left.
    const idx_t end = begins.back();
    for (size_t g = 1; g + 1 < begins.size(); ++g) {
        begins[g] = end - (end - begins[g] + step / 2) / step * step;
        begins[g] = std::max(begins[g], idx_t(0));
    }
    return begins;
}

std::vector<idx_t> replicaSlices(
        const PartSet& set,
        idx_t n,
        double secondsPerRow,
        const CallArrays& arrays,
        bool mayCut) {
    std::vector<int> parts;
    for (const PartGroup& group : set.devices.groups()) {
        parts.push_back(int(group.parts.size()));
    }
    const idx_t rows = n / idx_t(parts.size());
    // Those of several parts have the share that the caller gave them.
    const bool areAlike =
            std::all_of(parts.begin(), parts.end(), [&](int count) {
                return count == parts[0];
            });
    std::vector<double> speeds;
    if (arrays.areOnDevice()) {
        const std::vector<double>& known = set.times->newCall();
        if (areAlike && rows >= kLeastRows && set.areCanonical()) {
            speeds = known;
        }
    }
    // In pieces only the last copy is waited for. That is less than a tile of
    // queries costs the first device.
    const bool areEven = mayCut && piecesHome(rows, arrays) > 1;
    double late = 0;
    double turn = 0;
    if (!areEven && rows >= kLeastRows && secondsPerRow > 0) {
        const double seconds = secondsOfCopies(set, rows, arrays);
        late = std::min(seconds / secondsPerRow, double(rows));
        turn = secondsOfTurn(set, rows, arrays) / secondsPerRow;
    }
    const std::vector<idx_t> lateRows =
            lateRowsOf(parts.size(), rows, late, turn);
    if (rows < kLeastRows) {
        return groupSlices(n, parts, lateRows, speeds);
    }
    return set.isFlat()
            ? tileSlices(n, parts, lateRows, speeds, kFlatTile)
            : inSteps(groupSlices(n, parts, lateRows, speeds), kListsStep);
}

} // namespace faiss_bits::gpu::detail
