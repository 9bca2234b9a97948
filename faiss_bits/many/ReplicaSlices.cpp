#include "faiss_bits/many/ReplicaSlices.h"

#include <algorithm>

#include "faiss_bits/ivf/OurIvf.h"
#include "faiss_bits/many/ShardMap.h"

namespace faiss_bits::gpu::detail {

namespace {

/// Slices below are not cut, nor fitted to the devices: fewer rows may be
/// searched in another way, which is no faster.
constexpr idx_t kLeastRows = GroupSpeeds::kLeastRows;

/// Queries that a flat search by tensor cores takes at a time
/// (kernels/knn/fused): one more than 80 tiles takes 2.3% more (H200).
constexpr idx_t kFlatTile = 128;

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
    idx_t late = 0;
    if (!areEven && rows >= kLeastRows && secondsPerRow > 0) {
        const double seconds = secondsOfCopies(set, rows, arrays);
        late = idx_t(std::min(seconds / secondsPerRow, double(rows)));
    }
    std::vector<idx_t> lateRows(parts.size(), late);
    lateRows[0] = 0;
    const idx_t tile = set.isFlat() && rows >= kLeastRows ? kFlatTile : 1;
    return groupSlices(n, parts, lateRows, speeds, tile);
}

} // namespace faiss_bits::gpu::detail
