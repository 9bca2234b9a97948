#include "kernels/metric_space/cpu/Build.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "kernels/canonical/TrueDistance.h"
#include "kernels/common/Error.h"
#include "kernels/cpu/ParallelFor.h"
#include "kernels/metric_space/MetricChecks.h"
#include "kernels/metric_space/PivotOrder.h"
#include "kernels/metric_space/cpu/RowDistances.h"

namespace faiss_bits::metric_space {

namespace {

/// Rows that a thread takes at a time.
constexpr idx_t kBlockRows = 1024;

int threadsOf(int threads) {
    return threads > 0 ? threads : omp_get_max_threads();
}

/// body(first, last) for blocks of 0 .. count - 1.
template <class Body>
void forBlocks(int threads, idx_t count, const Body& body) {
    const idx_t blocks = (count + kBlockRows - 1) / kBlockRows;
    const int team = threadsOf(threads);
    cpu::parallelFor(team, team, blocks, [&](idx_t b, int) {
        body(b * kBlockRows, std::min(count, (b + 1) * kBlockRows));
    });
}

void ask(const Interrupt& interrupt) {
    if (interrupt) {
        interrupt();
    }
}

/// A vector of which no cluster has been made yet.
struct Free {
    idx_t id;
    double sum;     // of its distances to all centers
    float distance; // to the last one
};

bool isNearer(const Free& a, const Free& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.id < b.id;
}

/// Each of 0 .. n - 1 once among all the ids.
class IdSet {
   public:
    explicit IdSet(idx_t n) : seen_(size_t(n)) {}

    void add(const std::vector<idx_t>& ids, const char* name) {
        for (const idx_t id : ids) {
            BITS_THROW_IF_NOT_FMT(
                    0 <= id && id < idx_t(seen_.size()) && !seen_[id],
                    "%s: id %lld is outside 0..%lld or there twice",
                    name,
                    (long long)id,
                    (long long)seen_.size() - 1);
            seen_[id] = true;
            ++count_;
        }
    }

    void requireAll() const {
        BITS_THROW_IF_NOT_FMT(
                count_ == idx_t(seen_.size()),
                "%lld ids for %lld vectors",
                (long long)count_,
                (long long)seen_.size());
    }

