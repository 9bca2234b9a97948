/// The vectors of a second sample, in the order of its image's rows.

#include <algorithm>
#include <set>

#include "kernels/knn/fused/SampleKernels.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"

namespace faiss_bits::test {
namespace {

class SampleIds : public GpuTest {
   protected:
    static std::vector<int32_t> idsOf(int64_t n, int64_t samples) {
        DeviceBuffer<int32_t> ids(samples);
        runSampleIds(n, samples, ids.data(), nullptr);
        return ids.download();
    }
};

TEST_F(SampleIds, OneOfEachPart) {
    for (int64_t samples : {1, 5, 127, 128, 129, 1024, 33125, 65536}) {
        for (int64_t n : {samples, 3 * samples + 1, 16 * samples + 7}) {
            std::vector<int32_t> ids = idsOf(n, samples);
            std::sort(ids.begin(), ids.end());
            for (int64_t i = 0; i < samples; ++i) {
                ASSERT_GE(ids[i], i * n / samples) << n << " " << samples;
                ASSERT_LT(ids[i], (i + 1) * n / samples) << n << " " << samples;
            }
        }
    }
}

/// Strips are parts of chunks, which take tiles in turn: vectors stored side by
/// side are in as many tiles as may be, and in all chunks.
TEST_F(SampleIds, NeighboursAreFarApart) {
    constexpr int64_t kSamples = 65536;
    constexpr int64_t kTile = 128;
    constexpr int64_t kChunks = 16;
    const int64_t n = 16 * kSamples;
    const std::vector<int32_t> ids = idsOf(n, kSamples);
    std::vector<int64_t> rowOf(kSamples);
    for (int64_t row = 0; row < kSamples; ++row) {
        rowOf[ids[row] / 16] = row; // of each 16 vectors there is one
    }
    for (int64_t first : {0, 1000, 40000}) {
        std::set<int64_t> tiles;
        std::set<int64_t> chunks;
        for (int64_t part = first; part < first + 256; ++part) {
            tiles.insert(rowOf[part] / kTile);
            chunks.insert(rowOf[part] / kTile % kChunks);
        }
        EXPECT_GE(tiles.size(), 64u) << first;
        EXPECT_EQ(chunks.size(), size_t(kChunks)) << first;
    }
}

/// Bit i of those that a filter leaves is of row i.
TEST_F(SampleIds, BitsAreOfTheSameRows) {
    for (int64_t samples : {129, 4096, 33125}) {
        const int64_t n = 16 * samples + 3;
        std::vector<uint32_t> allowed((n + 31) / 32);
        for (size_t i = 0; i < allowed.size(); ++i) {
            allowed[i] = uint32_t(i * 2654435769u);
        }
        const DeviceBuffer<uint32_t> deviceAllowed(allowed);
        DeviceBuffer<uint32_t> bits((samples + 31) / 32);
        runSampleBits(
                deviceAllowed.data(),
                n,
                samples,
                samples,
                true,
                bits.data(),
                nullptr);
        const std::vector<uint32_t> got = bits.download();
        const std::vector<int32_t> ids = idsOf(n, samples);
        for (int64_t i = 0; i < samples; ++i) {
            ASSERT_EQ(
                    got[i / 32] >> (i % 32) & 1,
                    allowed[ids[i] / 32] >> (ids[i] % 32) & 1)
                    << i << " of " << samples;
        }
    }
}

} // namespace
} // namespace faiss_bits::test
