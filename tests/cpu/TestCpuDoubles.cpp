/// Certified searches by float64 products of all pairs are the oracle's in
/// every bit, on every target, whatever the data and the blocks are.

#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/AllPairs.h"
#include "kernels/cpu/CanonicalTypes.h"
#include "tests/common/ExpectError.h"
#include "tests/cpu/ArithmeticCases.h"

namespace faiss_bits::test {
namespace {

/// Choices of a variant that are forced to products in float64.
std::vector<cpu::Choice> doubleChoicesOf(cpu::Variant variant) {
    std::vector<cpu::Choice> choices = choicesOf(variant);
    for (cpu::Choice& choice : choices) {
        choice.arithmetic = cpu::Arithmetic::Doubles;
    }
    return choices;
}

class CpuDoubles : public ::testing::TestWithParam<Metric> {
   protected:
    CpuCase newCase() const {
        return certifiedCase(GetParam());
    }
};

TEST_P(CpuDoubles, EveryPlaceOfEveryContents) {
    checkEveryContents(
            GetParam(), {5, 16, 1, 3, 17, 65, 8, 40}, doubleChoicesOf);
}

TEST_P(CpuDoubles, EveryNumberOfDimensions) {
    for (int d = 1; d <= 130; d += d < 35 ? 1 : 13) {
        ASSERT_NO_FATAL_FAILURE(
                checkDimensions(GetParam(), d, doubleChoicesOf));
    }
}

TEST_P(CpuDoubles, BlocksDoNotMatter) {
    checkBlocks(GetParam(), 21, 200, doubleChoicesOf);
}

/// Distances that are in the middle of two float32, or the least more or less
/// that components can make them, with more and more that products cancel.
TEST_P(CpuDoubles, NearTheMiddleOfTwoNumbers) {
    for (const float offset : {0.0f, 1.0f, 1000.0f, 65536.0f}) {
        CpuCase c = newCase();
        c.contents = Contents::Uniform;
        c.q = 40;
        c.n = 640;
        c.d = 6;
        c.k = c.n;
        const CpuData<float> data(c);
        auto problem = data.problem({}, 1);
        std::vector<float> vectors(c.n * c.d), queries(c.q * c.d);
        const bool isProduct = c.metric == Metric::InnerProduct;
        for (idx_t i = 0; i < c.q; ++i) {
            float* const q = &queries[i * c.d];
            q[0] = isProduct ? 1 : offset;
            q[1] = isProduct ? 0x1p-12f : 0;
            q[2] = offset;
            q[3] = isProduct ? -offset : offset;
        }
        for (idx_t i = 0; i < c.n; ++i) {
            float* const x = &vectors[i * c.d];
            // 1 + 2^-24 is between two, and so is 1 + 3 2^-24, but for more
            // than 65,536 + 1.
            const float step = 0x1p-12f * (1 + float(i - c.n / 2) * 0x1p-23f);
            x[0] = isProduct ? 1 : offset + 1;
            x[1] = step;
            x[2] = offset;
            x[3] = offset;
        }
        problem.vectors = vectors.data();
        problem.queries = queries.data();
        for (const cpu::Choice& choice : doubleChoicesOf(cpu::Variant::Auto)) {
            problem.choice = choice;
            const auto found = CpuData<float>::run(problem);
            for (idx_t place = 0; place < c.n; ++place) {
                const idx_t id = found.ids[place];
                ASSERT_EQ(
                        found.distances[place],
                        canonicalDistance(
                                c.metric,
                                2.0,
                                queries.data(),
                                vectors.data() + id * c.d,
                                c.d))
                        << choice.target << " offset " << offset << " of "
                        << id;
            }
        }
    }
}

TEST_P(CpuDoubles, OneVectorUnlikeTheOthers) {
    checkOneUnlikeTheOthers(GetParam(), doubleChoicesOf);
}

/// Chosen by shape, where the processor is one that it pays on; the bits are
/// the same in any case.
TEST_P(CpuDoubles, ChosenWhereItPays) {
    CpuCase c = newCase();
    c.contents = Contents::Uniform;
    c.q = 150;
    c.n = 900;
    c.d = 16;
    for (const int64_t k : {1, 225}) {
        c.k = k;
        const CpuData<float> data(c);
        for (const cpu::Choice& choice : choicesOf(cpu::Variant::Auto)) {
            auto problem = data.problem(choice, 1);
            const auto setup = cpu::checkProblem<float>(problem, false);
            const bool isChosen = cpu::allPairsFor(setup, problem, k, false) ==
                    cpu::AllPairs::Doubles;
            const bool isFast =
                    cpu::canonicalKernelsFor<float>(setup.metric, setup.target)
                            .prefersAllPairs;
            EXPECT_EQ(isChosen, isFast && k > 1) << choice.target;
        }
        const CpuResult<float> expected = data.canonicalResult();
        for (const int threads : {1, 3}) {
            ASSERT_TRUE(data.checkCanonical(data.run({}, threads), expected));
        }
    }
}

/// Of few vectors on any processor with registers of 256 bits, whatever the
/// team; not where a variant is forced, and not of so few for the queries that
/// rows are less work (TestCpuPairsByRows.cpp).
TEST_P(CpuDoubles, ChosenForFewVectors) {
    CpuCase c = newCase();
    for (const Contents contents : kAllContents) {
        c.contents = contents;
        c.d = 8;
        for (const int64_t n : {300, 511, 512}) {
            for (const int64_t q : {7, 8, 60}) {
                c.n = n;
                c.q = q;
                c.k = 40;
                const CpuData<float> data(c);
                for (const cpu::Variant variant :
                     {cpu::Variant::Auto, cpu::Variant::Buffered}) {
                    for (const cpu::Choice& choice : choicesOf(variant)) {
                        auto problem = data.problem(choice, 2);
                        const auto setup =
                                cpu::checkProblem<float>(problem, false);
                        const bool isChosen =
                                cpu::allPairsFor(setup, problem, c.k, false) ==
                                cpu::AllPairs::Doubles;
                        // 511 vectors are packed for more than 8 queries.
                        const bool pays =
                                q >= 8 && (n < 511 || (n < 512 && q > 8));
                        EXPECT_EQ(
                                isChosen,
                                pays && setup.common.lanes >= 8 &&
                                        variant == cpu::Variant::Auto)
                                << choice.target << " n=" << n << " q=" << q;
                        ASSERT_TRUE(data.checkCanonical(
                                data.run(choice, 2), data.canonicalResult()));
                    }
                }
            }
        }
    }
}

/// Threads beside each other have candidates up to an eighth of the vectors.
TEST_P(CpuDoubles, ThreadsHaveCandidatesOfFewer) {
    CpuCase c = newCase();
    c.contents = Contents::Uniform;
    c.q = 150;
    c.n = 900;
    c.d = 16;
    for (const int64_t k : {112, 113}) {
        c.k = k;
        const CpuData<float> data(c);
        const CpuResult<float> expected = data.canonicalResult();
        for (const int threads : {1, 3}) {
            for (const cpu::Choice& choice : choicesOf(cpu::Variant::Auto)) {
                auto problem = data.problem(choice, threads);
                const auto setup = cpu::checkProblem<float>(problem, false);
                const bool isFast = cpu::canonicalKernelsFor<float>(
                                            setup.metric, setup.target)
                                            .prefersAllPairs;
                EXPECT_EQ(
                        cpu::allPairsFor(setup, problem, k, false) ==
                                cpu::AllPairs::Doubles,
                        isFast && (threads == 1 || k == 113))
                        << choice.target << " " << threads << " threads";
            }
            ASSERT_TRUE(data.checkCanonical(data.run({}, threads), expected));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
        Metrics,
        CpuDoubles,
        ::testing::Values(Metric::L2, Metric::InnerProduct),
        ::testing::PrintToStringParamName());

TEST(CpuDoublesArguments, WhereItCannotBe) {
    CpuCase c;
    c.mode = SearchMode::Certified;
    const auto expectNot = [](auto problem) {
        problem.choice.arithmetic = cpu::Arithmetic::Doubles;
        EXPECT_TRUE(throwsNaming(
                [&] { cpu::planKnn(problem); },
                "choice.arithmetic",
                "doubles"));
        problem.numQueries = 0; // there is nothing to do, but no less wrong
        EXPECT_TRUE(throwsNaming(
                [&] { cpu::runKnn(problem); }, "choice.arithmetic", "doubles"));
    };
    expectNot(CpuData<double>(c).problem({}, 1));
    auto problem = CpuData<float>(c).problem({}, 1);
    problem.mode = SearchMode::Plain;
    expectNot(problem);
    problem = CpuData<float>(c).problem({}, 1);
    problem.metric = Metric::Cosine;
    expectNot(problem);
    problem.choice.variant = cpu::Variant::Direct;
    expectNot(problem);
    const CpuData<float> data(c);
    cpu::Choice choice;
    choice.arithmetic = cpu::Arithmetic::Doubles;
    EXPECT_TRUE(throwsNaming(
            [&] { data.runRange(1, choice); }, "choice.arithmetic", "doubles"));
}

} // namespace
} // namespace faiss_bits::test
