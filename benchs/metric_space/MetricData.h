#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cpu/Range.h"
#include "kernels/metric_space/MetricSearch.h"

namespace faiss_bits::bench {

/// Vectors of a file on the host. As the paper, 80% are searched in and the
/// others are queries, in the order that a seed shuffles them to; or so many of
/// the last are.
struct MetricData {
    std::string name;
    int d = 0;
    std::vector<float> vectors; // [n, d]
    std::vector<float> queries;

    idx_t n() const {
        return idx_t(vectors.size()) / d;
    }
    idx_t numQueries() const {
        return idx_t(queries.size()) / d;
    }
};

/// Reads "name:PATH.fvecs" or "name:PATH.bvecs" (benchs/export_vectors.py),
/// with
/// ":1000" behind it for the last 1,000 as queries.
/// Throws std::runtime_error that names the file.
MetricData readMetricData(const std::string& spec, uint64_t seed);

/// n vectors that are those of `data` in turn, each component moved by about a
/// normal number of this deviation; the queries stay.
MetricData jitteredCopies(
        const MetricData& data,
        idx_t n,
        float deviation,
        uint64_t seed);

/// n vectors around 1,000 uniform centers, and a quarter as many queries.
MetricData clusteredData(idx_t n, int d, uint64_t seed);

/// The canonical distances below which, of a sample of queries, these shares of
/// the first n vectors are.
std::vector<float> radiiOfShares(
        const MetricData& data,
        Metric metric,
        idx_t n,
        const std::vector<double>& shares);

/// Copies a part of a search on the GPU to the end of `got`, which begins with
/// the limit 0.
void appendPart(
        const metric_space::MetricRangePart& part,
        cpu::RangeResult<float>& got);

} // namespace faiss_bits::bench
