#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "kernels/knn/fused/pairwise/FusedPairwise.h"
#include "tests/common/HostTypes.h"
#include "tests/knn/MetricHarness.h"
#include "tests/knn/MetricReference.h"

/// Fused scans: what they let pass, as sets, against the reference in long
/// double and the proven bound.
namespace faiss_bits::test {

/// Every metric and every kernel.
inline const std::vector<MetricAndPower> kFusedMetrics = [] {
    std::vector<MetricAndPower> all = kManyMetrics;
    all.push_back({Metric::L2});
    all.push_back({Metric::InnerProduct});
    return all;
}();

struct FusedCase {
    MetricCase rows; ///< k and maxScratch are not read
    DataType queryType = DataType::Float32;
    bool filtered = false;
    uint32_t capacity = 0; ///< 0: of all vectors
    int multiprocessors = 132;

    std::string describe() const {
        return rows.describe() + " queries of " + nameOf(queryType) +
                (filtered ? " filtered" : "") +
                " capacity=" + std::to_string(capacity) +
                " multiprocessors=" + std::to_string(multiprocessors);
    }
};

class FusedData {
   public:
    explicit FusedData(const FusedCase& c) : c_(c), random_(c.rows.seed) {
        vectors_ = make(c.rows.n, c.rows.dataType, true);
        queries_ = make(c.rows.q, c.queryType, false);
        for (int64_t i = 0; i < (c.rows.n + 31) / 32; ++i) {
            allowed_.push_back(c.filtered ? random_() : ~0u);
        }
        findKeys();
        findLimits();
    }

    struct Lists {
        std::vector<uint32_t> counts;
        std::vector<uint32_t> columns;
        uint32_t capacity = 0;
    };

    Lists run(uint32_t capacity) const {
        const MetricCase& r = c_.rows;
        const auto vectors =
                upload(vectors_, r.dataType, r.n, r.vectorsRowMajor);
        const auto queries =
                upload(queries_, c_.queryType, r.q, r.queriesRowMajor);
        const auto factsV = facts(vectors, r.dataType, r.n, r.vectorsRowMajor);
        const auto factsQ =
                facts(queries, c_.queryType, r.q, r.queriesRowMajor);
        const DeviceBuffer<uint32_t> allowed(allowed_);
        const DeviceBuffer<float> limits(limits_);
        const DeviceBuffer<uint32_t> counts(r.q, 0);
        const DeviceBuffer<uint32_t> columns(size_t(r.q) * capacity, 0xFF);
        FusedPairwiseProblem p;
        p.metric = r.metric.metric;
        p.metricArg = r.metric.p;
        p.d = r.d;
        p.vectors = vectors.data();
        p.vectorType = r.dataType;
        p.vectorsRowMajor = r.vectorsRowMajor;
        p.numVectors = r.n;
        p.queries = queries.data();
        p.queryType = c_.queryType;
        p.queriesRowMajor = r.queriesRowMajor;
        p.numQueries = r.q;
        p.vectorFacts = factsV.data();
        p.queryFacts = factsQ.data();
        p.allowedBits = c_.filtered ? allowed.data() : nullptr;
        p.passed = {limits.data(), counts.data(), columns.data(), capacity};
        p.device.multiprocessors = c_.multiprocessors;
        runFusedPairwise(p, nullptr);
        BITS_CUDA_CHECK(cudaStreamSynchronize(nullptr));
        return {counts.download(), columns.download(), capacity};
    }

