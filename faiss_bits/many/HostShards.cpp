#include "faiss_bits/many/HostShards.h"

#include <algorithm>
#include <cfloat>

#include "faiss_bits/common/PagePlan.h"

namespace faiss_bits::gpu::detail {

namespace {

/// Results of all lists, which one thread merges in some 10 us.
constexpr idx_t kMostResults = 4096;

/// The next result of a list's row.
struct HostCursor {
    const float* distance = nullptr;
    const idx_t* id = nullptr;
    const idx_t* end = nullptr;

    bool isAtEnd() const {
        return id == end || *id == -1;
    }
};

/// In the order (distance, id): true if that of `a` is in front of b's.
bool isBefore(const HostCursor& a, const HostCursor& b, bool largest) {
    if (*a.distance != *b.distance) {
        return largest ? *a.distance > *b.distance : *a.distance < *b.distance;
    }
    return *a.id < *b.id;
}

} // namespace

void mapHostIds(
        const std::vector<IdSegment>& segments,
        std::vector<idx_t>& ids) {
    for (idx_t& id : ids) {
        if (id == -1) {
            continue;
        }
        const auto behind = std::upper_bound(
                segments.begin(),
                segments.end(),
                id,
                [](idx_t number, const IdSegment& segment) {
                    return number < segment.inPart;
                });
        const IdSegment& segment = *(behind - 1);
        id += segment.inWhole - segment.inPart;
    }
}

void mergeHostLists(
        const std::vector<HostList>& lists,
        idx_t rows,
        idx_t k,
        bool largest,
        float* distances,
        idx_t* labels) {
    std::vector<HostCursor> next;
    for (idx_t row = 0; row < rows; ++row) {
        next.clear();
        for (const HostList& list : lists) {
            const idx_t* const ids = list.ids.data() + row * list.width;
            next.push_back(
                    {list.distances.data() + row * list.width,
                     ids,
                     ids + list.width});
        }
        for (idx_t place = row * k; place < (row + 1) * k; ++place) {
            HostCursor* best = nullptr; // of equal ones the first
            for (HostCursor& one : next) {
                if (!one.isAtEnd() &&
                    (!best || isBefore(one, *best, largest))) {
                    best = &one;
                }
            }
            labels[place] = best ? *best->id : -1;
            if (distances) {
                distances[place] = best ? *best->distance
                        : largest       ? -FLT_MAX
                                        : FLT_MAX;
            }
            if (best) {
                ++best->distance;
                ++best->id;
            }
        }
    }
}

bool isSmallForHost(idx_t n, idx_t k, idx_t shards, double workPerRow) {
    return n <= kMostResults / shards / k &&
            double(n) * workPerRow <= kPageWork;
}

bool goesByHost(
        const ShardSet& set,
        const GpuContext& home,
        const ShardQueries& queries,
        double workPerRow) {
    const idx_t shards = set.devices.size();
    const auto isOnHost = [&](const char* name, const void* array) {
        return !array || placeOf(home, name, array).onHost;
    };
    return shards > 1 && set.devices.groups().size() == size_t(shards) &&
            isSmallForHost(queries.n, queries.k, shards, workPerRow) &&
            !home.arraysAreOnDevice && isOnHost("x", queries.x) &&
            isOnHost("distances", queries.distances) &&
            isOnHost("labels", queries.labels);
}

void searchByHost(
        const ShardSet& set,
        bool largest,
        const ShardQueries& queries) {
    std::vector<HostList> found(set.devices.size());
    set.devices.onGroups(
            [&](int group) {
                const int shard = set.devices.groups()[group].parts[0];
                HostList& list = found[shard];
                list.width = std::min(queries.k, set.sizeOf(shard));
                if (list.width == 0) {
                    return;
                }
                list.distances.resize(queries.n * list.width);
                list.ids.resize(queries.n * list.width);
                set.devices.onPart(shard, [&] {
                    set.parts[shard]->search(
                            queries.n,
                            queries.x,
                            list.width,
                            list.distances.data(),
                            list.ids.data(),
                            queries.params(shard));
                });
                if (set.isFlat()) {
                    mapHostIds(set.map.segments(shard), list.ids);
                }
            },
            throwIfInterrupted);
    mergeHostLists(
            found,
            queries.n,
            queries.k,
            largest,
            queries.distances,
            queries.labels);
}

} // namespace faiss_bits::gpu::detail
