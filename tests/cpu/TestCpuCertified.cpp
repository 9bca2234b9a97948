/// Certified searches: every place and every bit is the oracle's, whatever the
/// data, the variant, the instruction set, the blocks and the threads are.

#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cpu/CpuHarness.h"

namespace faiss_bits::test {
namespace {

class CpuCertified : public ::testing::TestWithParam<Metric> {};

const double kPowers[] = {1, 2, 3, 0.5, 2.5, 1.3, 7.7};

template <class T>
void expectCanonical(
        const CpuCase& c,
        const std::vector<cpu::Choice>& choices) {
    const CpuData<T> data(c);
    const CpuResult<T> expected = data.canonicalResult();
    int threads = 1;
    for (const cpu::Choice& choice : choices) {
        SCOPED_TRACE(describe(choice, threads));
        ASSERT_TRUE(data.checkCanonical(data.run(choice, threads), expected));
        threads = threads % 4 + 1;
    }
}

std::vector<cpu::Choice> allChoices(Metric metric) {
    std::vector<cpu::Choice> choices;
    for (const cpu::Variant variant : variantsOf(metric)) {
        for (const cpu::Choice& choice : choicesOf(variant)) {
            choices.push_back(choice);
        }
    }
    return choices;
}

TEST_P(CpuCertified, EveryPlaceOfEveryContents) {
    const std::vector<cpu::Choice> choices = allChoices(GetParam());
    forBothTypes([&](auto zero) {
        using T = decltype(zero);
        int step = 0;
        for (const Contents contents : kAllContents) {
            for (const int64_t k : {1, 10, 100}) {
                CpuCase c;
                c.mode = SearchMode::Certified;
                c.metric = GetParam();
                c.metricArg = kPowers[step % std::size(kPowers)];
                c.contents = contents;
                c.q = std::vector<int64_t>{3, 14, 1, 29}[step % 4];
                c.n = k == 100 ? 400 : 150;
                c.d = std::vector<int>{5, 16, 1, 3, 33, 8, 70}[step % 7];
                c.k = k;
                c.vectorGap = step % 3;
                c.pickQueries = step % 4 == 1;
                c.pickVectors = step % 3 == 1;
                c.repeatVectors = step % 2;
                c.seed = ++step;
                ASSERT_NO_FATAL_FAILURE(expectCanonical<T>(c, choices));
            }
        }
    });
}

TEST_P(CpuCertified, EveryNumberOfNeighbours) {
    const int64_t n = 90;
    for (int64_t k = 1; k <= n + 3; k += k < 12 || k > n - 14 ? 1 : 7) {
        for (const Contents contents :
             {Contents::Uniform, Contents::FewDistinct, Contents::Far}) {
            CpuCase c;
            c.mode = SearchMode::Certified;
            c.metric = GetParam();
            c.metricArg = 3;
            c.contents = contents;
            c.q = 7;
            c.n = n;
            c.k = k;
            c.seed = uint32_t(k);
            ASSERT_NO_FATAL_FAILURE(expectCanonical<float>(
                    c, choicesOf(cpu::Variant::Buffered)));
            ASSERT_NO_FATAL_FAILURE(
                    expectCanonical<float>(c, choicesOf(cpu::Variant::Var6)));
        }
    }
}

/// Of so many vectors that hundreds may be near the last place, and of rows
/// that are whole pages.
TEST_P(CpuCertified, ManyNeighbours) {
    for (const int64_t n : {600, 1024}) {
        for (const Contents contents :
             {Contents::Uniform, Contents::FewDistinct, Contents::Far}) {
            CpuCase c;
            c.mode = SearchMode::Certified;
            c.metric = GetParam();
            c.metricArg = 3;
            c.contents = contents;
            c.q = 5;
            c.n = n;
            c.d = 3;
            c.k = n / 3;
            c.seed = uint32_t(n);
            ASSERT_NO_FATAL_FAILURE(
                    expectCanonical<float>(c, choicesOf(cpu::Variant::Var6)));
            ASSERT_NO_FATAL_FAILURE(
                    expectCanonical<double>(c, choicesOf(cpu::Variant::Var6)));
        }
    }
}

TEST_P(CpuCertified, EveryNumberOfDimensions) {
    for (int d = 1; d <= 40; d += d < 20 ? 1 : 5) {
        CpuCase c;
        c.mode = SearchMode::Certified;
        c.metric = GetParam();
        c.metricArg = 1.5;
        c.contents = d % 3 ? Contents::Uniform : Contents::Duplicates;
        c.q = 2 + d % 5;
        c.n = 200;
        c.d = d;
        c.seed = uint32_t(d);
        ASSERT_NO_FATAL_FAILURE(
                expectCanonical<float>(c, choicesOf(cpu::Variant::Auto)));
        ASSERT_NO_FATAL_FAILURE(
                expectCanonical<double>(c, choicesOf(cpu::Variant::Auto)));
    }
}

TEST_P(CpuCertified, BlocksDoNotMatter) {
    CpuCase c;
    c.mode = SearchMode::Certified;
    c.metric = GetParam();
    c.contents = Contents::Duplicates;
    c.q = 60;
    c.n = 700;
    c.d = 40;
    c.k = 20;
    std::vector<cpu::Choice> choices;
    for (const cpu::Variant variant : variantsOf(c.metric)) {
        for (const int block : {1, 16, 100}) {
            cpu::Choice choice;
            choice.variant = variant;
            choice.queryBlock = block;
            choice.vectorBlock = 2 * block;
            choice.depthBlock = block;
            choices.push_back(choice);
        }
    }
    expectCanonical<float>(c, choices);
    c.contents = Contents::Uniform;
    expectCanonical<double>(c, choices);
}

/// So many vectors and candidates that rows are rescored together, a piece of
/// the vectors at a time.
TEST_P(CpuCertified, PiecesOfTheVectorsDoNotMatter) {
    for (const Contents contents :
         {Contents::Uniform, Contents::FewDistinct, Contents::Far}) {
        CpuCase c;
        c.mode = SearchMode::Certified;
        c.metric = GetParam();
        c.metricArg = 3;
        c.contents = contents;
        c.q = 37;
        c.n = 2100;
        c.d = 131; // 1 MiB
        c.k = 150;
        c.pickVectors = contents == Contents::Uniform;
        const CpuData<float> data(c);
        const CpuResult<float> expected = data.canonicalResult();
        for (const std::string& target : cpu::targetNames()) {
            cpu::Choice choice;
            choice.target = target;
            for (const int threads : {1, 2, 3}) {
                SCOPED_TRACE(describe(choice, threads));
                ASSERT_TRUE(data.checkCanonical(
                        data.run(choice, threads), expected));
            }
        }
    }
}

/// Heaps of few neighbours have a limit that is a little above the root, and
/// keep what is between in few places behind.
TEST_P(CpuCertified, FewNeighbours) {
    for (const Contents contents : kAllContents) {
        for (const int64_t k : {1, 2, 5}) {
            for (const int64_t n : {1, 2, 3, 4, 5, 8, 9, 40, 1000}) {
                CpuCase c;
                c.mode = SearchMode::Certified;
                c.metric = GetParam();
                c.metricArg = 2.5;
                c.contents = contents;
                c.q = 17;
                c.n = n;
                c.d = n % 2 ? 9 : 100;
                c.k = k;
                c.seed = uint32_t(n + k);
                ASSERT_NO_FATAL_FAILURE(expectCanonical<float>(
                        c, choicesOf(cpu::Variant::Auto)));
                ASSERT_NO_FATAL_FAILURE(expectCanonical<float>(
                        c, choicesOf(cpu::Variant::Var1)));
                ASSERT_NO_FATAL_FAILURE(expectCanonical<double>(
                        c, choicesOf(cpu::Variant::Var1)));
            }
        }
    }
}

TEST_P(CpuCertified, AnyBatchHasTheSameBits) {
    CpuCase c;
    c.mode = SearchMode::Certified;
    c.metric = GetParam();
    c.contents = Contents::Far;
    c.q = 130;
    c.n = 300;
    c.d = 20;
    const CpuData<float> data(c);
    const CpuResult<float> expected = data.canonicalResult();
    for (const idx_t batch : {1, 2, 3, 4, 5, 12, 13, 64, 130}) {
        CpuResult<float> result;
        for (idx_t begin = 0; begin < c.q; begin += batch) {
            auto problem = data.problem({}, 1 + int(batch % 3));
            problem.queries = data.queries().row(begin);
            problem.numQueries = std::min<idx_t>(batch, c.q - begin);
            const auto part = data.run(problem);
            result.distances.insert(
                    result.distances.end(),
                    part.distances.begin(),
                    part.distances.end());
            result.ids.insert(
                    result.ids.end(), part.ids.begin(), part.ids.end());
        }
        ASSERT_TRUE(data.checkCanonical(result, expected)) << batch;
    }
}

INSTANTIATE_TEST_SUITE_P(
        Metrics,
        CpuCertified,
        ::testing::ValuesIn(allMetrics()),
        ::testing::PrintToStringParamName());

SearchStats statsOf(const CpuCase& c) {
    const CpuData<float> data(c);
    SearchStats stats;
    auto problem = data.problem({}, 2);
    problem.stats = &stats;
    const auto result = data.run(problem);
    EXPECT_TRUE(data.checkCanonical(result, data.canonicalResult()));
    return stats;
}

TEST(CpuCertifiedStats, CountEveryQueryOnce) {
    CpuCase c;
    c.mode = SearchMode::Certified;
    c.n = 2000;
    c.d = 16;
    for (const int64_t q : {1, 20}) {
        c.q = q;
        c.contents = Contents::Uniform;
        SearchStats stats = statsOf(c);
        EXPECT_EQ(stats.certified, q);
        EXPECT_EQ(stats.repeated, 0);
        EXPECT_GE(stats.rescored, q * c.k);
        EXPECT_LE(stats.rescored, q * (2 * c.k + 10));
        // No list of candidates holds 2000 ties.
        c.contents = Contents::Equal;
        stats = statsOf(c);
        EXPECT_EQ(stats.certified, 0);
        EXPECT_EQ(stats.repeated, q);
    }
    // All vectors are candidates: nothing is left to prove.
    c.n = 15;
    EXPECT_EQ(statsOf(c).certified, c.q);
}

TEST(CpuCertifiedStats, AreAddedTo) {
    CpuCase c;
    c.mode = SearchMode::Certified;
    const CpuData<float> data(c);
    SearchStats stats;
    for (int times = 1; times < 4; ++times) {
        auto problem = data.problem({}, 1);
        problem.stats = &stats;
        data.run(problem);
        EXPECT_EQ(stats.certified + stats.repeated, times * c.q);
    }
}

TEST(CpuCertifiedInterrupt, IsAskedInScansOfAllVectors) {
    CpuCase c;
    c.mode = SearchMode::Certified;
    c.contents = Contents::Equal;
    c.q = 500;
    c.n = 4000;
    c.d = 64;
    const CpuData<float> data(c);
    const auto countCalls = [&](SearchMode mode) {
        int calls = 0;
        auto problem = data.problem({}, 2);
        problem.mode = mode;
        problem.interrupt = [&] { ++calls; };
        data.run(problem);
        return calls;
    };
    EXPECT_GT(countCalls(SearchMode::Certified), countCalls(SearchMode::Plain));
    auto problem = data.problem({}, 2);
    problem.interrupt = [] { throw std::runtime_error("enough"); };
    EXPECT_THROW(data.run(problem), std::runtime_error);
}

} // namespace
} // namespace faiss_bits::test
