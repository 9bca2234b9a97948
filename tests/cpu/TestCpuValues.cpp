/// Values that break what is written for the usual ones.

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cpu/CpuHarness.h"

namespace faiss_bits::test {
namespace {

class CpuValues : public ::testing::TestWithParam<Metric> {};

/// Every kind of contents, variant and instruction set; k from 1 to beyond n.
TEST_P(CpuValues, AgreeWithTheReference) {
    const bool isPower = GetParam() == Metric::Lp;
    forBothTypes([&](auto zero) {
        using T = decltype(zero);
        int step = 0;
        for (Contents contents : kAllContents) {
            const auto ks = std::vector<int64_t>{1, 7, 33, 200, 210};
            for (int64_t k : ks) {
                CpuCase c;
                c.metric = GetParam();
                c.metricArg = 0.5 * (1 + step % 6);
                c.contents = contents;
                c.q = std::vector<int64_t>{1, 14, 5}[step % 3];
                c.n = 200;
                c.d = std::vector<int>{1, 4, 19, 37}[step % 4];
                c.k = k;
                c.seed = ++step;
                if (isPower && step % 2) {
                    continue;
                }
                const CpuData<T> data(c);
                for (cpu::Variant variant : kCpuVariants) {
                    for (cpu::Choice choice : choicesOf(variant)) {
                        // Half of them in several blocks.
                        choice.vectorBlock = step % 2 ? 64 : 0;
                        choice.depthBlock = step % 4 < 2 ? 16 : 0;
                        ASSERT_TRUE(data.check(data.run(choice)))
                                << describe(choice, 1);
                    }
                }
            }
        }
    });
}

/// The same vector in many places has the same distance in each, to the bit,
/// so that ties go to the lower id: wherever a tile or a block ends.
TEST_P(CpuValues, EqualVectorsHaveEqualDistances) {
    CpuCase c;
    c.metric = GetParam();
    c.metricArg = 2.5;
    c.contents = Contents::Duplicates;
    c.q = 13;
    c.n = c.k = 333;
    c.d = 21;
    forBothTypes([&](auto zero) {
        using T = decltype(zero);
        const CpuData<T> data(c);
        const auto& vectors = data.vectors();
        for (cpu::Variant variant : kCpuVariants) {
            for (cpu::Choice choice : choicesOf(variant)) {
                for (int threads : {1, 3}) {
                    choice.vectorBlock = threads == 1 ? 0 : 64;
                    SCOPED_TRACE(describe(choice, threads));
                    const auto result = data.run(choice, threads);
                    for (idx_t i = 0; i < c.q; ++i) {
                        std::map<T, T> keyOf; // of the first component
                        for (idx_t j = i * c.k; j < (i + 1) * c.k; ++j) {
                            const T first = vectors.row(result.ids[j])[0];
                            const T key = result.distances[j];
                            ASSERT_EQ(
                                    keyOf.emplace(first, key).first->second,
                                    key)
                                    << "query " << i << ", id "
                                    << result.ids[j];
                        }
                        ASSERT_LE(keyOf.size(), 7u);
                    }
                }
            }
        }
    });
}

INSTANTIATE_TEST_SUITE_P(
        Cpu,
        CpuValues,
        ::testing::ValuesIn(kCpuMetrics),
        [](const auto& info) { return metricName(info.param); });

/// Distances of the largest finite number are no sentinels, and infinite ones
/// come behind them.
TEST(CpuLargest, FiniteIsNoSentinel) {
    forBothTypes([](auto zero) {
        using T = decltype(zero);
        constexpr T most = std::numeric_limits<T>::max();
        constexpr T infinite = std::numeric_limits<T>::infinity();
        constexpr T nan = std::numeric_limits<T>::quiet_NaN();
        const std::vector<T> vectors = {
                infinite, most, nan, most / 2, most, -infinite};
        const std::vector<idx_t> ids = {3, 1, 4, 0, 5, -1, -1, -1};
        for (Metric metric : {Metric::L1, Metric::Linf, Metric::InnerProduct}) {
            const bool largest = isSimilarity(metric);
            const T query = largest ? T(-1) : T(0);
            const T sign = largest ? T(-1) : T(1);
            std::vector<idx_t> want = ids;
            std::vector<T> keys = {
                    most / 2, most, most, infinite, infinite, most, most, most};
            if (largest) { // -infinity is the best
                want = {5, 3, 1, 4, 0, -1, -1, -1};
                keys = {-infinite,
                        most / 2,
                        most,
                        most,
                        infinite,
                        most,
                        most,
                        most};
            }
            for (cpu::Variant variant : kCpuVariants) {
                for (const cpu::Choice& choice : choicesOf(variant)) {
                    SCOPED_TRACE(metricName(metric));
                    SCOPED_TRACE(describe(choice, 1));
                    cpu::KnnProblem<T> p;
                    p.metric = metric;
                    p.numQueries = 1;
                    p.numVectors = vectors.size();
                    p.d = 1;
                    p.queries = &query;
                    p.vectors = vectors.data();
                    p.k = want.size();
                    p.threads = 1;
                    p.choice = choice;
                    const auto result = CpuData<T>::run(p);
                    ASSERT_EQ(result.ids, want);
                    for (size_t i = 0; i < want.size(); ++i) {
                        const T key = result.distances[i];
                        ASSERT_EQ(key, sign * keys[i]) << "place " << i;
                    }
                }
            }
        }
    });
}

class CpuNan : public ::testing::TestWithParam<Metric> {
   protected:
    /// What every query of `queries` finds in all of `vectors`, d = 3, by every
    /// variant and instruction set: the ids `want`, behind them none.
    template <class T>
    void expectIds(
            const std::vector<T>& queries,
            const std::vector<T>& vectors,
            std::vector<idx_t> want) {
        constexpr T most = std::numeric_limits<T>::max();
        const T sentinel = isSimilarity(GetParam()) ? -most : most;
        const size_t found = want.size();
        want.resize(vectors.size() / 3 + 2, -1);
        cpu::KnnProblem<T> p;
        p.metric = GetParam();
        p.metricArg = 3;
        p.numQueries = queries.size() / 3;
        p.numVectors = vectors.size() / 3;
        p.d = 3;
        p.queries = queries.data();
        p.vectors = vectors.data();
        p.threads = 2;
        for (cpu::Variant variant : kCpuVariants) {
            for (const cpu::Choice& choice : choicesOf(variant)) {
                p.choice = choice;
                for (idx_t k = 1; k <= idx_t(want.size()); ++k) {
                    SCOPED_TRACE(describe(choice, 2));
                    p.k = k;
                    const auto result = CpuData<T>::run(p);
                    for (idx_t i = 0; i < p.numQueries * k; ++i) {
                        ASSERT_EQ(result.ids[i], want[i % k]) << "k = " << k;
                        if (i % k >= idx_t(found)) {
                            ASSERT_EQ(result.distances[i], sentinel);
                        } else {
                            ASSERT_FALSE(std::isnan(result.distances[i]));
                        }
                    }
                }
            }
        }
    }

