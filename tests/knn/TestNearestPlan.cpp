/// Strips and tiles of searches for the one nearest of few vectors.

#include <gtest/gtest.h>

#include "kernels/knn/fused/tensor/NearestTiles.h"
#include "tests/knn/TensorCase.h"

namespace faiss_bits::test {
namespace {

/// Items of few queries are as many as multiprocessors, where there are so many
/// vectors; of more, strips are few.
TEST(NearestChunks, FewQueriesFillTheGpu) {
    const DeviceTraits hopper;
    if (!hasTensorScan(TensorScanKernel::Wgmma, hopper)) {
        GTEST_SKIP() << "built for other GPUs";
    }
    const auto stripsOf = [&](int64_t queries, int64_t vectors) {
        return nearestStripsOf(
                queries, vectors, 128, TensorScanKernel::Wgmma, hopper);
    };
    constexpr uint32_t kOfChunk = 4;
    EXPECT_EQ(stripsOf(17, 128 * 132), 132 * kOfChunk);
    EXPECT_EQ(stripsOf(256, 128 * 132), 132 * kOfChunk);
    EXPECT_EQ(stripsOf(257, 128 * 132), 66 * kOfChunk);
    EXPECT_EQ(stripsOf(17, 128 * 16), 16 * kOfChunk);
    EXPECT_LE(stripsOf(8 * 256 + 1, 65536), 16 * kOfChunk);
    EXPECT_EQ(stripsOf(1 << 17, 65536), kOfChunk);
}

/// Strips of tiles take 80 MiB at most.
TEST(NearestTiles, BothSidesOfTheirMemory) {
    const DeviceTraits hopper;
    if (!hasTensorScan(TensorScanKernel::Wgmma, hopper)) {
        GTEST_SKIP() << "built for other GPUs";
    }
    struct Case {
        int64_t queries;
        int64_t vectors;
        bool has;
    };
    for (const Case& c : std::initializer_list<Case>{
                 {1 << 17, 2048, true},
                 {1 << 17, 2049, false},
                 {(1 << 17) + 1, 2048, false},
                 {16384, 16384, true},
                 {16385, 16384, false},
                 {16384, 16385, false},
                 {4096, 65536, true},
                 {4097, 65536, false},
                 {1, 65537, false}}) {
        for (int d : {256, 257}) {
            const uint32_t tile = nearestTileOf(
                    c.queries, c.vectors, d, TensorScanKernel::Wgmma, hopper);
            EXPECT_EQ(tile, c.has && d == 257 ? 256u : 0u)
                    << c.queries << " queries of " << c.vectors << " vectors";
            const uint32_t strips = nearestStripsOf(
                    c.queries, c.vectors, d, TensorScanKernel::Wgmma, hopper);
            if (tile > 0) {
                EXPECT_EQ(strips, uint32_t((c.vectors + 255) / 256 * 4));
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
