/// Certified searches by matrix instructions on bytes are the oracle's in every
/// bit, whatever the data and the blocks are. Skipped where the processor has
/// no such instructions.

#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/Bytes.h"
#include "tests/common/ExpectError.h"
#include "tests/cpu/ArithmeticCases.h"

namespace faiss_bits::test {
namespace {

/// Choices of a variant that are forced to bytes, on targets that have them.
std::vector<cpu::Choice> byteChoicesOf(cpu::Variant variant) {
    std::vector<cpu::Choice> choices;
    for (cpu::Choice choice : choicesOf(variant)) {
        if (cpu::byteKernelsFor(cpu::targetOf(choice.target))) {
            choice.arithmetic = cpu::Arithmetic::Bytes;
            choices.push_back(choice);
        }
    }
    return choices;
}

class CpuBytes : public ::testing::TestWithParam<Metric> {
   protected:
    void SetUp() override {
        if (byteChoicesOf(cpu::Variant::Auto).empty()) {
            GTEST_SKIP() << "no matrix instructions on bytes here";
        }
    }
    CpuCase newCase() const {
        return certifiedCase(GetParam());
    }
};

TEST_P(CpuBytes, EveryPlaceOfEveryContents) {
    checkEveryContents(
            GetParam(), {5, 16, 1, 63, 64, 65, 70, 129}, byteChoicesOf);
}

TEST_P(CpuBytes, EveryNumberOfDimensions) {
    for (int d = 1; d <= 200; d += d < 70 ? 1 : 13) {
        ASSERT_NO_FATAL_FAILURE(checkDimensions(GetParam(), d, byteChoicesOf));
    }
}

TEST_P(CpuBytes, BlocksDoNotMatter) {
    checkBlocks(GetParam(), 77, 200, byteChoicesOf);
}

/// Sums of products of digits as large as they can be.
TEST_P(CpuBytes, LargestComponentsInAllDimensions) {
    CpuCase c = newCase();
    c.contents = Contents::Uniform;
    c.q = 14;
    c.n = 70;
    c.d = cpu::kMostByteDepth;
    c.k = 70;
    CpuData<float> data(c);
    auto problem = data.problem({}, 1);
    std::vector<float> vectors = data.vectors().values;
    std::vector<float> queries = data.queries().values;
    const float most[] = {
            1 - 0x1p-24f, 1, 0.5f + 0x1p-9f, 1 - 0x1p-9f, 0.7529297f};
    const auto fill = [&](std::vector<float>& rows, idx_t count) {
        for (idx_t row = 0; row < count; ++row) {
            for (int i = 0; i < c.d; ++i) {
                // Rows of one sign, of alternating ones, and with a rest.
                const float sign = row % 3 == 1 && i % 2 ? -1.0f : 1.0f;
                rows[row * c.d + i] = row % 5 == 4 && i % 7 == 0
                        ? rows[row * c.d + i] * 0x1p-9f
                        : sign * most[row % 4 + (i == row)];
            }
        }
    };
    fill(vectors, c.n);
    fill(queries, c.q);
    problem.vectors = vectors.data();
    problem.queries = queries.data();
    problem.choice.arithmetic = cpu::Arithmetic::Components;
    const auto expected = CpuData<float>::run(problem);
    for (const cpu::Choice& choice : byteChoicesOf(cpu::Variant::Auto)) {
        problem.choice = choice;
        ASSERT_TRUE(CpuData<float>::run(problem) == expected);
    }
    // Against the definition itself, too.
    for (idx_t place : {idx_t(0), c.k - 1}) {
        const idx_t id = expected.ids[place];
        EXPECT_EQ(
                expected.distances[place],
                canonicalDistance(
                        c.metric,
                        2.0,
                        queries.data(),
                        vectors.data() + id * c.d,
                        c.d));
    }
}

TEST_P(CpuBytes, OneVectorUnlikeTheOthers) {
    checkOneUnlikeTheOthers(GetParam(), byteChoicesOf);
}

/// Chosen by shape, and not for data that bytes leave in doubt.
TEST_P(CpuBytes, ChosenWhereItPays) {
    CpuCase c = newCase();
    c.contents = Contents::Uniform;
    c.q = 150;
    c.n = 900;
    c.d = 96;
    const auto isChosen = [](const CpuData<float>& data) {
        const auto problem = data.problem({}, 1);
        return cpu::isForBytes(
                cpu::checkProblem<float>(problem, false),
                problem,
                problem.k,
                false);
    };
    for (const int64_t k : {1, 450}) {
        c.k = k;
        const CpuData<float> data(c);
        if (k == 1 || c.metric == Metric::L2) {
            EXPECT_EQ(isChosen(data), k > 1);
        }
        const CpuResult<float> expected = data.canonicalResult();
        for (const int threads : {1, 3}) {
            ASSERT_TRUE(data.checkCanonical(data.run({}, threads), expected));
        }
    }
    if (c.metric != Metric::L2) {
        return; // products of mixed signs are small: it depends
    }
    // What all rows share, and is far larger than what differs, hides that.
    c.k = 450;
    CpuData<float> data(c);
    auto problem = data.problem({}, 1);
    std::vector<float> vectors = data.vectors().values;
    std::vector<float> queries = data.queries().values;
    for (std::vector<float>* rows : {&vectors, &queries}) {
        for (size_t at = 0; at < rows->size(); at += c.d) {
            (*rows)[at] = 1e6f;
        }
    }
    problem.vectors = vectors.data();
    problem.queries = queries.data();
    EXPECT_FALSE(cpu::isForBytes(
            cpu::checkProblem<float>(problem, false), problem, c.k, false));
}

INSTANTIATE_TEST_SUITE_P(
        Metrics,
        CpuBytes,
        ::testing::Values(Metric::L2, Metric::InnerProduct),
        ::testing::PrintToStringParamName());

TEST(CpuBytesArguments, WhereItCannotBe) {
    CpuCase c;
    c.mode = SearchMode::Certified;
    const auto expectNot = [](auto problem) {
        problem.choice.arithmetic = cpu::Arithmetic::Bytes;
        EXPECT_TRUE(throwsNaming(
                [&] { cpu::planKnn(problem); }, "choice.arithmetic", "bytes"));
        problem.numQueries = 0; // there is nothing to do, but no less wrong
        EXPECT_TRUE(throwsNaming(
                [&] { cpu::runKnn(problem); }, "choice.arithmetic", "bytes"));
    };
    expectNot(CpuData<double>(c).problem({}, 1));
    auto problem = CpuData<float>(c).problem({}, 1);
    problem.mode = SearchMode::Plain;
    expectNot(problem);
    problem = CpuData<float>(c).problem({}, 1);
    problem.choice.variant = cpu::Variant::Direct;
    expectNot(problem);
    problem.choice.variant = cpu::Variant::Auto;
    problem.d = cpu::kMostByteDepth + 1;
    expectNot(problem);
    problem.d = 8;
    problem.metric = Metric::Cosine;
    expectNot(problem);
    problem.metric = Metric::L2;
    problem.choice.target = "SSE4"; // on every machine that has AMX
    if (!byteChoicesOf(cpu::Variant::Auto).empty()) {
        expectNot(problem);
    }
    const CpuData<float> data(c);
    cpu::Choice choice;
    choice.arithmetic = cpu::Arithmetic::Bytes;
    EXPECT_TRUE(throwsNaming(
            [&] { data.runRange(1, choice); }, "choice.arithmetic", "bytes"));
}

} // namespace
} // namespace faiss_bits::test
