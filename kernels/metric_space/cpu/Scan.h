#pragma once

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/canonical/TrueDistance.h"
#include "kernels/metric_space/cpu/RowDistances.h"
#include "kernels/metric_space/cpu/Search.h"

/// One query on its way through an index, on the CPU.
namespace faiss_bits::metric_space {

/// Vectors of a table that are looked at together.
constexpr size_t kTableBlock = 2048;

struct Found {
    float distance;
    idx_t id;

    bool operator<(const Found& other) const {
        return distance != other.distance ? distance < other.distance
                                          : id < other.id;
    }
};

/// All within a limit that does not change.
class InRange {
   public:
    explicit InRange(float limit) : limit_(limit) {}

    float limit() const {
        return limit_;
    }
    void take(float distance, idx_t id) {
        if (distance <= limit_) {
            found.push_back({distance, id});
        }
    }

    std::vector<Found> found;

   private:
    const float limit_;
};

/// The k best so far: the limit is the last of them.
class Nearest {
   public:
    explicit Nearest(idx_t k) : k_(size_t(k)) {}

    float limit() const {
        return found.size() < k_ ? std::numeric_limits<float>::infinity()
                                 : found.front().distance;
    }
    void take(float distance, idx_t id) {
        if (!(distance <= limit())) {
            return;
        }
        const Found one{distance, id};
        if (found.size() == k_) {
            if (!(one < found.front())) {
                return;
            }
            std::pop_heap(found.begin(), found.end());
            found.pop_back();
        }
        found.push_back(one);
        std::push_heap(found.begin(), found.end());
    }

    std::vector<Found> found; // a heap, the last one first

   private:
    const size_t k_;
};

/// One query on its way through an index.
class Scan {
   public:
    Scan(const CpuSearch& search, idx_t query)
            : vectors_(search.vectors),
              ordered_(search.ordered),
              query_(search.queries + query * search.vectors.d),
              distance_(rowDistanceOf(search.vectors.metric)) {}

    float distanceTo(idx_t id) {
        return distanceToRow(vectors_.data + id * vectors_.d);
    }
    /// The same of a vector with this place in the order of the index.
    float distanceTo(idx_t id, size_t place) {
        return ordered_ ? distanceToRow(ordered_ + place * vectors_.d)
                        : distanceTo(id);
    }

    double leastTrue(float distance) const {
        return canonical::leastTrue(vectors_.metric, distance);
    }
    double mostTrue(float distance) const {
        return canonical::mostTrue(vectors_.metric, distance);
    }
    double reach(float limit) const {
        return canonical::reachOf(vectors_.metric, limit);
    }

    template <class Keep>
    void take(const idx_t* ids, idx_t count, Keep& keep) {
        for (idx_t i = 0; i < count; ++i) {
            keep.take(distanceTo(ids[i]), ids[i]);
        }
    }

    /// The clusters in the order of the list, to where the query's ball is
    /// inside one.
    void visit(const ListOfClusters& list, InRange& keep) {
        const double reach = this->reach(keep.limit());
        for (size_t c = 0; c < list.centers.size(); ++c) {
            const float toCenter = toReference(list.centers[c]);
            keep.take(toCenter, list.centers[c]);
            if (!apart(toCenter, list.radii[c], reach)) {
                takeBucket(list, c, keep);
            }
            if (canonical::isInside(
                        vectors_.metric, toCenter, list.radii[c], reach)) {
                break;
            }
        }
        take(list.rest.data(), list.rest.size(), keep);
    }

    /// The clusters in the order of how near a vector of theirs may be.
    void visit(const ListOfClusters& list, Nearest& keep) {
        take(list.rest.data(), list.rest.size(), keep);
        std::vector<std::pair<double, size_t>> clusters;
        std::vector<float> toCenters(list.centers.size());
        for (size_t c = 0; c < list.centers.size(); ++c) {
            toCenters[c] = toReference(list.centers[c]);
            keep.take(toCenters[c], list.centers[c]);
            clusters.push_back(
                    {leastTrue(toCenters[c]) - mostTrue(list.radii[c]), c});
        }
        std::sort(clusters.begin(), clusters.end());
        for (const auto& [least, c] : clusters) {
            if (!apart(toCenters[c], list.radii[c], reach(keep.limit()))) {
                takeBucket(list, c, keep);
            }
        }
    }