    /// Every list has what it must have, nothing that it must not, and nothing
    /// twice.
    ::testing::AssertionResult isRight(const Lists& lists) const {
        const MetricCase& r = c_.rows;
        for (int64_t q = 0; q < r.q; ++q) {
            const uint32_t count = lists.counts[q];
            if (count > uint64_t(r.n)) {
                return fails(q) << "count " << count;
            }
            std::vector<bool> has(r.n);
            for (uint32_t i = 0; i < count; ++i) {
                const uint32_t v = lists.columns[q * lists.capacity + i];
                if (v >= uint64_t(r.n) || has[v]) {
                    return fails(q) << "place " << i << " is " << v
                                    << ", there before or no vector";
                }
                has[v] = true;
            }
            for (int64_t v = 0; v < r.n; ++v) {
                const double key = keys_[q * r.n + v];
                const double error = errorOf(q, v, key);
                const bool mustNot = !isAllowed(v) ||
                        (!std::isnan(key) && key - error > widened(limits_[q]));
                const bool must = isAllowed(v) && !std::isnan(key) &&
                        !(key + error > limits_[q]);
                if ((mustNot && has[v]) || (must && !has[v])) {
                    return fails(q)
                            << "vector " << v << " with the key " << key
                            << " +- " << error << (has[v] ? " is" : " is not")
                            << " in the list of the limit " << limits_[q]
                            << (isAllowed(v) ? "" : ", and is not allowed");
                }
            }
        }
        return ::testing::AssertionSuccess();
    }

    /// Lists that overflow: counts that say so, and what is stored is some of
    /// what passed.
    ::testing::AssertionResult isPartOf(const Lists& some, const Lists& all)
            const {
        for (int64_t q = 0; q < c_.rows.q; ++q) {
            // What comes behind the last place may be left out.
            const bool overflows = all.counts[q] > some.capacity;
            if (overflows ? some.counts[q] <= some.capacity ||
                                some.counts[q] > all.counts[q]
                          : some.counts[q] != all.counts[q]) {
                return fails(q) << "count " << some.counts[q] << ", but "
                                << all.counts[q] << " with room";
            }
            const auto* from = all.columns.data() + q * all.capacity;
            const std::set<uint32_t> want(from, from + all.counts[q]);
            std::set<uint32_t> got;
            const uint32_t stored = std::min(some.counts[q], some.capacity);
            for (uint32_t i = 0; i < stored; ++i) {
                const uint32_t v = some.columns[q * some.capacity + i];
                if (!want.count(v) || !got.insert(v).second) {
                    return fails(q) << "place " << i << " is " << v;
                }
            }
        }
        return ::testing::AssertionSuccess();
    }

   private:
    ::testing::AssertionResult fails(int64_t q) const {
        return ::testing::AssertionFailure()
                << c_.describe() << "\n  query " << q << ": ";
    }

    std::vector<float> make(int64_t count, DataType type, bool areVectors) {
        const float odd[] = {NAN, INFINITY, -INFINITY};
        const int d = c_.rows.d;
        std::vector<float> values(count * d);
        for (int64_t i = 0; i < count; ++i) {
            float* v = values.data() + i * d;
            fillVector(c_.rows.data, v, d, random_);
            if (c_.rows.data == Components::Special && random_() % 3 == 0 &&
                areVectors) {
                v[random_() % d] = odd[random_() % 3];
            }
        }
        roundAllTo(type, values);
        return values;
    }

    DeviceBuffer<uint8_t> upload(
            const std::vector<float>& values,
            DataType type,
            int64_t count,
            bool rowMajor) const {
        const int d = c_.rows.d;
        return DeviceBuffer<uint8_t>(
                packAs(type, rowMajor ? values : transposed(values, count, d)),
                0xFF,
                c_.rows.shift * sizeOf(type));
    }

    DeviceBuffer<float> facts(
            const DeviceBuffer<uint8_t>& rows,
            DataType type,
            int64_t count,
            bool rowMajor) const {
        DeviceBuffer<float> out(count);
        const RowFacts kind = rowFactsOf(c_.rows.metric.metric);
        if (kind != RowFacts::None) {
            runRowFacts(
                    kind,
                    rows.data(),
                    type,
                    rowMajor,
                    count,
                    c_.rows.d,
                    out.data(),
                    nullptr);
        }
        return out;
    }

    static double sumOfSizes(const float* v, int d) {
        double sum = 0;
        for (int i = 0; i < d; ++i) {
            sum += std::abs(double(v[i]));
        }
        return sum;
    }

    static double norm(const float* v, int d) {
        double sum = 0;
        for (int i = 0; i < d; ++i) {
            sum += double(v[i]) * v[i];
        }
        return std::sqrt(sum);
    }

