#pragma once

#include <algorithm>
#include <memory>
#include <numeric>
#include <ostream>
#include <vector>

#include <faiss/impl/AuxIndexStructures.h>

#include "faiss_bits/flat/IndexFusedFlat.h"
#include "tests/cpu/CpuCompare.h"
#include "tests/flat/HostHarness.h"

/// What the tests of IndexFusedFlat share: vectors, queries, and the reference
/// in float64 that every answer is held against.
namespace faiss_bits::test {

struct FusedCase {
    faiss::MetricType metric = faiss::METRIC_L2;
    float metricArg = 0;
    int64_t n = 500;
    int d = 20;
    int64_t q = 20;
    Fill fill = Fill::Uniform;
    uint32_t seed = 1;
};

inline std::ostream& operator<<(std::ostream& out, const FusedCase& c) {
    return out << "metric=" << int(c.metric) << " metric_arg=" << c.metricArg
               << " n=" << c.n << " d=" << c.d << " q=" << c.q
               << " seed=" << c.seed;
}

/// The case with every metric.
inline std::vector<FusedCase> metricsOf(FusedCase c) {
    std::vector<FusedCase> cases;
    for (auto metric :
         {faiss::METRIC_L2,
          faiss::METRIC_INNER_PRODUCT,
          faiss::METRIC_L1,
          faiss::METRIC_Linf,
          faiss::METRIC_Lp}) {
        c.metric = metric;
        c.metricArg = metric == faiss::METRIC_Lp ? 3 : 0;
        cases.push_back(c);
    }
    return cases;
}

inline Metric referenceMetric(faiss::MetricType metric) {
    switch (metric) {
        case faiss::METRIC_INNER_PRODUCT:
            return Metric::InnerProduct;
        case faiss::METRIC_L1:
            return Metric::L1;
        case faiss::METRIC_Linf:
            return Metric::Linf;
        case faiss::METRIC_Lp:
            return Metric::Lp;
        default:
            return Metric::L2;
    }
}

inline std::vector<int64_t> firstIds(int64_t n) {
    std::vector<int64_t> ids(n);
    std::iota(ids.begin(), ids.end(), int64_t(0));
    return ids;
}

/// Vectors and queries, and what may be answered to them. Tests may change
/// both until they first ask what is expected.
class FusedData {
   public:
    explicit FusedData(const FusedCase& c)
            : c(c),
              vectors(makeVectors(c.n, c.d, c.seed, c.fill)),
              queries(makeVectors(c.q, c.d, c.seed + 1000, c.fill)) {}

    bool largest() const {
        return c.metric == faiss::METRIC_INNER_PRODUCT;
    }

    std::unique_ptr<IndexFusedFlat> makeIndex() const {
        auto index =
                std::make_unique<IndexFusedFlat>(c.d, c.metric, c.metricArg);
        index->add(c.n, vectors.data());
        return index;
    }

    /// Every query's k nearest among `ids` (ascending; null: all vectors).
    void expectNearest(
            const SearchOutput& out,
            int64_t k,
            const std::vector<int64_t>* ids = nullptr) const {
        ASSERT_EQ(out.labels.size(), size_t(c.q * k));
        for (int64_t i = 0; i < c.q; ++i) {
            ASSERT_TRUE(isTopKOf(
                    candidates(i, ids),
                    largest(),
                    out.distances.data() + i * k,
                    out.labels.data() + i * k,
                    k))
                    << c << " k=" << k << " query " << i;
        }
    }

    /// The same of integers, for which each vector has one right distance
    /// (but for METRIC_Lp, whose powers are rounded).
    void expectExact(const SearchOutput& out, int64_t k) const {
        ASSERT_EQ(int(c.fill), int(Fill::Integers));
        expectNearest(out, k);
    }

    void expectInRange(
            const faiss::RangeSearchResult& found,
            float radius,
            const std::vector<int64_t>* ids = nullptr) const {
        ASSERT_EQ(int64_t(found.nq), c.q);
        ASSERT_EQ(found.lims[0], 0u);
        for (int64_t i = 0; i < c.q; ++i) {
            const size_t begin = found.lims[i];
            ASSERT_TRUE(isRangeOf(
                    candidates(i, ids),
                    largest(),
                    radius,
                    found.distances + begin,
                    found.labels + begin,
                    found.lims[i + 1] - begin))
                    << c << " radius=" << radius << " query " << i;
        }
    }

    /// A radius that about `count` vectors of the first query are nearer than.
    float radiusFor(int64_t count) const {
        std::vector<float> keys;
        for (const Accepted<float>& key : keysOf(0)) {
            keys.push_back(key.least);
        }
        std::sort(keys.begin(), keys.end());
        const int64_t at = std::min<int64_t>(count, c.n - 1);
        return largest() ? keys[c.n - 1 - at] : keys[at];
    }

    FusedCase c;
    std::vector<float> vectors; ///< [n, d]
    std::vector<float> queries; ///< [q, d]

   private:
    const std::vector<Accepted<float>>& keysOf(int64_t query) const {
        if (keys_.empty()) {
            keys_.resize(c.q);
        }
        std::vector<Accepted<float>>& keys = keys_[query];
        if (keys.empty()) {
            for (int64_t id = 0; id < c.n; ++id) {
                keys.push_back(acceptedKeys<float>(
                        referenceMetric(c.metric),
                        c.metricArg,
                        queries.data() + query * c.d,
                        vectors.data() + id * c.d,
                        c.d,
                        c.fill == Fill::Integers));
            }
        }
        return keys;
    }

    Candidates<float> candidates(int64_t query, const std::vector<int64_t>* ids)
            const {
        const auto& keys = keysOf(query);
        Candidates<float> some;
        some.ids = ids ? *ids : firstIds(c.n);
        some.count = some.ids.size();
        some.times.assign(some.count, 1);
        for (int64_t id : some.ids) {
            some.keys.push_back(keys[id]);
        }
        return some;
    }

    mutable std::vector<std::vector<Accepted<float>>> keys_; ///< [q, n]
};

} // namespace faiss_bits::test
