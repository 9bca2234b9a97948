/// The GPU part on a machine without a GPU: exceptions, never an abort.

#include <cstdint> // before those of FAISS 1.7.3
#include <functional>

#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexIVFPQ.h>
#include <faiss/IndexIVFPQR.h>
#include <faiss/IndexScalarQuantizer.h>
#include <faiss/gpu/GpuDistance.h>

#include "faiss_bits/Version.h"
#include "faiss_bits/cloners/GpuBitsCloner.h"
#include "faiss_bits/cluster/GpuBitsClustering.h"
#include "faiss_bits/common/CopyableIndex.h"
#include "faiss_bits/flat/DeviceSelector.h"
#include "faiss_bits/flat/GpuBitsDistance.h"
#include "faiss_bits/ivf/GpuIndexBitsIVFFlat.h"
#include "faiss_bits/ivf/GpuIndexBitsIVFPQ.h"
#include "faiss_bits/ivf/GpuIndexBitsIVFScalarQuantizer.h"
#include "faiss_bits/ivf/IvfChecks.h"
#include "faiss_bits/select/GpuBitsSelect.h"
#include "tests/flat/IndexHarness.h"

namespace faiss_bits::test {
namespace {

class NoDevice : public ::testing::Test {
   protected:
    void SetUp() override {
        if (hasCudaDevice()) {
            GTEST_SKIP() << "this machine has a CUDA device";
        }
    }

    faiss::gpu::StandardGpuResources resources;
};

TEST_F(NoDevice, ConstructorsThrow) {
    EXPECT_TRUE(hasGpuPart());
    faiss::IndexFlatL2 l2(4);
    faiss::IndexFlatIP ip(4);
    auto* provider = &resources;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { GpuIndexBitsFlat(provider, 4, faiss::METRIC_L2); },
            "device",
            "no CUDA device"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { GpuIndexBitsFlat(provider, &l2); }, "device"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { GpuIndexBitsFlatL2(provider, 4); }, "device"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { GpuIndexBitsFlatL2(provider, &l2); }, "device"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { GpuIndexBitsFlatIP(provider, 4); }, "device"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { GpuIndexBitsFlatIP(provider, &ip); }, "device"));

    EXPECT_TRUE(faissThrowsNaming(
            [&] { gpu::GpuBitsClustering(provider, 4, 2); },
            "device",
            "no CUDA device"));

    const faiss::IDSelectorRange range(0, 5);
    for (int device : {-1, 0, 3}) {
        EXPECT_TRUE(faissThrowsNaming(
                [&] { gpu::DeviceSelector(&range, 10, device); },
                "device",
                "no CUDA device"));
    }

    // FAISS's config, and what it says.
    faiss::gpu::GpuIndexFlatConfig config;
    config.device = 3;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { GpuIndexBitsFlatL2(provider, 4, config); },
            "device",
            "device = 3"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { GpuIndexBitsFlatIP(provider, &ip, config); },
            "device",
            "device = 3"));
}

// Of product codes FAISS asks the device how much shared memory it has, and
// ends the process where it cannot.
TEST_F(NoDevice, ConstructorsOfListsThrow) {
    using faiss::METRIC_L2;
    using faiss::ScalarQuantizer;
    using gpu::GpuIndexBitsIVFFlat;
    using gpu::GpuIndexBitsIVFPQ;
    using gpu::GpuIndexBitsIVFScalarQuantizer;
    auto* provider = &resources;
    constexpr auto k8Bits = ScalarQuantizer::QT_8bit;
    faiss::IndexFlatL2 quantizer(4);
    const faiss::IndexIVFFlat flat(&quantizer, 4, 2);
    const faiss::IndexIVFScalarQuantizer scalar(&quantizer, 4, 2, k8Bits);
    const faiss::IndexIVFPQ product(&quantizer, 4, 2, 2, 8);
    const std::function<void()> calls[] = {
            [&] { GpuIndexBitsIVFFlat(provider, 4, 2); },
            [&] { GpuIndexBitsIVFFlat(provider, &quantizer, 4, 2); },
            [&] { GpuIndexBitsIVFFlat(provider, &flat); },
            [&] { GpuIndexBitsIVFScalarQuantizer(provider, 4, 2, k8Bits); },
            [&] {
                GpuIndexBitsIVFScalarQuantizer(
                        provider, &quantizer, 4, 2, k8Bits);
            },
            [&] { GpuIndexBitsIVFScalarQuantizer(provider, &scalar); },
            [&] { GpuIndexBitsIVFPQ(provider, 4, 2, 2, 8); },
            [&] { GpuIndexBitsIVFPQ(provider, &quantizer, 4, 2, 2, 8); },
            [&] { GpuIndexBitsIVFPQ(provider, &product); }};
    for (const auto& call : calls) {
        EXPECT_TRUE(faissThrowsNaming(call, "device", "no CUDA device"));
    }
}

