/// Certified searches of all pairs row by row are the oracle's in every bit, on
/// every target, and are chosen for few vectors.

#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/AllPairs.h"
#include "tests/common/ExpectError.h"
#include "tests/cpu/ArithmeticCases.h"

namespace faiss_bits::test {
namespace {

/// Choices that are forced to rows, whatever the variant.
std::vector<cpu::Choice> rowChoicesOf(cpu::Variant) {
    std::vector<cpu::Choice> choices = choicesOf(cpu::Variant::Direct);
    for (cpu::Choice& choice : choices) {
        choice.arithmetic = cpu::Arithmetic::Doubles;
    }
    return choices;
}

class CpuPairsByRows : public ::testing::TestWithParam<Metric> {
   protected:
    CpuCase newCase() const {
        return certifiedCase(GetParam());
    }

    /// The way of a search of k = 5 that nothing is forced in.
    cpu::AllPairs wayOf(
            idx_t q,
            idx_t n,
            int d,
            const cpu::Choice& choice,
            int threads = 1) const {
        cpu::KnnProblem<float> problem;
        problem.metric = GetParam();
        problem.numQueries = q;
        problem.numVectors = n;
        problem.d = d;
        problem.k = 5;
        problem.choice = choice;
        problem.threads = threads;
        const auto setup = cpu::checkProblem<float>(problem, true);
        return cpu::allPairsFor(setup, problem, problem.k, true);
    }
};

TEST_P(CpuPairsByRows, EveryPlaceOfEveryContents) {
    checkEveryContents(GetParam(), {5, 16, 1, 3, 17, 65, 8, 40}, rowChoicesOf);
}

TEST_P(CpuPairsByRows, EveryNumberOfDimensions) {
    for (int d = 1; d <= 130; d += d < 35 ? 1 : 13) {
        ASSERT_NO_FATAL_FAILURE(checkDimensions(GetParam(), d, rowChoicesOf));
    }
}

/// Groups of queries and of vectors that are whole, or leave one, two or three;
/// one neighbour, some, all, and more than there are.
TEST_P(CpuPairsByRows, EveryNumberOfQueriesAndVectors) {
    CpuCase c = newCase();
    c.d = 19;
    for (const Contents contents : kAllContents) {
        c.contents = contents;
        for (const int64_t q : {1, 2, 3, 4, 5, 7, 8, 9, 17, 35}) {
            for (const int64_t n : {1, 2, 3, 4, 5, 16, 17, 33, 47}) {
                c.q = q;
                c.n = n;
                c.k = std::vector<int64_t>{1, 4, n, n + 3}[(q + n) % 4];
                c.seed = uint32_t(100 * q + n);
                c.pickQueries = q % 3 == 1;
                c.pickVectors = n % 3 == 1;
                c.vectorGap = n % 2;
                const CpuData<float> data(c);
                const CpuResult<float> expected = data.canonicalResult();
                for (const cpu::Choice& choice :
                     rowChoicesOf(cpu::Variant::Auto)) {
                    for (const int threads : {1, 3}) {
                        ASSERT_TRUE(data.checkCanonical(
                                data.run(choice, threads), expected))
                                << describe(choice, threads);
                    }
                }
            }
        }
    }
}

TEST_P(CpuPairsByRows, OneVectorUnlikeTheOthers) {
    checkOneUnlikeTheOthers(GetParam(), rowChoicesOf);
}

/// At both sides of each edge: the most vectors for some queries, and the most
/// components.
TEST_P(CpuPairsByRows, ChosenForFewVectors) {
    const bool isProduct = GetParam() == Metric::InnerProduct;
    struct Edge {
        idx_t q, ofL2, ofProduct; ///< the most vectors
    };
    for (const Edge& edge :
         {Edge{1, 400, 500},
          Edge{2, 400, 500},
          Edge{3, 365, 645},
          Edge{4, 282, 495},
          Edge{7, 174, 302},
          Edge{8, 157, 270},
          Edge{20, 82, 135},
          Edge{300, 35, 51},
          Edge{100000, 32, 45}}) {
        const idx_t most = isProduct ? edge.ofProduct : edge.ofL2;
        for (const cpu::Choice& choice : choicesOf(cpu::Variant::Auto)) {
            cpu::KnnProblem<float> problem;
            problem.d = 1;
            problem.choice = choice;
            const bool pays =
                    cpu::checkProblem<float>(problem, true).common.lanes >= 8;
            for (const int threads : {1, 2, 64}) {
                for (const idx_t n : {idx_t(1), most, most + 1}) {
                    EXPECT_EQ(
                            wayOf(edge.q, n, 16, choice, threads) ==
                                    cpu::AllPairs::Rows,
                            pays && n <= most)
                            << edge.q << " queries, n = " << n << " "
                            << describe(choice, threads);
                }
            }
        }
    }
    struct Depth {
        idx_t q, n;
        int ofL2, ofProduct; ///< the most components
    };
    for (const Depth& edge :
         {Depth{1, 100, 480, 1200},
          Depth{2, 100, 480, 1200},
          Depth{4, 250, 1000, 1000},
          Depth{7, 125, 1142, 1142}}) {
        const int most = isProduct ? edge.ofProduct : edge.ofL2;
        const auto isRows = [&](int d) {
            return wayOf(edge.q, edge.n, d, {}) == cpu::AllPairs::Rows;
        };
        const bool pays = isRows(16); // with registers of 256 bits
        EXPECT_EQ(isRows(most), pays) << edge.q << " " << most;
        EXPECT_FALSE(isRows(most + 1)) << edge.q << " " << most;
    }
    // From eight queries on half as many vectors of fewer than 8 components.
    const idx_t half = isProduct ? 25 : 17;
    const auto isShortRows = [&](idx_t q, idx_t n, int d) {
        return wayOf(q, n, d, {}) == cpu::AllPairs::Rows;
    };
    const bool hasRows = isShortRows(1, 1, 1); // by registers of 256 bits
    EXPECT_EQ(isShortRows(300, half, 7), hasRows);
    EXPECT_FALSE(isShortRows(300, half + 1, 7));
    EXPECT_EQ(isShortRows(300, half + 1, 8), hasRows);
    EXPECT_EQ(isShortRows(7, 150, 7), hasRows);
    EXPECT_FALSE(isShortRows(8, 150, 7));
    // From eight queries on threads share them, whatever the components are.
    EXPECT_EQ(
            wayOf(8, 150, 100000, {}) == cpu::AllPairs::Rows,
            wayOf(8, 150, 16, {}) == cpu::AllPairs::Rows);
}

/// Not where a variant, or what finds candidates, is forced, nor of what has no
/// such kernels.
TEST_P(CpuPairsByRows, NotWhereSomethingElseIsAskedFor) {
    for (const cpu::Variant variant :
         {cpu::Variant::Buffered, cpu::Variant::Var1, cpu::Variant::Direct}) {
        for (const cpu::Choice& choice : choicesOf(variant)) {
            EXPECT_NE(wayOf(3, 20, 8, choice), cpu::AllPairs::Rows);
        }
    }
    cpu::Choice components;
    components.arithmetic = cpu::Arithmetic::Components;
    EXPECT_EQ(wayOf(3, 20, 8, components), cpu::AllPairs::None);
    cpu::KnnProblem<float> problem;
    problem.numQueries = 3;
    problem.numVectors = 20;
    problem.d = 8;
    problem.k = 5;
    problem.metric = GetParam();
    const auto way = [&] {
        const auto setup = cpu::checkProblem<float>(problem, true);
        return cpu::allPairsFor(setup, problem, problem.k, true);
    };
    problem.mode = SearchMode::Plain;
    EXPECT_EQ(way(), cpu::AllPairs::None);
    problem.mode = SearchMode::Certified;
    for (const Metric metric : {Metric::Cosine, Metric::L1, Metric::Lp}) {
        problem.metric = metric;
        EXPECT_EQ(way(), cpu::AllPairs::None);
    }
}

TEST_P(CpuPairsByRows, SaidInThePlan) {
    cpu::KnnProblem<float> problem;
    problem.metric = GetParam();
    problem.numQueries = 30;
    problem.numVectors = 20;
    problem.d = 8;
    problem.k = 5;
    problem.choice.variant = cpu::Variant::Direct;
    problem.choice.arithmetic = cpu::Arithmetic::Doubles;
    const cpu::Plan plan = cpu::planKnn(problem);
    EXPECT_EQ(plan.variant, cpu::Variant::Direct);
    EXPECT_TRUE(plan.byDoubles);
    EXPECT_EQ(toString(plan).find("direct doubles"), 0u) << toString(plan);
    problem.numVectors = idx_t(1) << 20;
    EXPECT_TRUE(cpu::planKnn(problem).byDoubles);
    problem.numVectors += 1;
    EXPECT_TRUE(
            throwsNaming([&] { cpu::planKnn(problem); }, "doubles", "1048577"));
}

/// All queries are certified, and no distance counts as rescored.
TEST_P(CpuPairsByRows, Counted) {
    CpuCase c = newCase();
    c.q = 11;
    c.n = 20;
    c.d = 8;
    const CpuData<float> data(c);
    for (const cpu::Choice& choice : rowChoicesOf(cpu::Variant::Auto)) {
        auto problem = data.problem(choice, 1);
        SearchStats stats;
        problem.stats = &stats;
        CpuData<float>::run(problem);
        EXPECT_EQ(stats.certified, 11);
        EXPECT_EQ(stats.repeated, 0);
        EXPECT_EQ(stats.rescored, 0);
    }
}

INSTANTIATE_TEST_SUITE_P(
        Metrics,
        CpuPairsByRows,
        ::testing::Values(Metric::L2, Metric::InnerProduct),
        ::testing::PrintToStringParamName());

} // namespace
} // namespace faiss_bits::test