    template <class T>
    static std::vector<T> repeated(std::vector<T> row, int times) {
        std::vector<T> rows;
        for (int i = 0; i < times; ++i) {
            rows.insert(rows.end(), row.begin(), row.end());
        }
        return rows;
    }
};

/// A NaN is no result: k above the number of numbers is short, down to none.
TEST_P(CpuNan, IsNeverReturned) {
    forBothTypes([&](auto zero) {
        using T = decltype(zero);
        constexpr T nan = std::numeric_limits<T>::quiet_NaN();
        for (int q : {1, 5, 40}) {
            const auto ones = repeated<T>({1, 1, 1}, q);
            const auto bad = repeated<T>({1, nan, 1}, q);
            const auto all = repeated<T>({nan, 1, -nan}, 50);
            expectIds<T>(ones, all, {});
            expectIds<T>(bad, repeated<T>({2, 3, 4}, 50), {});
            expectIds<T>(bad, all, {});
            // Numbers at both ends of many NaN, equally far.
            auto few = all;
            for (size_t place : {0, 7, 49}) {
                std::fill_n(few.begin() + 3 * place, 3, T(2));
            }
            expectIds<T>(ones, few, {0, 7, 49});
            if (HasFatalFailure()) {
                return;
            }
        }
    });
}

/// Nor one that infinities make of each other.
TEST_P(CpuNan, NorIsInfinityMinusInfinity) {
    forBothTypes([&](auto zero) {
        using T = decltype(zero);
        constexpr T infinite = std::numeric_limits<T>::infinity();
        // inf - inf, and inf times both signs.
        const std::vector<T> vectors = {infinite, -infinite, infinite, 1, 2, 3};
        const auto queries = repeated<T>({infinite, infinite, infinite}, 20);
        cpu::KnnProblem<T> p;
        p.metric = GetParam();
        p.metricArg = 3;
        p.d = 3;
        p.numQueries = 20;
        p.numVectors = p.k = 2;
        p.queries = queries.data();
        p.vectors = vectors.data();
        p.threads = 1;
        for (cpu::Variant variant : kCpuVariants) {
            for (const cpu::Choice& choice : choicesOf(variant)) {
                SCOPED_TRACE(describe(choice, 1));
                p.choice = choice;
                const auto result = CpuData<T>::run(p);
                for (size_t i = 0; i < result.ids.size(); ++i) {
                    ASSERT_NE(result.ids[i], 0);
                    ASSERT_FALSE(std::isnan(result.distances[i]));
                }
            }
        }
    });
}

INSTANTIATE_TEST_SUITE_P(
        Cpu,
        CpuNan,
        ::testing::ValuesIn(kCpuMetrics),
        [](const auto& info) { return metricName(info.param); });

/// -0 and 0 are equal: the lower id is first.
TEST(CpuLargest, ZerosOfEitherSignTie) {
    const float query = 1;
    // More than a vector of every target.
    std::vector<float> vectors(40, -0.f);
    std::vector<idx_t> want;
    vectors[4] = -1;
    for (idx_t i = 0; i < idx_t(vectors.size()); ++i) {
        vectors[i] = i % 3 == 0 ? 0.f : vectors[i];
        if (i != 4) {
            want.push_back(i);
        }
    }
    want.push_back(4);
    for (cpu::Variant variant : kCpuVariants) {
        for (const cpu::Choice& choice : choicesOf(variant)) {
            SCOPED_TRACE(describe(choice, 1));
            cpu::KnnProblem<float> p;
            p.metric = Metric::InnerProduct;
            p.numQueries = 1;
            p.numVectors = p.k = vectors.size();
            p.d = 1;
            p.queries = &query;
            p.vectors = vectors.data();
            p.threads = 1;
            p.choice = choice;
            EXPECT_EQ(CpuData<float>::run(p).ids, want);
        }
    }
}

/// A distance below zero would be the rounding of the expanded form.
TEST(CpuLargest, L2IsNeverBelowZero) {
    CpuCase c;
    c.contents = Contents::Far;
    c.q = 20;
    c.n = c.k = 300;
    c.d = 50;
    forBothTypes([&](auto zero) {
        using T = decltype(zero);
        CpuData<T> data(c);
        for (cpu::Variant variant : kCpuVariants) {
            for (const cpu::Choice& choice : choicesOf(variant)) {
                SCOPED_TRACE(describe(choice, 1));
                auto p = data.problem(choice, 1);
                p.queries = p.vectors; // each finds itself
                const auto result = CpuData<T>::run(p);
                for (int64_t q = 0; q < c.q; ++q) {
                    T before = 0;
                    for (int64_t i = 0; i < c.k; ++i) {
                        const T distance = result.distances[q * c.k + i];
                        ASSERT_GE(distance, before);
                        before = distance;
                    }
                    // All 300 are there, and most are far from this one.
                    ASSERT_GT(before, 0);
                }
            }
        }
    });
}

} // namespace
} // namespace faiss_bits::test