    /// Pivot after pivot, of some vectors those that are left.
    void visit(const PivotTable& table, InRange& keep) {
        const std::vector<float> toPivots = distancesToPivots(table);
        const double reach = this->reach(keep.limit());
        const size_t n = reach >= 0 ? table.order.size() : 0;
        uint32_t left[kTableBlock];
        for (size_t first = 0; first < n; first += kTableBlock) {
            const uint32_t size = uint32_t(std::min(kTableBlock, n - first));
            uint32_t count = 0;
            for (uint32_t i = 0; i < size; ++i) {
                left[count++] = i;
            }
            for (size_t p = 0; p < toPivots.size() && count > 0; ++p) {
                const float* known =
                        table.distances.data() + p * table.order.size() + first;
                uint32_t stay = 0;
                for (uint32_t i = 0; i < count; ++i) {
                    const uint32_t place = left[i];
                    left[stay] = place;
                    stay += !canonical::isOutside(
                            known[place], toPivots[p], reach);
                }
                count = stay;
            }
            for (uint32_t i = 0; i < count; ++i) {
                const size_t place = first + left[i];
                const idx_t id = table.order[place];
                keep.take(distanceTo(id, place), id);
            }
        }
        take(table.rest.data(), table.rest.size(), keep);
    }

    void visit(const PivotTable& table, Nearest& keep) {
        take(table.rest.data(), table.rest.size(), keep);
        const std::vector<float> toPivots = distancesToPivots(table);
        const size_t n = table.order.size();
        // By what the pivots prove of the distance, least first.
        std::vector<std::pair<double, size_t>> order(n);
        for (size_t i = 0; i < n; ++i) {
            order[i].second = i;
        }
        for (size_t p = 0; p < toPivots.size(); ++p) {
            const float* known = table.distances.data() + p * n;
            for (size_t i = 0; i < n; ++i) {
                order[i].first = std::max(
                        order[i].first,
                        canonical::leastByPivot(known[i], toPivots[p]));
            }
        }
        const auto later = [](const auto& a, const auto& b) { return a > b; };
        std::make_heap(order.begin(), order.end(), later);
        while (!order.empty() && !(order.front().first > reach(keep.limit()))) {
            const size_t place = order.front().second;
            std::pop_heap(order.begin(), order.end(), later);
            order.pop_back();
            const idx_t id = table.order[place];
            keep.take(distanceTo(id, place), id);
        }
    }

    MetricCounters counters;

   private:
    float toReference(idx_t id) {
        ++counters.references;
        return distanceTo(id);
    }

    bool apart(float toCenter, float radius, double reach) const {
        return reach < 0 ||
                canonical::areApart(vectors_.metric, toCenter, radius, reach);
    }

    template <class Keep>
    void takeBucket(const ListOfClusters& list, size_t c, Keep& keep) {
        const size_t first = c * size_t(list.bucketSize);
        const size_t last =
                std::min(first + list.bucketSize, list.members.size());
        for (size_t i = first; i < last; ++i) {
            keep.take(distanceTo(list.members[i], i), list.members[i]);
        }
    }

    float distanceToRow(const float* row) {
        ++counters.distances;
        return distance_(row, query_, vectors_.d);
    }

    std::vector<float> distancesToPivots(const PivotTable& table) {
        std::vector<float> toPivots;
        for (const idx_t pivot : table.pivots) {
            toPivots.push_back(canonical::tableDistance(
                    vectors_.metric, toReference(pivot)));
        }
        return toPivots;
    }

    const MetricVectors& vectors_;
    const float* ordered_;
    const float* query_;
    RowDistance distance_;
};

} // namespace faiss_bits::metric_space
