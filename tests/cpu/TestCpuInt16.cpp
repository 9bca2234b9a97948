/// Certified searches with candidates by 16-bit integers are the oracle's in
/// every bit, whatever the data and the blocks are.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/CanonicalTypes.h"
#include "kernels/cpu/Int16.h"
#include "tests/common/ExpectError.h"
#include "tests/cpu/ArithmeticCases.h"
#include "tests/cpu/Int16Choices.h"

namespace faiss_bits::test {
namespace {

class CpuInt16 : public ::testing::TestWithParam<Metric> {
   protected:
    CpuCase newCase() const {
        return certifiedCase(GetParam());
    }
};

TEST_P(CpuInt16, EveryPlaceOfEveryContents) {
    checkEveryContents(
            GetParam(), {5, 16, 1, 3, 33, 8, 70, 129}, int16ChoicesOf);
}

TEST_P(CpuInt16, EveryNumberOfDimensions) {
    for (int d = 1; d <= 70; d += d < 40 ? 1 : 5) {
        ASSERT_NO_FATAL_FAILURE(checkDimensions(GetParam(), d, int16ChoicesOf));
    }
}

TEST_P(CpuInt16, BlocksDoNotMatter) {
    checkBlocks(GetParam(), 77, 20, int16ChoicesOf);
}

/// Searches for which it is chosen: whatever is chosen has the same bits.
TEST_P(CpuInt16, ChosenByTheShape) {
    for (const int64_t k : {1, 7, 40, 300}) {
        CpuCase c = newCase();
        c.contents = Contents::Uniform;
        c.q = 150;
        c.n = 900;
        c.d = 96;
        c.k = k;
        const CpuData<float> data(c);
        const CpuResult<float> expected = data.canonicalResult();
        for (const std::string& target : cpu::targetNames()) {
            cpu::Choice choice;
            choice.target = target;
            const bool has = bool(cpu::int16KernelsFor(cpu::targetOf(target)));
            const auto problem = data.problem(choice, 1);
            EXPECT_EQ(
                    cpu::isForInt16(
                            cpu::checkProblem<float>(problem, true), problem),
                    has);
            for (const int threads : {1, 3}) {
                ASSERT_TRUE(data.checkCanonical(
                        data.run(choice, threads), expected))
                        << describe(choice, threads);
            }
            choice.arithmetic = cpu::Arithmetic::Components;
            ASSERT_TRUE(data.checkCanonical(data.run(choice, 2), expected));
        }
    }
}

TEST_P(CpuInt16, NotChosenWherePackingTakesMore) {
    struct Shape {
        int64_t q, n;
        int d;
        bool anywhere, onIntel;
    };
    for (const Shape& shape : {
                 Shape{63, 9000, 128, false, false},
                 Shape{64, 9000, 128, true, false},
                 Shape{113, 9000, 128, true, true},
                 Shape{1000, 64, 128, false, false},
                 Shape{1000, 512, 64, true, true},
                 Shape{127, 9000, 64, true, false},
                 Shape{128, 9000, 64, true, true},
                 Shape{799, 9000, 16, true, false},
                 Shape{800, 9000, 16, true, true},
                 Shape{1000, 9000, 15, false, false},
         }) {
        CpuCase c = newCase();
        c.q = shape.q;
        c.n = shape.n;
        c.d = shape.d;
        const CpuData<float> data(c);
        for (const std::string& target : cpu::targetNames()) {
            cpu::Choice choice;
            choice.target = target;
            const int64_t number = cpu::targetOf(target);
            const auto problem = data.problem(choice, 1);
            const auto setup = cpu::checkProblem<float>(problem, true);
            const bool packsSlowly =
                    cpu::canonicalKernelsFor<float>(setup.metric, number)
                            .prefersAllPairs;
            EXPECT_EQ(
                    cpu::isForInt16(setup, problem),
                    cpu::int16KernelsFor(number) &&
                            (packsSlowly ? shape.onIntel : shape.anywhere))
                    << shape.q << " " << shape.n << " " << shape.d << " "
                    << target;
        }
    }
}

TEST_P(CpuInt16, OneVectorUnlikeTheOthers) {
    checkOneUnlikeTheOthers(GetParam(), int16ChoicesOf);
}

INSTANTIATE_TEST_SUITE_P(
        Metrics,
        CpuInt16,
        ::testing::Values(Metric::L2, Metric::InnerProduct),
        ::testing::PrintToStringParamName());

SearchStats statsOf(const CpuCase& c, cpu::Arithmetic arithmetic) {
    const CpuData<float> data(c);
    SearchStats stats;
    cpu::Choice choice;
    choice.arithmetic = arithmetic;
    auto problem = data.problem(choice, 2);
    problem.stats = &stats;
    EXPECT_TRUE(data.checkCanonical(data.run(problem), data.canonicalResult()));
    return stats;
}

#if defined(__x86_64__)
/// Without a target the tests above would have nothing to look at.
TEST(CpuInt16Targets, ProcessorsWithAvx2HaveOne) {
    if (__builtin_cpu_supports("avx2")) {
        for (const cpu::Variant variant : kPacked) {
            EXPECT_FALSE(int16ChoicesOf(variant).empty());
        }
    }
}
#endif

TEST(CpuInt16Stats, CandidatesAreMostlyEnough) {
    if (int16ChoicesOf(cpu::Variant::Auto).empty()) {
        GTEST_SKIP() << "no target has integers of 16 bits";
    }
    CpuCase c;
    c.mode = SearchMode::Certified;
    c.contents = Contents::Uniform;
    c.q = 200;
    c.n = 2000;
    c.d = 128;
    for (const int64_t k : {1, 10, 200}) {
        c.k = k;
        const SearchStats stats = statsOf(c, cpu::Arithmetic::Int16);
        EXPECT_GE(stats.certified, c.q * 95 / 100) << k;
        EXPECT_EQ(stats.certified + stats.repeated, c.q);
        EXPECT_GE(stats.rescored, c.q * k);
        EXPECT_LE(stats.rescored, c.q * (k + k / 3 + 6)) << k;
    }
    // 100 +- 1 / 16: what rounding leaves of 100 is as much as what differs.
    c.contents = Contents::Far;
    c.k = 10;
    const SearchStats stats = statsOf(c, cpu::Arithmetic::Int16);
    EXPECT_EQ(stats.certified, 0);
    EXPECT_EQ(stats.repeated, c.q);
}

TEST(CpuInt16Arguments, WhereItCannotBe) {
    CpuCase c;
    c.mode = SearchMode::Certified;
    const auto expectNot = [](auto problem) {
        problem.choice.arithmetic = cpu::Arithmetic::Int16;
        EXPECT_TRUE(throwsNaming(
                [&] { cpu::planKnn(problem); }, "choice.arithmetic", "int16"));
    };
    expectNot(CpuData<double>(c).problem({}, 1));
    auto problem = CpuData<float>(c).problem({}, 1);
    problem.mode = SearchMode::Plain;
    expectNot(problem);
    problem = CpuData<float>(c).problem({}, 1);
    problem.choice.variant = cpu::Variant::Direct;
    expectNot(problem);
    problem.choice.variant = cpu::Variant::Auto;
    problem.d = (1 << 16) + 1;
    expectNot(problem);
    problem.d = 8;
    for (const Metric metric :
         {Metric::L1, Metric::Linf, Metric::Cosine, Metric::Lp}) {
        problem.metric = metric;
        expectNot(problem);
    }
    problem.metric = Metric::L2;
    for (const std::string& target : cpu::targetNames()) {
        if (!cpu::int16KernelsFor(cpu::targetOf(target))) {
            problem.choice.target = target;
            expectNot(problem);
        }
    }
    problem.choice = {};
    problem.choice.arithmetic = cpu::Arithmetic(7);
    EXPECT_TRUE(throwsNaming(
            [&] { cpu::planKnn(problem); }, "choice.arithmetic", "7"));
    const CpuData<float> data(c);
    cpu::Choice choice;
    choice.arithmetic = cpu::Arithmetic::Int16;
    EXPECT_TRUE(throwsNaming(
            [&] { data.runRange(1, choice); }, "choice.arithmetic", "int16"));
}

} // namespace
} // namespace faiss_bits::test
