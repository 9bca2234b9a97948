/// Metrics whose distances are canonical in every mode: what their searches do
/// besides what those of all metrics do (TestCpuCertified.cpp,
/// TestCpuCertifiedRange.cpp).

#include <string>

#include <gtest/gtest.h>

#include "kernels/common/Error.h"
#include "kernels/cpu/Knn.h"
#include "kernels/cpu/Range.h"
#include "tests/cpu/CpuHarness.h"

namespace faiss_bits::test {
namespace {

class CpuAlwaysCanonical : public ::testing::TestWithParam<Metric> {
   protected:
    CpuCase caseOf(int64_t q) const {
        CpuCase c;
        c.metric = GetParam();
        c.contents = Contents::Uniform;
        c.q = q;
        c.n = 500;
        c.d = 400; // in blocks of components, for other metrics
        return c;
    }
};

TEST_P(CpuAlwaysCanonical, PlainSearchesAreTheSame) {
    for (const int64_t q : {1, 2, 3, 4, 40}) {
        CpuCase c = caseOf(q);
        c.mode = SearchMode::Plain;
        const CpuData<float> data(c);
        ASSERT_TRUE(data.checkCanonical(
                data.run(cpu::Choice(), 2), data.canonicalResult()));
    }
}

TEST_P(CpuAlwaysCanonical, EveryQueryIsCertified) {
    CpuCase c = caseOf(30);
    for (const SearchMode mode : {SearchMode::Certified, SearchMode::Plain}) {
        c.mode = mode;
        const CpuData<float> data(c);
        SearchStats stats;
        auto problem = data.problem({}, 2);
        problem.stats = &stats;
        data.run(problem);
        cpu::runRange<float>(problem, 0.5f);
        const bool certifies = mode == SearchMode::Certified;
        EXPECT_EQ(stats.certified, certifies ? 60 : 0);
        EXPECT_EQ(stats.repeated, 0);
        EXPECT_EQ(stats.rescored, 0);
    }
}

TEST_P(CpuAlwaysCanonical, PlansTakeWholeRows) {
    for (const int64_t q : {1, 4, 1000}) {
        const CpuCase c = caseOf(q);
        const CpuData<float> data(c);
        cpu::Choice choice;
        choice.depthBlock = 16;
        const cpu::Plan plan = cpu::planKnn(data.problem(choice, 1));
        EXPECT_EQ(plan.depthBlock, c.d);
        EXPECT_NE(plan.variant, cpu::Variant::Direct);
        for (const auto& [variant, seconds] : plan.predictions) {
            EXPECT_NE(variant, cpu::Variant::Direct);
            EXPECT_GT(seconds, 0);
        }
    }
}

TEST_P(CpuAlwaysCanonical, WhatTheyHaveNotIsNamed) {
    const CpuData<float> data(caseOf(3));
    const auto messageOf = [](auto call) -> std::string {
        try {
            call();
        } catch (const Error& error) {
            return error.what();
        }
        return "nothing was thrown";
    };
    cpu::Choice choice;
    choice.variant = cpu::Variant::Direct;
    const std::string ofSearch =
            messageOf([&] { data.run(data.problem(choice, 1)); });
    EXPECT_NE(ofSearch.find("variant = direct"), std::string::npos) << ofSearch;
    const std::string ofRange = messageOf(
            [&] { cpu::runRange<float>(data.problem(choice, 1), 1.0f); });
    EXPECT_NE(ofRange.find("variant = direct"), std::string::npos) << ofRange;
    for (const cpu::Arithmetic arithmetic :
         {cpu::Arithmetic::Int16,
          cpu::Arithmetic::Bytes,
          cpu::Arithmetic::Doubles}) {
        choice = {};
        choice.arithmetic = arithmetic;
        const std::string text =
                messageOf([&] { data.run(data.problem(choice, 1)); });
        EXPECT_NE(text.find("arithmetic"), std::string::npos) << text;
    }
}

INSTANTIATE_TEST_SUITE_P(
        Metrics,
        CpuAlwaysCanonical,
        ::testing::ValuesIn(kAlwaysCanonical),
        ::testing::PrintToStringParamName());

} // namespace
} // namespace faiss_bits::test