    void findKeys() {
        const MetricCase& r = c_.rows;
        const double sign = isSimilarity(r.metric.metric) ? -1 : 1;
        for (int64_t v = 0; v < r.n; ++v) {
            const double sum = sumOfSizes(vectors_.data() + v * r.d, r.d);
            vectorSum_ = std::isnan(sum) ? HUGE_VAL : std::max(vectorSum_, sum);
        }
        keys_.resize(r.q * r.n);
        for (int64_t q = 0; q < r.q; ++q) {
            bounds_.push_back(fusedPairwiseBound(
                    r.metric.metric,
                    r.metric.p,
                    r.d,
                    vectorSum_,
                    sumOfSizes(queries_.data() + q * r.d, r.d)));
            for (int64_t v = 0; v < r.n; ++v) {
                keys_[q * r.n + v] = sign *
                        referenceDistance(r.metric.metric,
                                          r.metric.p,
                                          vectors_.data() + v * r.d,
                                          queries_.data() + q * r.d,
                                          r.d);
            }
        }
    }

    double errorOf(int64_t q, int64_t v, double key) const {
        const ErrorBound& bound = bounds_[q];
        const int d = c_.rows.d;
        // Bray-Curtis where its sums have left the range: NaN, which passes.
        if (std::isinf(bound.relative) ||
            (c_.rows.metric.metric == Metric::BrayCurtis &&
             c_.rows.data == Components::Huge)) {
            return HUGE_VAL;
        }
        double error = bound.absolute;
        if (std::isfinite(key)) {
            error += bound.relative * std::abs(key);
        }
        if (bound.ofNorms > 0 && std::isfinite(key)) {
            error += bound.ofNorms * norm(queries_.data() + q * d, d) *
                    norm(vectors_.data() + v * d, d);
        }
        return error;
    }

    /// Limits of the metrics with a division are taken a little wider.
    static double widened(double limit) {
        return std::isinf(limit) ? limit
                                 : limit + 0x1p-17 * std::abs(limit) + 1e-36;
    }

    bool isAllowed(int64_t v) const {
        return allowed_[v / 32] >> (v % 32) & 1;
    }

    /// Some of every kind: a key itself, between two, none, all.
    void findLimits() {
        const int64_t n = c_.rows.n;
        for (int64_t q = 0; q < c_.rows.q; ++q) {
            std::vector<double> sorted;
            for (int64_t v = 0; v < n; ++v) {
                const double key = keys_[q * n + v];
                if (!std::isnan(key)) {
                    sorted.push_back(key);
                }
            }
            std::sort(sorted.begin(), sorted.end());
            const auto at = [&](int64_t i) {
                return sorted.empty()
                        ? 0.0
                        : sorted[std::min<int64_t>(i, sorted.size() - 1)];
            };
            switch (random_() % 10) {
                case 0:
                    limits_.push_back(float(at(0)));
                    break;
                case 1:
                    limits_.push_back(INFINITY);
                    break;
                case 2:
                    limits_.push_back(-INFINITY);
                    break;
                case 3:
                    limits_.push_back(NAN);
                    break;
                case 4:
                    limits_.push_back(float(0.5 * (at(3) + at(4))));
                    break;
                case 5:
                    limits_.push_back(0);
                    break;
                case 6:
                    limits_.push_back(float(at(n / 2)));
                    break;
                default:
                    limits_.push_back(float(at(random_() % 20)));
            }
        }
    }

    FusedCase c_;
    std::mt19937 random_;
    std::vector<float> vectors_; // [n, d]
    std::vector<float> queries_; // [q, d]
    std::vector<uint32_t> allowed_;
    std::vector<double> keys_; // [q, n]
    std::vector<ErrorBound> bounds_;
    std::vector<float> limits_;
    double vectorSum_ = 0;
};

inline void expectRightLists(const FusedCase& c) {
    const FusedData data(c);
    const auto all = data.run(uint32_t(c.rows.n));
    ASSERT_TRUE(data.isRight(all));
    if (c.capacity > 0) {
        ASSERT_TRUE(data.isPartOf(data.run(c.capacity), all));
    }
}

} // namespace faiss_bits::test
