/// Every bad argument: a FaissException that names it, and an index that is
/// what it was.

#include <faiss/IndexIVF.h>
#include <faiss/impl/IDSelector.h>

#include "tests/flat/IndexHarness.h"

namespace faiss_bits::test {
namespace {

class FlatArguments : public GpuTest {
   protected:
    void SetUp() override {
        GpuTest::SetUp();
        if (IsSkipped()) {
            return;
        }
        FlatCase c;
        c.n = 100;
        c.d = 8;
        c.q = 3;
        c.fill = Fill::Integers;
        data = std::make_unique<FlatData>(c);
        index = data->makeIndex();
    }

    void TearDown() override {
        if (index) {
            // Still in use, as if nothing had been asked.
            EXPECT_EQ(index->ntotal, 100);
            data->expectExact(searchOnHost(*index, data->queries, 5), 5);
        }
        index.reset();
        GpuTest::TearDown();
    }

    std::unique_ptr<FlatData> data;
    std::unique_ptr<GpuIndexBitsFlat> index;
    float distances[30];
    idx_t labels[30];
    float x[24] = {};
};

TEST_F(FlatArguments, SmallConstructors) {
    auto* provider = sharedResources();
    auto make = [&](int d, faiss::MetricType metric, int device = 0) {
        GpuIndexBitsFlatConfig config;
        config.device = device;
        GpuIndexBitsFlat(provider, d, metric, config);
    };
    EXPECT_TRUE(
            faissThrowsNaming([&] { make(0, faiss::METRIC_L2); }, "dims", "0"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { make(-4, faiss::METRIC_L2); }, "dims", "-4"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { make(4, faiss::METRIC_L1); }, "metric", "2"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { make(4, faiss::METRIC_JensenShannon); }, "metric", "22"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { make(4, faiss::METRIC_L2, -1); }, "device", "-1"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { make(4, faiss::METRIC_L2, 1000); }, "device", "1000"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] {
                GpuIndexBitsFlatConfig config;
                config.memorySpace = faiss::gpu::MemorySpace::Temporary;
                GpuIndexBitsFlatL2(provider, 4, config);
            },
            "memorySpace",
            "0"));

    faiss::gpu::GpuResourcesProvider* noProvider = nullptr;
    std::shared_ptr<faiss::gpu::GpuResources> noResources;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { GpuIndexBitsFlatL2(noProvider, 4); }, "provider"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { GpuIndexBitsFlatL2(noResources, 4); }, "resources"));

    const faiss::IndexFlat* noIndex = nullptr;
    const faiss::IndexFlatL2* noL2 = nullptr;
    const faiss::IndexFlatIP* noIP = nullptr;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { GpuIndexBitsFlat(provider, noIndex); }, "index"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { GpuIndexBitsFlatL2(provider, noL2); }, "index"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { GpuIndexBitsFlatIP(provider, noIP); }, "index"));

    const faiss::IndexFlat lp(4, faiss::METRIC_Lp);
    EXPECT_TRUE(faissThrowsNaming(
            [&] { GpuIndexBitsFlat(provider, &lp); }, "metric", "4"));
}

TEST_F(FlatArguments, SmallCopies) {
    EXPECT_TRUE(faissThrowsNaming([&] { index->copyFrom(nullptr); }, "index"));
    EXPECT_TRUE(faissThrowsNaming([&] { index->copyTo(nullptr); }, "index"));
    const faiss::IndexFlat l1(8, faiss::METRIC_L1);
    EXPECT_TRUE(
            faissThrowsNaming([&] { index->copyFrom(&l1); }, "metric", "2"));

    GpuIndexBitsFlatL2 l2(sharedResources(), 8);
    GpuIndexBitsFlatIP ip(sharedResources(), 8);
    faiss::IndexFlatL2 cpuL2(8);
    faiss::IndexFlatIP cpuIP(8);
    EXPECT_TRUE(faissThrowsNaming(
            [&] { l2.copyFrom(&cpuIP); }, "metric_type", "0"));
    EXPECT_TRUE(
            faissThrowsNaming([&] { l2.copyTo(&cpuIP); }, "metric_type", "0"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { ip.copyFrom(&cpuL2); }, "metric_type", "1"));
    EXPECT_TRUE(
            faissThrowsNaming([&] { ip.copyTo(&cpuL2); }, "metric_type", "1"));
}

