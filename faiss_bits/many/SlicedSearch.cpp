#include "faiss_bits/many/SlicedSearch.h"

#include <algorithm>

#include "faiss_bits/common/PagePlan.h"
#include "faiss_bits/many/ShardMap.h"

namespace faiss_bits::gpu::detail {

namespace {

/// Where the host waits it must be able to stop between two pieces; more than
/// 16 queries have one arithmetic.
idx_t mostOfPiece(double workPerRow) {
    constexpr double kPieceWork = 8 * kPageWork;
    constexpr idx_t kLeastPiece = 64;
    return std::max(kLeastPiece, idx_t(kPieceWork / workPerRow));
}

/// Rows whose search takes as long as a group without the arrays needs longer
/// for `rows`: until its thread has them, and for copies. 0 where slices are
/// short: fewer rows may be searched in another way, which is no faster.
/// Measured on two H100s: 10 us for the least copy, 14 to wake a thread, 24 for
/// 5.2 MB.
idx_t rowsOfCopies(
        idx_t rows,
        double secondsPerRow,
        const SlicedSearch::Arrays& arrays) {
    constexpr idx_t kLeastRows = 2048;
    constexpr double kTime = 40e-6;
    constexpr double kSpeed = 2.5e11;
    if (rows < kLeastRows || secondsPerRow <= 0) {
        return 0;
    }
    size_t rowBytes = 0;
    for (const CallArray* array :
         {&arrays.x, &arrays.distances, &arrays.labels}) {
        rowBytes += array->onHost ? 0 : array->rowBytes;
    }
    const double time = kTime + double(rows) * double(rowBytes) / kSpeed;
    return idx_t(std::min(time / secondsPerRow, double(rows)));
}

std::vector<idx_t> slicesOf(
        const ManyDevices& devices,
        idx_t n,
        double secondsPerRow,
        const SlicedSearch::Arrays& arrays) {
    std::vector<int> parts;
    for (const PartGroup& group : devices.groups()) {
        parts.push_back(int(group.parts.size()));
    }
    const idx_t rows = n / idx_t(parts.size());
    return groupSlices(n, parts, rowsOfCopies(rows, secondsPerRow, arrays));
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

SlicedSearch::SlicedSearch(
        const PartSet& set,
        const GpuContext& home,
        idx_t n,
        idx_t k,
        double workPerRow,
        double secondsPerRow,
        const Arrays& arrays,
        const Parameters& parameters,
        bool isFiltered)
        : set_(set),
          home_(home),
          n_(n),
          k_(k),
          arrays_(arrays),
          parameters_(parameters),
          isFiltered_(isFiltered),
          isOnHost_(
                  arrays.x.onHost && arrays.distances.onHost &&
                  arrays.labels.onHost),
          most_(isOnHost_ ? mostOfPiece(workPerRow) : n),
          begins_(slicesOf(
                  set.devices,
                  n,
                  isOnHost_ ? 0 : secondsPerRow,
                  arrays)),
          memory_(set.devices.groups().size()),
          done_(set.devices.groups().size()) {}

void SlicedSearch::run() {
    if (!isOnHost_) {
        start_.record(home_.stream);
    }
    std::vector<int> lanes;
    for (int group = 0; group < int(memory_.size()); ++group) {
        lanes.push_back(lanesOf_(group));
    }
    try {
        set_.devices.onLanes(
                lanes,
                [&](int group, int lane) {
                    try {
                        searchLane_(group, lane, lanes[group]);
                    } catch (...) {
                        stop_ = true;
                        throw;
                    }
                },
                [&] {
                    try {
                        throwIfInterrupted();
                    } catch (...) {
                        stop_ = true;
                        throw;
                    }
                });
        // Everyone has enqueued: nobody's search on the stream of home comes
        // after one of another device.
        for (const StreamMark& done : done_) {
            done.holdUp(home_.stream);
        }
    } catch (...) {
        set_.devices.waitForAll();
        for (const StreamMark& done : done_) {
            done.wait(); // copies through the host end on other streams
        }
        // A copy that failed half-way has left no mark. Errors are not asked
        // for: there is one to report.
        (void)cudaStreamSynchronize(
                home_.resources->getAsyncCopyStream(home_.device));
        (void)cudaStreamSynchronize(homeStream_());
        (void)cudaGetLastError();
        throw;
    }
}

int SlicedSearch::lanesOf_(int group) const {
    // One copies to or from the host while the other searches: FAISS's
    // container, a thread a replica, took 5.4 and 22 ms for 10,240 queries on
    // the host where one search took 5.7 and 38 (H200, n = 2^20, d = 128, k =
    // 10 and 2000); of 1,024 one is faster.
    constexpr idx_t kLeastRows = 4096;
    constexpr double kLeastBytes = 40e6;
    const idx_t rows = rows_(group);
    const double bytes =
            double(rows) * double(k_) * double(sizeof(float) + sizeof(idx_t));
    const bool pays = rows >= kLeastRows || bytes >= kLeastBytes;
    const size_t most = set_.devices.groups()[group].lanes.size();
    return isOnHost_ && !isFiltered_ && pays ? int(std::min<size_t>(2, most))
                                             : 1;
}

void SlicedSearch::searchLane_(int group, int lane, int lanes) {
    const int part = set_.devices.groups()[group].lanes[lane];
    const idx_t first = begin_(group) + sliceBegin(rows_(group), lanes, lane);
    const idx_t end = begin_(group) + sliceBegin(rows_(group), lanes, lane + 1);
    const int pieces = int((end - first + most_ - 1) / most_);
    for (int i = 0; i < pieces && !stop_; ++i) {
        const idx_t at = first + sliceBegin(end - first, pieces, i);
        const idx_t next = first + sliceBegin(end - first, pieces, i + 1);
        set_.devices.onPart(
                part, [&] { searchPiece_(group, part, at, next - at); });
    }
}

void SlicedSearch::searchPiece_(int group, int part, idx_t first, idx_t rows) {
    const GpuContext context = part == 0 ? home_ : set_.devices.context(part);
    if (!isOnHost_) {
        start_.holdUp(context.stream);
    }
    const auto hereOf = [&](const CallArray& array) -> char* {
        if (!array.data) {
            return nullptr;
        }
        return array.onHost || group == 0
                ? array.data + first * array.rowBytes
                : static_cast<char*>(
                          memory_[group].take(context, rows * array.rowBytes));
    };
    char* const x = hereOf(arrays_.x);
    char* const distances = hereOf(arrays_.distances);
    char* const labels = hereOf(arrays_.labels);
    if (!arrays_.x.onHost && group != 0) {
        set_.copies->fetch(
                group,
                x,
                context.stream,
                0,
                arrays_.x.data + first * arrays_.x.rowBytes,
                start_,
                home_.resources->getAsyncCopyStream(home_.device),
                rows * arrays_.x.rowBytes);
    }
    faiss::gpu::GpuIndex& replica = *set_.parts[part];
    const auto* queries = reinterpret_cast<const float*>(x);
    auto* ids = reinterpret_cast<idx_t*>(labels);
    if (distances) {
        replica.search(
                rows,
                queries,
                k_,
                reinterpret_cast<float*>(distances),
                ids,
                parameters_(part));
    } else {
        replica.assign(rows, queries, ids, k_);
    }
    if (!isOnHost_ && group != 0) {
        sendHome_(arrays_.distances, distances, group, context, first, rows);
        sendHome_(arrays_.labels, labels, group, context, first, rows);
    }
}

/// Where results come home through the host. Not the stream of fetch(): queries
/// of others would wait there.
cudaStream_t SlicedSearch::homeStream_() const {
    return home_.resources->getAlternateStreams(home_.device).at(0);
}

/// By the thread of the group, so that results come home while the first device
/// still searches.
void SlicedSearch::sendHome_(
        const CallArray& array,
        const char* here,
        int group,
        const GpuContext& context,
        idx_t first,
        idx_t rows) {
    if (!array.data || array.onHost) {
        return;
    }
    const cudaStream_t helper = homeStream_();
    start_.holdUp(helper);
    set_.copies->send(
            0,
            array.data + first * array.rowBytes,
            helper,
            group,
            here,
            context.stream,
            rows * array.rowBytes,
            done_[group]);
}

} // namespace faiss_bits::gpu::detail
