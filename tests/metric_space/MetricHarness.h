#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/Range.h"
#include "kernels/metric_space/MetricSpace.h"
#include "tests/common/CanonicalOracle.h"
#include "tests/common/HardVectors.h"

/// Data and the plain answers that indexes for metric spaces are held against:
/// all canonical distances, by tests/common/CanonicalOracle.h.
namespace faiss_bits::test {

struct MetricCase {
    std::string name;
    Metric metric = Metric::L2;
    int d = 0;
    std::vector<float> vectors;
    std::vector<float> queries;

    idx_t n() const {
        return idx_t(vectors.size()) / d;
    }
    idx_t numQueries() const {
        return idx_t(queries.size()) / d;
    }
    metric_space::MetricVectors view() const {
        return {metric, d, n(), vectors.data()};
    }
    float distance(idx_t query, idx_t id) const {
        if (known_.size() != size_t(numQueries() * n())) {
            known_.clear();
            for (idx_t q = 0; q < numQueries(); ++q) {
                for (idx_t i = 0; i < n(); ++i) {
                    known_.push_back(canonicalDistance(
                            metric,
                            2,
                            queries.data() + q * d,
                            vectors.data() + i * d,
                            d));
                }
            }
        }
        return known_[query * n() + id];
    }

    /// After vectors or queries have changed.
    void forget() {
        known_.clear();
    }

   private:
    mutable std::vector<float> known_; // [numQueries, n], by the oracle
};

/// The case with so many queries, those that it lacks being vectors.
inline MetricCase withQueries(MetricCase c, idx_t numQueries) {
    while (c.numQueries() < numQueries) {
        const idx_t i = c.numQueries() * 7 % c.n();
        c.queries.insert(
                c.queries.end(),
                c.vectors.begin() + i * c.d,
                c.vectors.begin() + (i + 1) * c.d);
    }
    c.forget();
    return c;
}

using RangeAnswer = cpu::RangeResult<float>;

/// Distance < radius, by ascending id.
inline RangeAnswer plainRange(const MetricCase& c, float radius) {
    RangeAnswer answer;
    answer.limits.push_back(0);
    for (idx_t q = 0; q < c.numQueries(); ++q) {
        for (idx_t i = 0; i < c.n(); ++i) {
            const float distance = c.distance(q, i);
            if (distance < radius) {
                answer.distances.push_back(distance);
                answer.ids.push_back(i);
            }
        }
        answer.limits.push_back(answer.ids.size());
    }
    return answer;
}

inline ::testing::AssertionResult isSame(
        const RangeAnswer& got,
        const RangeAnswer& want) {
    if (got.limits != want.limits) {
        return ::testing::AssertionFailure()
                << "other numbers of results: " << got.ids.size()
                << " in all, not " << want.ids.size();
    }
    if (got.ids != want.ids) {
        return ::testing::AssertionFailure() << "other ids";
    }
    // By their bits.
    if (got.distances.size() != want.distances.size() ||
        (!want.distances.empty() &&
         std::memcmp(
                 got.distances.data(),
                 want.distances.data(),
                 want.distances.size() * sizeof(float)) != 0)) {
        return ::testing::AssertionFailure() << "other distances";
    }
    return ::testing::AssertionSuccess();
}

/// Rows of k places: distances and ids.
struct KnnAnswer {
    std::vector<float> distances;
    std::vector<idx_t> ids;

    KnnAnswer(const MetricCase& c, idx_t k)
            : distances(c.numQueries() * k, -1.0f),
              ids(c.numQueries() * k, -7) {}
};

inline ::testing::AssertionResult isSameKnn(
        const MetricCase& c,
        idx_t k,
        const KnnAnswer& got) {
    for (idx_t q = 0; q < c.numQueries(); ++q) {
        std::vector<Ranked> candidates;
        for (idx_t i = 0; i < c.n(); ++i) {
            const float distance = c.distance(q, i);
            if (!std::isnan(distance)) {
                candidates.push_back({double(distance), i});
            }
        }
        const auto want = topK(std::move(candidates), k, false);
        auto same = isCanonical(
                want,
                false,
                got.distances.data() + q * k,
                got.ids.data() + q * k,
                k);
        if (!same) {
            return same << " (query " << q << ")";
        }
    }
    return ::testing::AssertionSuccess();
}

/// Radii that matter for a case: none, all, distances that there are (which are
/// then outside) and what is just above them, some share of all pairs.
inline std::vector<float> radiiOf(const MetricCase& c) {
    const float infinity = std::numeric_limits<float>::infinity();
    std::vector<float> radii = {0.0f, -1.0f, infinity, 3.4e38f};
    std::vector<float> distances;
    for (idx_t q = 0; q < c.numQueries(); ++q) {
        for (idx_t i = 0; i < c.n(); ++i) {
            const float distance = c.distance(q, i);
            if (!std::isnan(distance)) {
                distances.push_back(distance);
            }
        }
    }
    std::sort(distances.begin(), distances.end());
    for (const double share : {0.0, 0.01, 0.1, 0.5}) {
        if (!distances.empty()) {
            const float one =
                    distances[size_t(share * double(distances.size() - 1))];
            radii.push_back(one);
            radii.push_back(std::nextafter(one, infinity));
        }
    }
    return radii;
}

/// n vectors and some queries of every kind, some of the vectors among the
/// queries.
inline std::vector<MetricCase> metricCases(Metric metric, idx_t n, int d) {
    static const char* names[] = {
            "offset",
            "terrain",
            "bytes",
            "clusters",
            "duplicates",
            "tiny",
            "huge",
            "mixed",
            "infinite"};
    std::vector<MetricCase> cases;
    const idx_t numQueries = 9;
    for (const Hard kind : kHard) {
        MetricCase c;
        c.name = names[int(kind)];
        c.metric = metric;
        c.d = d;
        c.vectors = makeHard(kind, n, d, 1);
        c.queries = makeHard(kind, numQueries, d, 2);
        cases.push_back(c);
    }
    MetricCase equal;
    equal.name = "all equal";
    equal.metric = metric;
    equal.d = d;
    equal.vectors.assign(n * d, 0.25f);
    equal.queries.assign(numQueries * d, 0.25f);
    equal.queries[0] = 1.5f;
    cases.push_back(equal);
    // A lattice: distances are whole numbers with many ties.
    MetricCase lattice;
    lattice.name = "lattice";
    lattice.metric = metric;
    lattice.d = d;
    for (idx_t i = 0; i < (n + numQueries) * d; ++i) {
        const float value = float((i * 2654435761u >> 7) % 4);
        (i < n * d ? lattice.vectors : lattice.queries).push_back(value);
    }
    cases.push_back(lattice);
    for (MetricCase& c : cases) {
        for (idx_t q = 0; q < std::min<idx_t>(3, c.n()); ++q) {
            std::copy_n(
                    c.vectors.begin() + (q * 31 % c.n()) * d,
                    d,
                    c.queries.begin() + (numQueries - 1 - q) * d);
        }
    }
    return cases;
}

constexpr Metric kTrueMetrics[] = {Metric::L2, Metric::L1, Metric::Linf};

} // namespace faiss_bits::test