TEST_F(FlatArguments, SmallSearch) {
    for (idx_t k : {idx_t(0), idx_t(-1), idx_t(1) << 31, idx_t(1) << 32}) {
        const std::string value = std::to_string(k);
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->search(3, x, k, distances, labels); },
                "k",
                value));
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->assign(3, x, labels, k); }, "k", value));
        // Also where there is nothing to search.
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->search(0, x, k, distances, labels); },
                "k",
                value));
    }
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->search(-1, x, 5, distances, labels); }, "n", "-1"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->search(3, nullptr, 5, distances, labels); }, "x"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->search(3, x, 5, nullptr, labels); }, "distances"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->search(3, x, 5, distances, nullptr); }, "labels"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->assign(3, nullptr, labels, 5); }, "x"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->assign(3, x, nullptr, 5); }, "labels"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->assign(-2, x, labels, 5); }, "n", "-2"));
}

TEST_F(FlatArguments, SmallSearchParameters) {
    faiss::SearchParameters plain;
    index->search(3, data->queries.data(), 5, distances, labels, &plain);
    EXPECT_EQ(
            std::vector<idx_t>(labels, labels + 15),
            searchOnHost(*index, data->queries, 5).labels);

    faiss::IDSelectorRange selector(0, 10);
    plain.sel = &selector;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->search(3, x, 5, distances, labels, &plain); }, "sel"));
    faiss::IVFSearchParameters other;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->search(3, x, 5, distances, labels, &other); },
            "params"));
}

TEST_F(FlatArguments, SmallMetricChangedBehindOurBack) {
    index->metric_type = faiss::METRIC_Linf;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->search(3, x, 5, distances, labels); }, "metric", "3"));
    EXPECT_TRUE(faissThrowsNaming([&] { index->add(1, x); }, "metric", "3"));
    index->metric_type = faiss::METRIC_L2;
}

TEST_F(FlatArguments, SmallAddAndReserve) {
    EXPECT_TRUE(faissThrowsNaming([&] { index->add(-1, x); }, "n", "-1"));
    EXPECT_TRUE(faissThrowsNaming([&] { index->add(1, nullptr); }, "x"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->add(idx_t(1) << 31, x); }, "n", "2147483648"));
    const idx_t ids[3] = {5, 6, 7};
    EXPECT_TRUE(
            faissThrowsNaming([&] { index->add_with_ids(3, x, ids); }, "ids"));
    EXPECT_TRUE(
            faissThrowsNaming([&] { index->reserve(-1); }, "numVecs", "-1"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->reserve(idx_t(1) << 31); }, "numVecs", "2147483648"));
}

TEST_F(FlatArguments, SmallReconstruct) {
    for (idx_t key : {idx_t(-1), idx_t(100), idx_t(1) << 40}) {
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->reconstruct(key, x); },
                "key",
                std::to_string(key)));
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->reconstruct_n(key, 1, x); },
                "i0",
                std::to_string(key)));
    }
    EXPECT_TRUE(
            faissThrowsNaming([&] { index->reconstruct(0, nullptr); }, "out"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->reconstruct_n(99, 2, x); }, "n", "2"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->reconstruct_n(1, INT64_MAX, x); }, "n"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->reconstruct_n(0, -1, x); }, "n", "-1"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->reconstruct_n(0, 1, nullptr); }, "out"));

    const idx_t good[2] = {0, 99};
    const idx_t high[2] = {0, 100};
    const idx_t low[2] = {-2, 0};
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->reconstruct_batch(2, high, x); }, "keys", "100"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->reconstruct_batch(2, low, x); }, "keys", "-2"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->reconstruct_batch(2, nullptr, x); }, "keys"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->reconstruct_batch(2, good, nullptr); }, "out"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->reconstruct_batch(-1, good, x); }, "n", "-1"));

    float residuals[16];
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->compute_residual(x, residuals, 100); },
            "keys",
            "100"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->compute_residual_n(2, x, residuals, low); },
            "keys",
            "-2"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->compute_residual_n(2, nullptr, residuals, good); },
            "xs"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->compute_residual_n(2, x, nullptr, good); },
            "residuals"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->compute_residual_n(2, x, residuals, nullptr); },
            "keys"));
}

TEST_F(FlatArguments, MemoryOfAnotherDevice) {
    int count = 0;
    ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
    if (count < 2) {
        GTEST_SKIP() << "needs two CUDA devices";
    }
    ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
    float* other = nullptr;
    idx_t* otherIds = nullptr;
    ASSERT_EQ(cudaMalloc(&other, 4096), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&otherIds, 4096), cudaSuccess);
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->search(3, other, 5, distances, labels); }, "x", "1"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->search(3, x, 5, other, labels); }, "distances", "1"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->search(3, x, 5, distances, otherIds); },
            "labels",
            "1"));
    EXPECT_TRUE(faissThrowsNaming([&] { index->add(3, other); }, "x", "1"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->reconstruct_n(0, 3, other); }, "out", "1"));
    EXPECT_EQ(cudaFree(other), cudaSuccess);
    EXPECT_EQ(cudaFree(otherIds), cudaSuccess);
}

} // namespace
} // namespace faiss_bits::test