// Before a device is asked: a copy would be another index than it says.
TEST_F(NoDevice, IndexesThatLoseSomethingAreNotCopied) {
    constexpr auto kL2 = faiss::METRIC_L2;
    faiss::IndexFlatL2 quantizer(4);
    const faiss::IndexIVFFlatDedup dedup(&quantizer, 4, 2, kL2);
    const faiss::IndexIVFPQR twice(&quantizer, 4, 2, 2, 8, 2, 8);
    const auto expectNamed = [&](const faiss::Index& index, const char* name) {
        for (bool clone : {false, true}) {
            EXPECT_TRUE(faissThrowsNaming(
                    [&] {
                        if (!clone) {
                            gpu::detail::requireCopyable(index, "index");
                        } else {
                            gpu::BitsToGpuCloner(&resources, 0, {})
                                    .clone_Index(&index);
                        }
                    },
                    "index",
                    name));
        }
    };
    expectNamed(dedup, "IndexIVFFlatDedup");
    expectNamed(twice, "IndexIVFPQR");
    EXPECT_TRUE(faissThrowsNaming(
            [&] { gpu::detail::requireIvfIndex(&dedup); },
            "index",
            "IndexIVFFlatDedup"));
#if FAISS_BITS_FAISS_HAS_FLAT_PANORAMA
    faiss::IndexFlatL2Panorama levels(4, 2);
    expectNamed(levels, "IndexFlatL2Panorama");
    const faiss::IndexIVFFlat over(&levels, 4, 2);
    EXPECT_TRUE(faissThrowsNaming(
            [&] { gpu::detail::requireIvfIndex(&over); },
            "index->quantizer",
            "IndexFlatL2Panorama"));
#endif
    faiss::IndexIVFFlat part(&quantizer, 4, 2);
    gpu::detail::requireIvfIndex(&part);
    part.max_codes = 12;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { gpu::detail::requireIvfIndex(&part); }, "max_codes = 12"));
    // What a user derives from them has all of it.
    struct Named : faiss::IndexFlatL2 {
        using faiss::IndexFlatL2::IndexFlatL2;
    };
    gpu::detail::requireCopyable(Named(4), "index");
}

TEST_F(NoDevice, FunctionsThrow) {
    faiss::IndexFlatL2 l2(4);
    EXPECT_TRUE(faissThrowsNaming(
            [&] { gpu::index_cpu_to_gpu(&resources, 0, &l2); },
            "device",
            "no CUDA device"));

    const float x[4] = {};
    float distances[1];
    idx_t labels[1];
    faiss::gpu::GpuDistanceParams args;
    args.k = 1;
    args.dims = 4;
    args.vectors = x;
    args.numVectors = 1;
    args.queries = x;
    args.numQueries = 1;
    args.outDistances = distances;
    args.outIndices = labels;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { gpu::bfKnnBits(&resources, args); },
            "device",
            "no CUDA device"));

    gpu::GpuSelectParams select;
    select.rows = 1;
    select.cols = 4;
    select.k = 1;
    select.keys = x;
    select.outKeys = distances;
    select.outIds = labels;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { gpu::selectK(&resources, select); },
            "device",
            "no CUDA device"));
}

} // namespace
} // namespace faiss_bits::test
