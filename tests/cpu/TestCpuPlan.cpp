/// What the cost model says, and that what is forced is what runs.

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/common/ExpectError.h"
#include "tests/cpu/CpuHarness.h"

namespace faiss_bits::test {
namespace {

constexpr const char* kTargetVariable = "FAISS_BITS_CPU_TARGET";

template <class T = float>
cpu::KnnProblem<T> shape(idx_t q, idx_t n, int d, idx_t k) {
    cpu::KnnProblem<T> p;
    p.numQueries = q;
    p.numVectors = n;
    p.d = d;
    p.k = k;
    p.threads = 2;
    return p;
}

/// Shapes from a single pair to far more than memory holds.
std::vector<cpu::KnnProblem<float>> shapes() {
    std::vector<cpu::KnnProblem<float>> list;
    for (idx_t q : {0, 1, 10, 1000, 8192, 1000000}) {
        for (idx_t n : {0, 1, 8192, 1000000, 2000000000}) {
            for (int d : {1, 16, 128, 1024, 100000}) {
                for (idx_t k : {1, 16, 2048}) {
                    list.push_back(shape(q, n, d, k));
                    list.back().metric =
                            kCpuMetrics[list.size() % kCpuMetrics.size()];
                }
            }
        }
    }
    return list;
}

std::string describe(const cpu::KnnProblem<float>& p) {
    CpuCase c;
    c.metric = p.metric;
    c.q = p.numQueries;
    c.n = p.numVectors;
    c.d = p.d;
    c.k = p.k;
    return c.describe();
}

TEST(CpuPlan, SaysWhatWillRun) {
    for (auto p : shapes()) {
        SCOPED_TRACE(describe(p));
        const cpu::Plan plan = cpu::planKnn(p);
        EXPECT_NE(plan.variant, cpu::Variant::Auto);
        EXPECT_GE(plan.threads, 1);
        EXPECT_LE(plan.threads, p.threads);
        const auto targets = cpu::targetNames();
        EXPECT_TRUE(std::count(targets.begin(), targets.end(), plan.target));
        const std::string text = toString(plan);
        EXPECT_NE(text.find(nameOf(plan.variant)), std::string::npos) << text;
        EXPECT_NE(text.find(plan.target), std::string::npos) << text;
        EXPECT_EQ(text.find('\n'), std::string::npos) << text;
        EXPECT_EQ(text.find("nan"), std::string::npos) << text;
    }
}

/// Of the variants that compute alike: see ThreadsDoNotChangeTheArithmetic. A
/// certified search takes that of k; its predictions are of some more.
TEST(CpuPlan, PredictsEveryVariantThatCanRunAndTakesTheBest) {
    auto list = shapes();
    for (auto p : shapes()) {
        p.mode = SearchMode::Plain;
        list.push_back(p);
    }
    for (const auto& p : list) {
        if (p.numQueries == 0 || p.numVectors == 0) {
            continue;
        }
        SCOPED_TRACE(describe(p));
        const cpu::Plan plan = cpu::planKnn(p);
        ASSERT_GE(plan.predictions.size(), 2u);
        const auto isDirect = [](cpu::Variant variant) {
            return variant == cpu::Variant::Direct;
        };
        double best = std::numeric_limits<double>::infinity();
        double chosen = -1;
        for (size_t i = 0; i < plan.predictions.size(); ++i) {
            const auto [variant, seconds] = plan.predictions[i];
            EXPECT_TRUE(std::isfinite(seconds) && seconds > 0);
            EXPECT_NE(variant, cpu::Variant::Auto);
            if (i > 0) {
                EXPECT_LT(plan.predictions[i - 1].first, variant);
            }
            if (isDirect(variant) == isDirect(plan.variant)) {
                best = std::min(best, seconds);
            }
            chosen = variant == plan.variant ? seconds : chosen;
        }
        if (p.mode == SearchMode::Plain) {
            EXPECT_EQ(plan.predictedSeconds, best);
        }
        EXPECT_EQ(plan.predictedSeconds, chosen);
    }
}

/// Certified searches have no heaps below so many vectors, and from there on
/// where plain ones have them.
void expectHeapsFrom(Metric metric, idx_t n, idx_t k) {
    for (const int d : {8, 64}) {
        auto p = shape(1000, n, d, k);
        p.metric = metric;
        const auto variant = cpu::planKnn(p).variant;
        p.numVectors = n - 1;
        EXPECT_NE(cpu::planKnn(p).variant, cpu::Variant::Var1);
        p.numVectors = n;
        p.mode = SearchMode::Plain;
        EXPECT_EQ(variant, cpu::planKnn(p).variant);
    }
}

TEST(CpuPlan, HeapsOfCandidatesAreForManyVectors) {
    for (const idx_t k : {2, 4, 8}) {
        expectHeapsFrom(Metric::InnerProduct, 4096 * k, k);
    }
}

/// Heaps with slack hold k alone.
TEST(CpuPlan, HeapsWithSlackAreForFewNeighbours) {
    for (const idx_t k : {5, 6, 8}) {
        expectHeapsFrom(Metric::L2, 256 * k * k, k);
    }
    for (const idx_t k : {1, 2, 4}) {
        auto p = shape(1000, 3000, 16, k);
        EXPECT_EQ(cpu::planKnn(p).variant, cpu::Variant::Var1);
        p.metric = Metric::InnerProduct;
        EXPECT_EQ(cpu::planKnn(p).variant == cpu::Variant::Var1, k == 1);
    }
}

TEST(CpuPlan, WhatIsForcedIsInThePlan) {
    for (cpu::Variant variant : kCpuVariants) {
        for (cpu::Choice choice : choicesOf(variant)) {
            auto p = shape(1000, 20000, 300, 50);
            p.choice = choice;
            const cpu::Plan free = cpu::planKnn(p);
            SCOPED_TRACE(toString(free));
            EXPECT_EQ(free.target, choice.target);
            if (variant == cpu::Variant::Auto) {
                continue;
            }
            EXPECT_EQ(free.variant, variant);
            if (variant == cpu::Variant::Direct) {
                continue; // has no blocks
            }
            ASSERT_GT(free.tileQueries, 0);
            ASSERT_GT(free.tileVectors, 0);
            p.choice.queryBlock = 3 * free.tileQueries;
            p.choice.vectorBlock = 5 * free.tileVectors;
            p.choice.depthBlock = 48;
            const cpu::Plan forced = cpu::planKnn(p);
            EXPECT_EQ(forced.variant, variant);
            EXPECT_EQ(forced.target, choice.target);
            EXPECT_EQ(forced.queryBlock, p.choice.queryBlock);
            EXPECT_EQ(forced.vectorBlock, p.choice.vectorBlock);
            EXPECT_EQ(forced.depthBlock, p.choice.depthBlock);
        }
    }
}

TEST(CpuPlan, ThreadsAreThoseOfOpenMPOrTheCallers) {
    const int before = omp_get_max_threads();
    auto p = shape(5000, 100000, 64, 10);
    for (int threads : {1, 2, 3}) {
        omp_set_num_threads(threads);
        p.threads = 0;
        EXPECT_EQ(cpu::planKnn(p).threads, threads);
        p.threads = 4 - threads;
        EXPECT_EQ(cpu::planKnn(p).threads, 4 - threads);
    }
    omp_set_num_threads(before);
    // Few queries: there is enough to do with the vectors.
    p = shape(1, 1000000, 64, 10);
    EXPECT_EQ(cpu::planKnn(p).threads, 2);
    EXPECT_TRUE(cpu::planKnn(p).acrossVectors);
}

/// O(threads (blocks + queries k)) and a copy of the queries of a batch, never
/// the matrix of distances; with the sixth variant, those of one query at
/// least.
TEST(CpuPlan, ScratchIsBounded) {
    for (auto p : shapes()) {
        const double results = 16.0 * p.numQueries *
                std::min(p.k, std::max<idx_t>(p.numVectors, 1));
        for (cpu::Variant variant : kCpuVariants) {
            for (int threads : {1, 2, 64}) {
                p.threads = threads;
                p.choice.variant = variant;
                const cpu::Plan plan = cpu::planKnn(p);
                const bool isRows = variant == cpu::Variant::Var6;
                const double row = isRows ? 4.0 * p.numVectors : 0.0;
                const double packed = 4.0 * plan.batchQueries * (p.d + 64);
                ASSERT_LT(
                        double(plan.scratchBytes),
                        300e6 + threads * (64e6 + 8 * results) + row + packed)
                        << describe(p) << " " << toString(plan);
            }
        }
    }
}

/// A result of all vectors is sorted: key and id of each, and both twice over.
TEST(CpuPlan, ScratchCountsTheSortOfALargeResult) {
    for (cpu::Variant variant : {cpu::Variant::Auto, cpu::Variant::Var6}) {
        auto p = shape(1, 1000000, 16, 1000000);
        p.choice.variant = variant;
        p.threads = 64;
        const cpu::Plan plan = cpu::planKnn(p);
        // One row is finished by one thread.
        EXPECT_GE(plan.scratchBytes, 24e6) << toString(plan);
        EXPECT_LT(plan.scratchBytes, 200e6) << toString(plan);
    }
}

/// |q|^2 - 2 <q, x> + |x|^2 and sum((q - x)^2) round in two ways: which of them
/// is taken must not depend on the threads, which never change the result.
TEST(CpuPlan, ThreadsDoNotChangeTheArithmetic) {
    for (Metric metric : kCpuMetrics) {
        for (idx_t q : {1, 2, 4, 6, 8, 12, 16, 24, 32, 64, 200}) {
            for (idx_t n : {100, 2000, 50000, 1000000}) {
                for (int d : {2, 16, 128, 1000}) {
                    for (idx_t k : {1, 100, 2000}) {
                        auto p = shape(q, n, d, k);
                        p.metric = metric;
                        auto isDirect = [&p](int threads) {
                            p.threads = threads;
                            const auto variant = cpu::planKnn(p).variant;
                            return variant == cpu::Variant::Direct;
                        };
                        const bool one = isDirect(1);
                        for (int threads : {2, 3, 8, 64}) {
                            ASSERT_EQ(isDirect(threads), one)
                                    << threads << " threads, " << describe(p);
                        }
                    }
                }
            }
        }
    }
}

TEST(CpuPlan, SameQuestionSameAnswer) {
    for (auto p : shapes()) {
        const cpu::Plan one = cpu::planKnn(p);
        EXPECT_EQ(toString(one), toString(cpu::planKnn(p)));
    }
}

TEST(CpuNames, ThereAndBack) {
    const std::vector<std::string> names = {
            "auto", "buffered", "var1", "var5", "var6", "direct"};
    for (size_t i = 0; i < names.size(); ++i) {
        EXPECT_EQ(nameOf(kCpuVariants[i]), names[i]);
        EXPECT_EQ(cpu::variantOf(names[i]), kCpuVariants[i]);
    }
    for (const char* name : {"", "Var1", "var2", "fast"}) {
        EXPECT_TRUE(throwsNaming(
                [&] { (void)cpu::variantOf(name); }, "variant", name));
    }
}

TEST(CpuTargets, AreDistinct) {
    const auto targets = cpu::targetNames();
    ASSERT_FALSE(targets.empty());
    const std::set<std::string> distinct(targets.begin(), targets.end());
    EXPECT_EQ(distinct.size(), targets.size());
    RecordProperty("targets", ::testing::PrintToString(targets));
}

/// The variable may be read once a process, so that each of these has one.
class CpuTargetsDeathTest : public ::testing::Test {
   protected:
    CpuTargetsDeathTest() {
        GTEST_FLAG_SET(death_test_style, "threadsafe");
    }
};

[[noreturn]] void exitWithTarget(const char* variable, const char* wanted) {
    variable ? setenv(kTargetVariable, variable, 1) : unsetenv(kTargetVariable);
    const auto plan = cpu::planKnn(shape(100, 1000, 16, 10));
    std::_Exit(plan.target == wanted ? 0 : 1);
}

TEST_F(CpuTargetsDeathTest, BestWithoutTheVariable) {
    const auto best = cpu::targetNames().front();
    EXPECT_EXIT(
            exitWithTarget(nullptr, best.c_str()),
            ::testing::ExitedWithCode(0),
            "");
    EXPECT_EXIT(
            exitWithTarget("", best.c_str()), ::testing::ExitedWithCode(0), "");
}

TEST_F(CpuTargetsDeathTest, TheVariableStandsInForAnEmptyTarget) {
    const auto targets = cpu::targetNames();
    for (const auto& target : {targets.front(), targets.back()}) {
        EXPECT_EXIT(
                exitWithTarget(target.c_str(), target.c_str()),
                ::testing::ExitedWithCode(0),
                "");
    }
}

[[noreturn]] void exitAfterForcing(const std::string& target) {
    setenv(kTargetVariable, "Z80", 1);
    auto p = shape(100, 1000, 16, 10);
    p.choice.target = target;
    const bool forced = cpu::planKnn(p).target == target;
    p.choice.target = "";
    const bool thrown =
            throwsNaming([&] { (void)cpu::planKnn(p); }, kTargetVariable, "Z80")
            ? true
            : false;
    std::_Exit(forced ? (thrown ? 0 : 1) : 2);
}

/// What a caller forces goes first; an unknown one is an error that names the
/// variable.
TEST_F(CpuTargetsDeathTest, UnknownInTheVariable) {
    EXPECT_EXIT(
            exitAfterForcing(cpu::targetNames().back()),
            ::testing::ExitedWithCode(0),
            "");
}

} // namespace
} // namespace faiss_bits::test
