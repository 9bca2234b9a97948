/// Candidates by 16-bit integers: the bounds of what rounding leaves hold, and
/// certified searches that rest on them are the oracle's in every bit.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/ErrorBound.h"
#include "kernels/cpu/Int16.h"
#include "kernels/cpu/Run.h"
#include "kernels/cpu/SearchPlan.h"
#include "tests/common/ExpectError.h"
#include "tests/cpu/CpuHarness.h"

namespace faiss_bits::test {
namespace {

/// Choices of a variant that are forced to integers, on every target that has
/// them: all but SCALAR on x86.
std::vector<cpu::Choice> int16ChoicesOf(cpu::Variant variant) {
    std::vector<cpu::Choice> choices;
    for (cpu::Choice choice : choicesOf(variant)) {
        if (cpu::int16KernelsFor(cpu::targetOf(choice.target))) {
            choice.arithmetic = cpu::Arithmetic::Int16;
            choices.push_back(choice);
        }
    }
    return choices;
}

const cpu::Variant kPacked[] = {
        cpu::Variant::Auto,
        cpu::Variant::Buffered,
        cpu::Variant::Var1,
        cpu::Variant::Var5,
        cpu::Variant::Var6};

class CpuInt16 : public ::testing::TestWithParam<Metric> {
   protected:
    CpuCase newCase() const {
        CpuCase c;
        c.mode = SearchMode::Certified;
        c.metric = GetParam();
        return c;
    }
};

TEST_P(CpuInt16, EveryPlaceOfEveryContents) {
    int step = 0;
    for (const Contents contents : kAllContents) {
        for (const int64_t k : {1, 10, 100, 500}) {
            CpuCase c = newCase();
            c.contents = contents;
            c.q = std::vector<int64_t>{3, 14, 1, 29}[step % 4];
            c.n = k >= 100 ? 400 : 150;
            c.d = std::vector<int>{5, 16, 1, 3, 33, 8, 70, 129}[step % 8];
            c.k = k;
            c.vectorGap = step % 3;
            c.pickQueries = step % 4 == 1;
            c.pickVectors = step % 3 == 1;
            c.repeatVectors = step % 2;
            c.seed = ++step;
            const CpuData<float> data(c);
            const CpuResult<float> expected = data.canonicalResult();
            int threads = 1;
            for (const cpu::Variant variant : kPacked) {
                for (const cpu::Choice& choice : int16ChoicesOf(variant)) {
                    SCOPED_TRACE(describe(choice, threads));
                    ASSERT_TRUE(data.checkCanonical(
                            data.run(choice, threads), expected));
                    threads = threads % 4 + 1;
                }
            }
        }
    }
}

TEST_P(CpuInt16, EveryNumberOfDimensions) {
    for (int d = 1; d <= 70; d += d < 40 ? 1 : 5) {
        CpuCase c = newCase();
        c.contents = d % 3 ? Contents::Uniform : Contents::Far;
        c.q = 2 + d % 25;
        c.n = 200;
        c.d = d;
        c.seed = uint32_t(d);
        const CpuData<float> data(c);
        const CpuResult<float> expected = data.canonicalResult();
        for (const cpu::Choice& choice :
             int16ChoicesOf(cpu::Variant::Buffered)) {
            SCOPED_TRACE(describe(choice, 1));
            ASSERT_TRUE(data.checkCanonical(data.run(choice, 1), expected));
        }
    }
}

TEST_P(CpuInt16, BlocksDoNotMatter) {
    CpuCase c = newCase();
    c.contents = Contents::Uniform;
    c.q = 60;
    c.n = 700;
    c.d = 77;
    c.k = 20;
    const CpuData<float> data(c);
    const CpuResult<float> expected = data.canonicalResult();
    for (const cpu::Variant variant : kPacked) {
        for (cpu::Choice choice : int16ChoicesOf(variant)) {
            for (const int block : {1, 2, 16, 39, 100}) {
                choice.queryBlock = block;
                choice.vectorBlock = 2 * block;
                choice.depthBlock = block;
                SCOPED_TRACE(describe(choice, 3));
                ASSERT_TRUE(data.checkCanonical(data.run(choice, 3), expected));
            }
        }
    }
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

/// One vector that integers cannot stand for, or that is far longer than all
/// others, among many that are as usual.
TEST_P(CpuInt16, OneVectorUnlikeTheOthers) {
    const float infinity = std::numeric_limits<float>::infinity();
    for (const float value :
         {infinity,
          -infinity,
          std::numeric_limits<float>::quiet_NaN(),
          3e38f,
          1e20f,
          1e9f,
          -1e5f,
          1e-17f,
          1e-30f,
          1e-44f,
          0.0f}) {
        for (const bool whole : {false, true}) {
            CpuCase c = newCase();
            c.contents = Contents::Uniform;
            c.q = 30;
            c.n = 300;
            c.d = 20;
            CpuData<float> data(c);
            auto problem = data.problem({}, 2);
            std::vector<float> vectors = data.vectors().values;
            std::vector<float> queries = data.queries().values;
            for (float* row : {&vectors[7 * c.d], &queries[9 * c.d]}) {
                std::fill(row, row + (whole ? c.d : 1), value);
            }
            problem.vectors = vectors.data();
            problem.queries = queries.data();
            problem.choice.arithmetic = cpu::Arithmetic::Components;
            const auto expected = CpuData<float>::run(problem);
            for (const cpu::Choice& choice :
                 int16ChoicesOf(cpu::Variant::Auto)) {
                problem.choice = choice;
                const auto result = CpuData<float>::run(problem);
                ASSERT_TRUE(result == expected)
                        << value << (whole ? " whole " : " one ")
                        << choice.target;
            }
        }
    }
}

/// Approximate keys of all pairs, and what the bounds say of them.
class KeyCheck {
   public:
    /// Returns the largest share of the bound that an error takes up; above 1,
    /// or infinite: it is wrong. `known`: pairs of which a bound is known.
    static double worstShare(
            Metric metric,
            const CpuRows<float>& queries,
            const CpuRows<float>& vectors,
            int d,
            const cpu::Choice& choice,
            idx_t& known) {
        cpu::KnnProblem<float> problem;
        problem.metric = metric;
        problem.d = d;
        problem.queries = queries.values.data();
        problem.numQueries = queries.count;
        problem.vectors = vectors.values.data();
        problem.numVectors = problem.k = vectors.count;
        problem.choice = choice;
        std::vector<float> keys(queries.count * vectors.count);
        std::vector<idx_t> ids(keys.size());
        problem.outDistances = keys.data();
        problem.outIds = ids.data();
        cpu::Setup<float> setup = cpu::checkProblem(problem, false);
        cpu::Lengths<float> lengths;
        setup.lengths = &lengths;
        cpu::sweepByInt16(setup);
        const cpu::Plan plan =
                cpu::planSearch(setup, problem, problem.k, false);
        const cpu::KnnOutput<float> out = {
                keys.data(), ids.data(), problem.k, nullptr};
        cpu::runSweep<float>(setup, plan, problem.k, out, nullptr);
        const cpu::ErrorBound<float> bound(setup, false);
        const double sign = faiss_bits::isSimilarity(metric) ? -1 : 1;
        double worst = 0;
        std::vector<double> components(cpu::roundUp(d, 8));
        for (idx_t i = 0; i < queries.count; ++i) {
            cpu::CanonicalQuery query;
            query.components = components.data();
            cpu::canonicalKernelsFor<float>(setup.metric, setup.target)
                    .prepareQuery(queries.row(i), d, query);
            query.rounding = setup.int16.roundingOf(queries.row(i), d);
            std::vector<double> found(
                    vectors.count, std::numeric_limits<double>::quiet_NaN());
            for (idx_t j = 0; j < vectors.count; ++j) {
                const idx_t place = i * vectors.count + j;
                if (ids[place] >= 0) {
                    found[ids[place]] = sign * keys[place];
                }
            }
            for (idx_t v = 0; v < vectors.count; ++v) {
                const float canonical = float(sign) *
                        canonicalDistance(
                                metric, 2.0, queries.row(i), vectors.row(v), d);
                const double reach = bound.reach(canonical, query);
                if (std::isnan(canonical) || !(reach < HUGE_VAL)) {
                    continue;
                }
                ++known;
                if (!(found[v] <= reach)) {
                    return HUGE_VAL;
                }
                worst = std::max(
                        worst,
                        (found[v] - canonical) / (reach - double(canonical)));
            }
        }
        return worst;
    }
};

CpuRows<float> rowsOf(
        int count,
        int d,
        const std::function<float(int row, int p)>& component) {
    CpuRows<float> rows;
    rows.count = count;
    rows.stride = d;
    for (int i = 0; i < count; ++i) {
        for (int p = 0; p < d; ++p) {
            rows.values.push_back(component(i, p));
        }
    }
    return rows;
}

TEST_P(CpuInt16, BoundsHoldForAllContents) {
    double worst = 0;
    for (const Contents contents : kAllContents) {
        idx_t known = 0;
        for (const int d : {1, 2, 7, 16, 65, 300, 3100}) {
            CpuCase c = newCase();
            c.contents = contents;
            c.q = 15;
            c.n = 70;
            c.d = d;
            const CpuData<float> data(c);
            for (const cpu::Choice& choice :
                 int16ChoicesOf(cpu::Variant::Buffered)) {
                const double share = KeyCheck::worstShare(
                        c.metric,
                        data.queries(),
                        data.vectors(),
                        d,
                        choice,
                        known);
                ASSERT_LE(share, 1.0)
                        << c.describe() << " " << describe(choice, 1);
                worst = std::max(worst, share);
            }
        }
        // Of some contents nothing is known: the next sweep is for them.
        const bool none = contents == Contents::Huge ||
                contents == Contents::Denormal ||
                contents == Contents::Infinite || contents == Contents::Mixed;
        EXPECT_TRUE(known > 0 || none || int16ChoicesOf({}).empty())
                << nameOf(contents);
    }
    RecordProperty("worstShare", std::to_string(worst));
}

/// Components half way between integers, all rounded the same way; rows whose
/// integers are as long as they may be, and parallel, so that sums are largest;
/// one component that is all of a row, and one beside thousands of small ones.
TEST_P(CpuInt16, BoundsHoldForRowsMadeToBreakThem) {
    using Component = std::function<float(int, int)>;
    const Component components[] = {
            [](int i, int p) { return p ? 1.0f + 0x1p-13f : 1.0f + i; },
            [](int i, int p) { return (p + i) % 2 ? 1.49998f : -1.50001f; },
            [](int, int) { return 1.9999f; },
            [](int i, int) { return 1 + 0.0137f * float(i); },
            [](int i, int p) { return p ? 0.0f : 32767.49f + float(i); },
            [](int i, int p) { return p ? 0.013f : 1000.0f * float(i); },
            [](int i, int p) { return p == i ? 1e6f : 0.37f; },
            [](int i, int p) { return std::ldexp(1.37f, -(p % 40) - i); },
            [](int i, int) { return std::ldexp(1.1f, i * 4 - 40); },
    };
    for (size_t c = 0; c < std::size(components); ++c) {
        for (const int d : {1, 2, 3, 4, 8, 31, 256, 2049}) {
            const CpuRows<float> rows = rowsOf(20, d, components[c]);
            const CpuRows<float> others = rowsOf(30, d, [&](int i, int p) {
                const float x = components[c](i % 20, p);
                return i < 20 ? -x : 1.25f * x;
            });
            for (const cpu::Choice& choice :
                 int16ChoicesOf(cpu::Variant::Buffered)) {
                for (const auto* vectors : {&rows, &others}) {
                    idx_t known = 0;
                    const double share = KeyCheck::worstShare(
                            GetParam(), rows, *vectors, d, choice, known);
                    ASSERT_LE(share, 1.0) << c << " d=" << d << " "
                                          << describe(choice, 1);
                    EXPECT_GT(known, 0) << c << " d=" << d;
                }
            }
        }
    }
}

/// Rows of small integers stay as they are: nothing is left to doubt.
TEST_P(CpuInt16, SmallIntegersAreExact) {
    std::mt19937 random(3);
    const auto below256 = [&](int, int) { return float(random() % 256); };
    const int d = 128;
    const CpuRows<float> rows = rowsOf(40, d, below256);
    for (const cpu::Choice& choice : int16ChoicesOf(cpu::Variant::Buffered)) {
        const auto kernels =
                cpu::int16KernelsFor(cpu::targetOf(choice.target));
        for (idx_t i = 0; i < rows.count; ++i) {
            EXPECT_LE(kernels.roundingOf(rows.row(i), d), 1e-8);
        }
    }
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
    EXPECT_TRUE(
            data.checkCanonical(data.run(problem), data.canonicalResult()));
    return stats;
}

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
