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

} // namespace

SlicedSearch::SlicedSearch(
        const PartSet& set,
        const GpuContext& home,
        idx_t n,
        idx_t k,
        double workPerRow,
        double secondsPerRow,
        const CallArrays& arrays,
        const Parameters& parameters,
        bool isFiltered)
        : set_(set),
          home_(home),
          n_(n),
          k_(k),
          arrays_(arrays),
          parameters_(parameters),
          isFiltered_(isFiltered),
          isOnHost_(arrays.areOnHost()),
          mayCut_(!isOnHost_ && set.isFlat() && !isFiltered),
          most_(isOnHost_ ? mostOfPiece(workPerRow) : n),
          isOnDevice_(arrays.areOnDevice()),
          begins_(replicaSlices(
                  set,
                  n,
                  isOnHost_ ? 0 : secondsPerRow,
                  arrays,
                  mayCut_)),
          memory_(set.devices.groups().size()),
          sending_(set.devices.groups().size()),
          done_(set.devices.groups().size()) {}

void SlicedSearch::run(
        ManyDevices::Early* early,
        const std::vector<GroupReach>& reach) {
    reach_ = &reach;
    if (!isOnHost_) {
        start_.recordUnlessIdle(home_.stream);
    }
    std::vector<int> lanes;
    for (int group = 0; group < int(memory_.size()); ++group) {
        lanes.push_back(lanesOf_(group));
    }
    const auto stopsIfThrown = [&](const auto& f) {
        try {
            f();
        } catch (...) {
            stop_ = true;
            throw;
        }
    };
    const auto search = [&](int group, int lane) {
        stopsIfThrown([&] { searchLane_(group, lane, lanes[group]); });
    };
    const auto mayStop = [&] { stopsIfThrown([] { throwIfInterrupted(); }); };
    try {
        if (early) {
            early->run([&](int group) { search(group, 0); }, mayStop);
        } else {
            set_.devices.onLanes(lanes, search, mayStop);
        }
        // Everyone has enqueued: nobody's search on the stream of home comes
        // after one of another device.
        for (const StreamMark& done : done_) {
            done.holdUpUnlessDone(home_.stream);
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
        for (const auto& stream : sending_) {
            if (stream) {
                (void)cudaStreamSynchronize(*stream);
            }
        }
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
    if (first == end) {
        return;
    }
    if (!isOnHost_ && group != 0) {
        set_.devices.onPart(
                part, [&] { searchAway_(group, part, first, end - first); });
        return;
    }
    const int pieces = int((end - first + most_ - 1) / most_);
    for (int i = 0; i < pieces && !stop_; ++i) {
        const idx_t at = first + sliceBegin(end - first, pieces, i);
        const idx_t next = first + sliceBegin(end - first, pieces, i + 1);
        set_.devices.onPart(part, [&] {
            const auto from = [&](const CallArray& array) {
                return array.data ? array.data + at * array.rowBytes : nullptr;
            };
            const cudaStream_t stream = contextOf_(part).stream;
            if (!isOnHost_) {
                start_.holdUp(stream);
            }
            const TimedSearch timed(
                    isOnDevice_ ? set_.times.get() : nullptr,
                    group,
                    stream,
                    next - at,
                    0);
            searchPiece_(
                    part,
                    next - at,
                    from(arrays_.x),
                    from(arrays_.distances),
                    from(arrays_.labels));
        });
    }
}

GpuContext SlicedSearch::contextOf_(int part) const {
    return part == 0 ? home_ : set_.devices.context(part);
}

void SlicedSearch::searchPiece_(
        int part,
        idx_t rows,
        const char* x,
        char* distances,
        char* labels) {
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
}

/// Of a device that some of the arrays do not lie on.
void SlicedSearch::searchAway_(int group, int part, idx_t first, idx_t rows) {
    const GpuContext context = contextOf_(part);
    if (arrays_.x.onHost || !set_.copies->isDirect(group, 0)) {
        start_.holdUp(context.stream); // else fetch() does
    }
    const auto hereOf = [&](const CallArray& array) -> char* {
        if (!array.data) {
            return nullptr;
        }
        return array.onHost ? array.data + first * array.rowBytes
                            : static_cast<char*>(memory_[group].take(
                                      context, rows * array.rowBytes));
    };
    const auto homeOf = [&](const CallArray& array) {
        return array.data ? array.data + first * array.rowBytes : nullptr;
    };
    char* const x = hereOf(arrays_.x);
    if (!arrays_.x.onHost) {
        set_.copies->fetch(
                group,
                x,
                context.stream,
                0,
                arrays_.x.data + first * arrays_.x.rowBytes,
                start_,
                home_.resources->getAsyncCopyStream(home_.device),
                rows * arrays_.x.rowBytes,
                reachOf_(group).readsQueries);
    }
    TimedSearch timed(
            isOnDevice_ ? set_.times.get() : nullptr,
            group,
            context.stream,
            rows,
            secondsOfCopies(set_, rows, arrays_));
    // Asked while the queries are on their way, if not before.
    const auto known = reachOf_(group).writesResults;
    const bool writesHome = isOnDevice_ &&
            (known ? *known
                   : set_.canWriteHome(
                             part,
                             {arrays_.distances.data, arrays_.labels.data}));
    if (writesHome) {
        set_.searchAfar(part, [&] {
            searchPiece_(
                    part,
                    rows,
                    x,
                    homeOf(arrays_.distances),
                    homeOf(arrays_.labels));
        });
        // A search of lists has waited for its results. Else nobody asks for an
        // event later, while the caller waits.
        if (!timed.end()) {
            done_[group].record(context.stream);
        }
        // Here and not by the caller's thread, which waits for this one.
        memory_[group].letGo();
        return;
    }
    char* const distances = hereOf(arrays_.distances);
    char* const labels = hereOf(arrays_.labels);
    const int pieces = mayCut_ ? piecesHome(rows, arrays_) : 1;
    // One piece goes home on the stream of its search: an event less.
    cudaStream_t stream = context.stream;
    if (pieces > 1) {
        stream = context.resources->getAsyncCopyStream(context.device);
        sending_[group] = stream;
    }
    for (int i = 0; i < pieces && !stop_; ++i) {
        const idx_t at = pieceBegin(rows, pieces, i);
        const idx_t count = pieceBegin(rows, pieces, i + 1) - at;
        const auto from = [&](const CallArray& array, char* here) {
            return here ? here + at * array.rowBytes : nullptr;
        };
        char* const foundDistances = from(arrays_.distances, distances);
        char* const foundLabels = from(arrays_.labels, labels);
        searchPiece_(
                part, count, from(arrays_.x, x), foundDistances, foundLabels);
        StreamMark found;
        if (pieces > 1) {
            found.record(context.stream);
            found.holdUp(stream);
        }
        const auto send = [&](const CallArray& array, const char* here) {
            sendHome_(array, here, group, stream, first + at, count);
        };
        send(arrays_.distances, foundDistances);
        send(arrays_.labels, foundLabels);
    }
    if (pieces > 1) {
        // Their memory is given back in the order of the search's stream.
        StreamMark sent;
        sent.record(stream);
        sent.holdUp(context.stream);
    }
}

/// Where results come home through the host. Not the stream of fetch(): queries
/// of others would wait there.
cudaStream_t SlicedSearch::homeStream_() const {
    return home_.resources->getAlternateStreams(home_.device).at(0);
}

/// By the thread of the group, so that results come home while the first device
/// still searches. Of what is on `stream`.
void SlicedSearch::sendHome_(
        const CallArray& array,
        const char* here,
        int group,
        cudaStream_t stream,
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
            stream,
            rows * array.rowBytes,
            done_[group]);
}

} // namespace faiss_bits::gpu::detail
