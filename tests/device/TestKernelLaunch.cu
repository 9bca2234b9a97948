/// What a launch asks for reaches the kernel: clusters, all blocks together,
/// an early start; what the device refuses is an Error.

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DeviceTraits.h"
#include "kernels/common/Error.h"
#include "kernels/common/KernelLaunch.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"

namespace faiss_bits::test {
namespace {

struct Seen {
    uint32_t* clusterBlocks = nullptr; // [blocks]
};

__global__ void clusterKernel(const __grid_constant__ Seen p) {
    waitForPrevious();
    uint32_t blocks = 1;
#if __CUDA_ARCH__ >= 900
    asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(blocks));
#endif
    if (threadIdx.x == 0) {
        p.clusterBlocks[blockIdx.x] = blocks;
    }
}

class KernelLaunchTest : public GpuTest {
   protected:
    static constexpr unsigned kBlocks = 32;

    /// The blocks of each block's cluster.
    static std::vector<uint32_t> clusters(KernelLaunch& launch) {
        const DeviceBuffer<uint32_t> seen(kBlocks, 0);
        launch.enqueue(Seen{seen.data()});
        return seen.download();
    }

    static KernelLaunch plain() {
        return {clusterKernel, dim3(kBlocks), 64, 0, nullptr};
    }
};

TEST_F(KernelLaunchTest, BlocksOfEverySizeOfCluster) {
    const bool has = deviceTraits().computeCapability >= 90;
    for (const unsigned size : {1u, 2u, 4u, 8u, 16u}) {
        if (size > 1 && !has) {
            break;
        }
        KernelLaunch launch = plain();
        launch.inClusters(size);
        EXPECT_EQ(clusters(launch), std::vector<uint32_t>(kBlocks, size));
        launch.early();
        EXPECT_EQ(clusters(launch), std::vector<uint32_t>(kBlocks, size));
        if (size > 1) {
            EXPECT_GT(launch.mostClusters(), 0);
        }
    }
}

TEST_F(KernelLaunchTest, BlocksThatWereSetLater) {
    const DeviceBuffer<uint32_t> seen(kBlocks, 0);
    KernelLaunch launch = plain();
    launch.setBlocks(dim3(3));
    launch.enqueue(Seen{seen.data()});
    std::vector<uint32_t> expected(kBlocks);
    std::fill_n(expected.begin(), 3, 1);
    EXPECT_EQ(seen.download(), expected);
}

TEST_F(KernelLaunchTest, CopiesKeepWhatWasAskedFor) {
    KernelLaunch launch = plain();
    launch.cooperative();
    KernelLaunch copy = launch;
    launch = plain();
    EXPECT_EQ(clusters(copy), std::vector<uint32_t>(kBlocks, 1));
    // More blocks than the device holds at once: an ordinary launch is none.
    copy.setBlocks(dim3(1 << 20));
    EXPECT_THROW(copy.enqueue(Seen{}), Error);
    (void)cudaGetLastError();
}

TEST_F(KernelLaunchTest, AClusterOfNoSizeThatADeviceHas) {
    KernelLaunch launch = plain();
    EXPECT_THROW(launch.inClusters(kBlocks + 1).enqueue(Seen{}), Error);
    (void)cudaGetLastError();
}

} // namespace
} // namespace faiss_bits::test
