/// FAISS_BITS_LOG=1: a line for each new shape, from any thread. The variable
/// is read once a process; tests/python has the other values.

#include <atomic>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#include <faiss/MetricType.h>

#include "faiss_bits/common/PlanLog.h"
#include "faiss_bits/common/PlanText.h"
#include "faiss_bits/flat/IndexFusedFlat.h"
#include "tests/flat/HostHarness.h"

namespace faiss_bits::test {
namespace {

size_t count(const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos;
         at = text.find(part, at + part.size())) {
        ++found;
    }
    return found;
}

/// What the calls print.
template <class Calls>
std::string printed(const Calls& calls) {
    ::testing::internal::CaptureStderr();
    calls();
    return ::testing::internal::GetCapturedStderr();
}

class PlanLog : public ::testing::Test {
   protected:
    static void SetUpTestSuite() {
        setenv("FAISS_BITS_LOG", "1", 1);
        ASSERT_TRUE(detail::logsPlans());
    }
};

TEST_F(PlanLog, ALineForEachShapeOfAnIndex) {
    const auto x = makeVectors(500, 8, 1);
    IndexFusedFlat index(8);
    index.add(500, x.data());
    const auto search = [&](int64_t queries, int64_t k) {
        return printed([&] {
            searchOnHost(
                    index,
                    std::vector<float>(x.begin(), x.begin() + queries * 8),
                    k);
        });
    };
    const std::string first = search(20, 5);
    EXPECT_EQ(count(first, "\n"), 1) << first;
    EXPECT_EQ(
            first.find("faiss_bits: CPU search, 20 queries, n = 500, d = 8, "
                       "k = 5, L2, float32, certified: "),
            0)
            << first;
    // What plan() says, but for the time that it predicts.
    const std::string plan = index.plan(20, 5);
    EXPECT_NE(
            first.find(plan.substr(0, plan.find("predicted"))),
            std::string::npos)
            << first << plan;
    EXPECT_EQ(search(20, 5), "");
    EXPECT_EQ(count(search(20, 6), "\n"), 1);
    EXPECT_EQ(count(search(21, 5), "\n"), 1);
    index.search_mode = SearchMode::Plain;
    EXPECT_EQ(count(search(20, 5), "plain: "), 1);
    EXPECT_EQ(search(20, 5), "");
    index.search_mode = SearchMode::Certified;
    EXPECT_EQ(search(20, 5), "");
    // Another index of the same shape.
    IndexFusedFlat other(8);
    other.add(500, x.data());
    EXPECT_EQ(
            printed([&] {
                searchOnHost(other, std::vector<float>(160, 1), 5);
            }),
            "");
    EXPECT_EQ(search(0, 5), "");
}

TEST_F(PlanLog, AnErrorIsWhatItIsWithoutTheLog) {
    IndexFusedFlat index(8, faiss::METRIC_Lp, 3);
    index.add(10, makeVectors(10, 8, 1).data());
    index.metric_arg = -1;
    const std::string text = printed([&] {
        EXPECT_TRUE(faissThrowsNaming(
                [&] { searchOnHost(index, std::vector<float>(8), 1); },
                "metric_arg"));
    });
    EXPECT_EQ(text, "");
}

TEST_F(PlanLog, ThreadsPrintAShapeOnce) {
    std::atomic<int> plans = 0;
    const std::string text = printed([&] {
        std::vector<std::thread> threads;
        for (int t = 0; t < 8; ++t) {
            threads.emplace_back([&] {
                for (int i = 0; i < 100; ++i) {
                    detail::logPlan(
                            [&] { return "shape " + std::to_string(i); },
                            [&] {
                                ++plans;
                                return std::string("plan");
                            });
                }
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
    });
    EXPECT_EQ(plans, 100);
    EXPECT_EQ(count(text, "\n"), 100);
    EXPECT_EQ(count(text, "faiss_bits: shape 7: plan\n"), 1);
}

/// The last one, as the log is full then.
TEST_F(PlanLog, ZRemembersNoMoreThanItsLimit) {
    const std::string text = printed([&] {
        for (size_t i = 0; i < 2 * detail::kMostLoggedShapes; ++i) {
            detail::logPlan(
                    [&] { return "one of many " + std::to_string(i); },
                    [] { return std::string("plan"); });
        }
    });
    EXPECT_LT(count(text, "\n"), detail::kMostLoggedShapes + 2);
    EXPECT_EQ(count(text, "no more will be\n"), 1);
    EXPECT_EQ(count(text, "one of many 0:"), 1);
    EXPECT_EQ(count(text, "one of many 1999:"), 0);
}

TEST(PlanText, NamesMetricsTypesAndModes) {
    const std::vector<std::pair<Metric, const char*>> metrics = {
            {Metric::L2, "L2"},
            {Metric::InnerProduct, "inner product"},
            {Metric::L1, "L1"},
            {Metric::Linf, "Linf"},
            {Metric::Lp, "Lp"},
            {Metric::Cosine, "cosine"},
            {Metric::Canberra, "Canberra"},
            {Metric::BrayCurtis, "Bray-Curtis"},
            {Metric::JensenShannon, "Jensen-Shannon"},
            {Metric::Jaccard, "Jaccard"}};
    for (const auto& [metric, name] : metrics) {
        EXPECT_STREQ(detail::textOf(metric), name);
    }
    EXPECT_STREQ(detail::textOf(DataType::Float32), "float32");
    EXPECT_STREQ(detail::textOf(DataType::Float16), "float16");
    EXPECT_STREQ(detail::textOf(DataType::BFloat16), "bfloat16");
    EXPECT_STREQ(detail::textOf(SearchMode::Certified), "certified");
    EXPECT_STREQ(detail::textOf(SearchMode::Plain), "plain");
    EXPECT_STREQ(detail::textOf(SearchMode::Fast), "fast");
}

} // namespace
} // namespace faiss_bits::test
