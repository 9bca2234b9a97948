#include "kernels/metric_space/cpu/Search.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "kernels/common/Error.h"
#include "kernels/cpu/ParallelFor.h"
#include "kernels/metric_space/MetricChecks.h"
#include "kernels/metric_space/cpu/Scan.h"

namespace faiss_bits::metric_space {

namespace {

/// Time for which queries are searched between two questions for an interrupt;
/// while it takes less, twice as many come next.
constexpr std::chrono::milliseconds kShort{50};

void checkSearch(const CpuSearch& search) {
    checkMetricVectors(search.vectors);
    BITS_THROW_IF_NOT_FMT(
            search.numQueries >= 0,
            "numQueries = %lld is negative",
            (long long)search.numQueries);
    BITS_THROW_IF_NOT_FMT(
            search.queries || search.numQueries == 0,
            "queries are a null pointer");
}

/// body(query, counters) for all of them, some between two questions for an
/// interrupt.
template <class Body>
void forQueries(const CpuSearch& search, const Body& body) {
    const int team =
            search.threads > 0 ? search.threads : omp_get_max_threads();
    std::vector<MetricCounters> counters{size_t(team)};
    idx_t step = search.interrupt ? team : search.numQueries;
    for (idx_t first = 0, count = 0; first < search.numQueries;
         first += count) {
        const auto start = std::chrono::steady_clock::now();
        if (search.interrupt) {
            search.interrupt();
        }
        count = std::min(step, search.numQueries - first);
        cpu::parallelFor(team, team, count, [&](idx_t i, int thread) {
            const MetricCounters one = body(first + i);
            counters[thread].distances += one.distances;
            counters[thread].references += one.references;
        });
        if (std::chrono::steady_clock::now() - start < kShort) {
            step *= 2;
        }
    }
    if (search.counters) {
        for (const MetricCounters& one : counters) {
            search.counters->distances += one.distances;
            search.counters->references += one.references;
        }
    }
}

/// visit(scan, keep) takes what may be in the range.
template <class Visit>
cpu::RangeResult<float> rangeOf(
        const CpuSearch& search,
        float radius,
        const Visit& visit) {
    checkSearch(search);
    checkRadius(radius);
    std::vector<std::vector<Found>> found(size_t(search.numQueries));
    const float limit = greatestInside(radius);
    forQueries(search, [&](idx_t query) {
        Scan scan(search, query);
        InRange keep(limit);
        visit(scan, keep);
        std::sort(
                keep.found.begin(),
                keep.found.end(),
                [](const Found& a, const Found& b) { return a.id < b.id; });
        found[query] = std::move(keep.found);
        return scan.counters;
    });
    cpu::RangeResult<float> result;
    result.limits.push_back(0);
    for (const std::vector<Found>& ofQuery : found) {
        for (const Found& one : ofQuery) {
            result.distances.push_back(one.distance);
            result.ids.push_back(one.id);
        }
        result.limits.push_back(result.ids.size());
    }
    return result;
}

template <class Index>
void knnOf(
        const CpuSearch& search,
        const Index& index,
        idx_t k,
        float* outDistances,
        idx_t* outIds) {
    checkSearch(search);
    BITS_THROW_IF_NOT_FMT(k >= 1, "k = %lld is below 1", (long long)k);
    const idx_t most = std::min(k, std::max<idx_t>(search.vectors.n, 1));
    forQueries(search, [&](idx_t query) {
        Scan scan(search, query);
        Nearest keep(most);
        scan.visit(index, keep);
        std::sort_heap(keep.found.begin(), keep.found.end());
        float* distances = outDistances + query * k;
        idx_t* ids = outIds + query * k;
        std::fill_n(distances, k, std::numeric_limits<float>::max());
        std::fill_n(ids, k, idx_t(-1));
        for (size_t i = 0; i < keep.found.size(); ++i) {
            distances[i] = keep.found[i].distance;
            ids[i] = keep.found[i].id;
        }
        return scan.counters;
    });
}

} // namespace

std::vector<float> orderedRows(
        const MetricVectors& vectors,
        const std::vector<idx_t>& ids) {
    std::vector<float> rows;
    rows.reserve(ids.size() * vectors.d);
    for (const idx_t id : ids) {
        const float* row = vectors.data + id * vectors.d;
        rows.insert(rows.end(), row, row + vectors.d);
    }
    return rows;
}

cpu::RangeResult<float> rangeSearch(const CpuSearch& search, float radius) {
    return rangeOf(search, radius, [&](Scan& scan, InRange& keep) {
        for (idx_t id = 0; id < search.vectors.n; ++id) {
            keep.take(scan.distanceTo(id), id);
        }
    });
}

cpu::RangeResult<float> rangeSearch(
        const CpuSearch& search,
        const ListOfClusters& list,
        float radius) {
    return rangeOf(search, radius, [&](Scan& scan, InRange& keep) {
        scan.visit(list, keep);
    });
}

cpu::RangeResult<float> rangeSearch(
        const CpuSearch& search,
        const PivotTable& table,
        float radius) {
    return rangeOf(search, radius, [&](Scan& scan, InRange& keep) {
        scan.visit(table, keep);
    });
}

void knnSearch(
        const CpuSearch& search,
        const ListOfClusters& list,
        idx_t k,
        float* outDistances,
        idx_t* outIds) {
    knnOf(search, list, k, outDistances, outIds);
}

void knnSearch(
        const CpuSearch& search,
        const PivotTable& table,
        idx_t k,
        float* outDistances,
        idx_t* outIds) {
    knnOf(search, table, k, outDistances, outIds);
}

} // namespace faiss_bits::metric_space
