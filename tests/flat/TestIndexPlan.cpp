/// plan() of the index, and planSelectK, against what the calls say that they
/// did: the log's lines come from the plans that ran. Every call has a shape of
/// its own, as the log prints a shape once.

#include <cstdlib>

#include <faiss/impl/IDSelector.h>

#include "faiss_bits/select/GpuBitsSelect.h"
#include "tests/flat/IndexHarness.h"

namespace faiss_bits::test {
namespace {

class IndexPlan : public GpuTest {
   protected:
    static void SetUpTestSuite() {
        setenv("FAISS_BITS_LOG", "1", 1);
    }

    /// The text behind "faiss_bits: <shape>: " of the one line that is printed.
    template <class Call>
    static std::string logged(const Call& call) {
        ::testing::internal::CaptureStderr();
        call();
        const std::string text = ::testing::internal::GetCapturedStderr();
        EXPECT_EQ(text.find("faiss_bits: "), 0) << text;
        EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
        const size_t shape = text.find(": ", 12);
        return shape == std::string::npos
                ? text
                : text.substr(shape + 2, text.size() - shape - 3);
    }

    static void expectSame(
            const GpuIndexBitsFlat& index,
            const std::vector<float>& queries,
            int k,
            const faiss::SearchParameters* params = nullptr) {
        const int64_t q = int64_t(queries.size()) / index.d;
        SearchOutput out;
        out.distances.resize(q * k);
        out.labels.resize(q * k);
        const std::string plan = index.plan(q, k, params).toString();
        EXPECT_EQ(plan, logged([&] {
                      index.search(
                              q,
                              queries.data(),
                              k,
                              out.distances.data(),
                              out.labels.data(),
                              params);
                  }));
    }
};

TEST_F(IndexPlan, IsWhatTheSearchDid) {
    const int d = 64;
    const int64_t n = 40000;
    const auto x = makeVectors(n, d, 1);
    for (faiss::MetricType metric :
         {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT, faiss::METRIC_L1}) {
        for (bool useFloat16 : {false, true}) {
            GpuIndexBitsFlatConfig config;
            config.useFloat16 = useFloat16;
            GpuIndexBitsFlat index(sharedResources(), d, metric, config);
            index.add(n, x.data());
            // The image is made on the way.
            int k = 10;
            for (int64_t q : {1, 3, 10, 10, 10, 10, 10, 10, 100, 100, 5000}) {
                expectSame(index, makeVectors(q, d, 2), k++);
            }
            index.search_mode = SearchMode::Plain;
            expectSame(index, makeVectors(3, d, 2), k++);
            expectSame(index, makeVectors(100, d, 2), k++);
            index.search_mode = SearchMode::Fast;
            expectSame(index, makeVectors(100, d, 2), k++);
            index.search_mode = SearchMode::Certified;
            const faiss::IDSelectorRange range(5, 2000);
            faiss::SearchParameters params;
            params.sel = const_cast<faiss::IDSelectorRange*>(&range);
            expectSame(index, makeVectors(3, d, 2), k++, &params);
            expectSame(index, makeVectors(100, d, 2), k++, &params);
        }
    }
}

/// One shape by its sizes, and another plan in each of the states.
TEST_F(IndexPlan, LogSaysWhenTheImageIsKept) {
    const int64_t n = 1 << 18;
    const int d = 64, k = 21;
    GpuIndexBitsFlatL2 index(sharedResources(), d);
    index.add(n, makeVectors(n, d, 1).data());
    const auto queries = makeVectors(10, d, 2);
    std::vector<std::string> lines;
    for (int i = 0; i < 9; ++i) {
        ::testing::internal::CaptureStderr();
        searchOnHost(index, queries, k);
        const std::string text = ::testing::internal::GetCapturedStderr();
        if (!text.empty()) {
            lines.push_back(text);
        }
    }
    ASSERT_EQ(lines.size(), 3u);
    const char* states[] = {"not_yet", "make", "kept"};
    for (int i = 0; i < 3; ++i) {
        EXPECT_NE(
                lines[i].find(
                        "k = 21, L2, float32, certified, search image " +
                        std::string(states[i]) + ": "),
                std::string::npos)
                << lines[i];
        EXPECT_NE(
                lines[i].find(", search image: " + std::string(states[i])),
                std::string::npos)
                << lines[i];
    }
}

TEST_F(IndexPlan, OnTheDevice) {
    const int d = 32;
    GpuIndexBitsFlatL2 index(sharedResources(), d);
    index.add(20000, makeVectors(20000, d, 1).data());
    for (int k : {7, 4000}) {
        DeviceBuffer<float> queries(makeVectors(50, d, 2));
        DeviceBuffer<float> distances(size_t(50) * k);
        DeviceBuffer<int64_t> labels(size_t(50) * k);
        const std::string plan = index.plan(50, k, nullptr, false).toString();
        EXPECT_EQ(plan, logged([&] {
                      index.search(
                              50,
                              queries.data(),
                              k,
                              distances.data(),
                              labels.data());
                  }));
    }
}

TEST_F(IndexPlan, RunsNothing) {
    const int n = 1 << 18;
    GpuIndexBitsFlatL2 index(sharedResources(), 64);
    index.add(n, makeVectors(n, 64, 1).data());
    for (int i = 0; i < 20; ++i) { // which a search would count
        EXPECT_EQ(index.plan(10, 5).searchImage, "not_yet");
    }
    EXPECT_EQ(index.stats().certified, 0);
    EXPECT_EQ(index.plan(0, 5).method, "none");
}

TEST_F(IndexPlan, Arguments) {
    GpuIndexBitsFlatL2 index(sharedResources(), 8);
    EXPECT_TRUE(faissThrowsNaming([&] { index.plan(-1, 5); }, "n", "-1"));
    EXPECT_TRUE(faissThrowsNaming([&] { index.plan(1, 0); }, "k", "0"));
    struct Other : faiss::SearchParameters {
    } other;
    EXPECT_TRUE(faissThrowsNaming([&] { index.plan(1, 5, &other); }, "params"));
}

TEST_F(IndexPlan, OfASelection) {
    for (int k : {11, 3001}) {
        const int64_t rows = 20, cols = 100001;
        const auto keys = makeVectors(rows, int(cols), 1);
        std::vector<float> outKeys(rows * k);
        std::vector<int64_t> outIds(rows * k);
        gpu::GpuSelectParams params;
        params.rows = rows;
        params.cols = cols;
        params.k = k;
        const std::string plan =
                gpu::planSelectK(sharedResources(), params).toString();
        params.keys = keys.data();
        params.outKeys = outKeys.data();
        params.outIds = outIds.data();
        EXPECT_EQ(
                plan, logged([&] { gpu::selectK(sharedResources(), params); }));
    }
}

} // namespace
} // namespace faiss_bits::test