   private:
    std::vector<bool> seen_;
    idx_t count_ = 0;
};

} // namespace

void splitFinite(
        const MetricVectors& vectors,
        std::vector<idx_t>& finite,
        std::vector<idx_t>& rest) {
    for (idx_t i = 0; i < vectors.n; ++i) {
        const bool fits = isFinite(vectors.data + i * vectors.d, vectors.d);
        (fits ? finite : rest).push_back(i);
    }
}

ListOfClusters buildListOfClusters(
        const MetricVectors& vectors,
        const ListOfClustersOptions& options,
        int threads,
        const Interrupt& interrupt) {
    checkMetricVectors(vectors);
    checkOptions(options);
    const RowDistance distance = rowDistanceOf(vectors.metric);
    const int d = vectors.d;
    ListOfClusters list;
    list.bucketSize = options.bucketSize;
    std::vector<idx_t> finite;
    splitFinite(vectors, finite, list.rest);
    std::vector<Free> free;
    free.reserve(finite.size());
    for (const idx_t id : finite) {
        free.push_back({id, 0, 0});
    }
    list.members.reserve(finite.size());
    idx_t next = free.empty() ? 0 : firstCenter(options.seed, finite.size());
    while (!free.empty()) {
        ask(interrupt);
        const idx_t center = free[next].id;
        free[next] = free.back();
        free.pop_back();
        list.centers.push_back(center);
        const float* c = vectors.data + center * d;
        forBlocks(threads, free.size(), [&](idx_t first, idx_t last) {
            for (idx_t i = first; i < last; ++i) {
                Free& one = free[i];
                one.distance = distance(vectors.data + one.id * d, c, d);
                one.sum +=
                        canonical::trueDistance(vectors.metric, one.distance);
            }
        });
        const size_t count = std::min(free.size(), size_t(options.bucketSize));
        const auto end = free.begin() + count;
        std::nth_element(
                free.begin(),
                count < free.size() ? end : free.begin(),
                free.end(),
                isNearer);
        std::sort(free.begin(), end, isNearer);
        for (auto one = free.begin(); one != end; ++one) {
            list.members.push_back(one->id);
        }
        list.radii.push_back(count > 0 ? (end - 1)->distance : 0.0f);
        free.erase(free.begin(), end);
        next = 0;
        for (size_t i = 1; i < free.size(); ++i) {
            const Free& a = free[i];
            const Free& b = free[next];
            if (a.sum != b.sum ? a.sum > b.sum : a.id < b.id) {
                next = i;
            }
        }
    }
    return list;
}

PivotTable buildPivotTable(
        const MetricVectors& vectors,
        const PivotOptions& options,
        int threads,
        const Interrupt& interrupt) {
    checkMetricVectors(vectors);
    checkOptions(options);
    const RowDistance distance = rowDistanceOf(vectors.metric);
    const int d = vectors.d;
    PivotTable table;
    std::vector<idx_t> finite;
    splitFinite(vectors, finite, table.rest);
    const idx_t n = finite.size();
    if (n == 0) {
        return table;
    }
    const auto fromOne = [&](idx_t id, std::vector<float>& out) {
        ask(interrupt);
        out.resize(n);
        const float* p = vectors.data + id * d;
        forBlocks(threads, n, [&](idx_t first, idx_t last) {
            for (idx_t i = first; i < last; ++i) {
                out[i] = distance(vectors.data + finite[i] * d, p, d);
            }
        });
    };
    std::vector<float> distances;
    idx_t from = 0;
    for (int sweep = 0; sweep < kMaxDistanceSweeps; ++sweep) {
        fromOne(finite[from], distances);
        // The first of the farthest.
        from = std::max_element(distances.begin(), distances.end()) -
                distances.begin();
        table.maxDistance = std::max(
                table.maxDistance,
                canonical::trueDistance(vectors.metric, distances[from]));
    }
    const double least = options.alpha * table.maxDistance;
    // To the nearest pivot, and which it is.
    std::vector<float> nearest(n, std::numeric_limits<float>::infinity());
    std::vector<uint32_t> pivotOf(n);
    for (idx_t at = 0; at < n;) {
        const uint32_t number = uint32_t(table.pivots.size());
        table.pivots.push_back(finite[at]);
        fromOne(finite[at], distances);
        for (idx_t i = 0; i < n; ++i) {
            if (number == 0 || distances[i] < nearest[i]) {
                nearest[i] = distances[i];
                pivotOf[i] = number;
            }
        }
        if (int(table.pivots.size()) == options.maxPivots) {
            break;
        }
        for (++at; at < n; ++at) {
            // Not 0 where all are alike: a second pivot of the same place
            // tells nothing.
            if (nearest[at] > 0 &&
                canonical::trueDistance(vectors.metric, nearest[at]) >= least) {
                break;
            }
        }
    }
    std::vector<std::pair<uint64_t, idx_t>> keys(n); // and ids
    for (idx_t i = 0; i < n; ++i) {
        // Distances are not negative, so their bits are ordered as they are.
        const uint64_t key = uint64_t(pivotOf[i]) << 32 |
                std::bit_cast<uint32_t>(nearest[i]);
        keys[i] = {d > kCurveDims ? key : 0, finite[i]};
    }
    const int pivots = d > kCurveDims
            ? 0
            : std::min<int>(table.pivots.size(), kCurvePivots);
    for (int p = 0; p < pivots; ++p) {
        fromOne(table.pivots[p], distances);
        for (idx_t i = 0; i < n; ++i) {
            keys[i].first |= curveBits(
                    vectors.metric, distances[i], table.maxDistance, p, pivots);
        }
    }
    std::sort(keys.begin(), keys.end());
    for (const auto& [key, id] : keys) {
        table.order.push_back(id);
    }
    fillPivotDistances(vectors, table, threads, interrupt);
    return table;
}

void fillPivotDistances(
        const MetricVectors& vectors,
        PivotTable& table,
        int threads,
        const Interrupt& interrupt) {
    const RowDistance distance = rowDistanceOf(vectors.metric);
    const int d = vectors.d;
    const idx_t n = table.order.size();
    table.distances.resize(table.pivots.size() * n);
    for (size_t p = 0; p < table.pivots.size(); ++p) {
        ask(interrupt);
        const float* pivot = vectors.data + table.pivots[p] * d;
        float* out = table.distances.data() + p * n;
        forBlocks(threads, n, [&](idx_t first, idx_t last) {
            for (idx_t i = first; i < last; ++i) {
                out[i] = canonical::tableDistance(
                        vectors.metric,
                        distance(vectors.data + table.order[i] * d, pivot, d));
            }
        });
    }
}

void checkListOfClusters(const ListOfClusters& list, idx_t n) {
    BITS_THROW_IF_NOT_FMT(
            list.bucketSize >= 1, "bucketSize = %d", list.bucketSize);
    BITS_THROW_IF_NOT_FMT(
            list.radii.size() == list.centers.size(),
            "%zu radii for %zu centers",
            list.radii.size(),
            list.centers.size());
    // All buckets but the last are full.
    const size_t bucket = size_t(list.bucketSize);
    const size_t full = list.members.size() / bucket;
    const size_t some = (list.members.size() + bucket - 1) / bucket;
    BITS_THROW_IF_NOT_FMT(
            list.centers.size() == some || list.centers.size() == full + 1,
            "%zu members for %zu centers of %d each",
            list.members.size(),
            list.centers.size(),
            list.bucketSize);
    for (const float radius : list.radii) {
        BITS_THROW_IF_NOT_FMT(radius >= 0, "radius = %g", double(radius));
    }
    IdSet ids(n);
    ids.add(list.centers, "centers");
    ids.add(list.members, "members");
    ids.add(list.rest, "rest");
    ids.requireAll();
}

void checkPivotTable(const PivotTable& table, idx_t n) {
    IdSet ids(n);
    ids.add(table.order, "order");
    ids.add(table.rest, "rest");
    ids.requireAll();
    BITS_THROW_IF_NOT_FMT(
            table.pivots.size() <= table.order.size() &&
                    table.pivots.empty() == table.order.empty(),
            "%zu pivots for %zu vectors",
            table.pivots.size(),
            table.order.size());
    IdSet pivots(n);
    pivots.add(table.pivots, "pivots");
    for (const idx_t id : table.rest) {
        BITS_THROW_IF_NOT_FMT(
                std::find(table.pivots.begin(), table.pivots.end(), id) ==
                        table.pivots.end(),
                "pivots: %lld is none of the order",
                (long long)id);
    }
}

} // namespace faiss_bits::metric_space
