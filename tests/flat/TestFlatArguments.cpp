/// Every bad argument: a FaissException that names it, and an index that is
/// what it was.

#include "tests/flat/suite/FlatArguments.h"
#include "tests/flat/suite/GpuFlatKind.h"

namespace faiss_bits::test {
namespace {

INSTANTIATE_TYPED_TEST_SUITE_P(GpuFlatArguments, FlatArguments, GpuFlatKind);

/// What only the GPU index takes.
class GpuFlatArguments : public FlatArguments<GpuFlatKind> {};

TEST_F(GpuFlatArguments, SmallConstructors) {
    auto* provider = sharedResources();
    for (int device : {-1, 1000}) {
        GpuIndexBitsFlatConfig config;
        config.device = device;
        EXPECT_TRUE(faissThrowsNaming(
                [&] {
                    GpuIndexBitsFlat(provider, 4, faiss::METRIC_L2, config);
                },
                "device",
                std::to_string(device)));
    }
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
}

TEST_F(GpuFlatArguments, SmallCopies) {
    EXPECT_TRUE(faissThrowsNaming([&] { index->copyFrom(nullptr); }, "index"));
    EXPECT_TRUE(faissThrowsNaming([&] { index->copyTo(nullptr); }, "index"));
    const faiss::IndexFlat unknown(8, faiss::MetricType(30));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->copyFrom(&unknown); }, "metric", "30"));

    // Of its fields alone: there is no memory for so many.
    faiss::IndexFlat huge(8, faiss::METRIC_L2);
    huge.ntotal = GpuFlatKind::tooManyVectors();
    const std::string tooMany = std::to_string(huge.ntotal);
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->copyFrom(&huge); }, "ntotal", tooMany));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { GpuIndexBitsFlat(sharedResources(), &huge); },
            "ntotal",
            tooMany));

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

TEST_F(GpuFlatArguments, SmallAddWithAMetricChangedBehindOurBack) {
    index->metric_type = static_cast<faiss::MetricType>(77);
    EXPECT_TRUE(faissThrowsNaming([&] { index->add(1, x); }, "metric", "77"));
    index->metric_type = faiss::METRIC_L2;
}

TEST_F(GpuFlatArguments, SmallReserveAndIds) {
    EXPECT_TRUE(
            faissThrowsNaming([&] { index->reserve(-1); }, "numVecs", "-1"));
    const idx_t tooMany = GpuFlatKind::tooManyVectors();
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->reserve(tooMany); },
            "numVecs",
            std::to_string(tooMany)));
    const idx_t ids[3] = {5, 6, 7};
    EXPECT_TRUE(
            faissThrowsNaming([&] { index->add_with_ids(3, x, ids); }, "ids"));
}

TEST_F(GpuFlatArguments, MemoryOfAnotherDevice) {
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
