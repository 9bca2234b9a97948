/// Selections whose result is too large for the oracle. Skipped, by name,
/// where the device has too little memory.

#include <cmath>

#include <gtest/gtest.h>

#include "kernels/select/Select.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/common/KnownKeys.cuh"

namespace faiss_bits::test {
namespace {

/// A sorted result of k distinct columns is the right one if every key is its
/// column's, and exactly k columns rank no worse than the last.
void expectWhole(
        const std::vector<float>& keys,
        const std::vector<float>& outKeys,
        const std::vector<int64_t>& outIds) {
    const int64_t k = int64_t(outIds.size());
    const int64_t cols = int64_t(keys.size());
    for (int64_t i = 0; i < k; ++i) {
        ASSERT_TRUE(outIds[i] >= 0 && outIds[i] < cols) << "place " << i;
        ASSERT_EQ(outKeys[i], keys[outIds[i]]) << "place " << i;
        const bool inOrder = i == 0 ||
                ranksBefore({outKeys[i - 1], outIds[i - 1]},
                            {outKeys[i], outIds[i]},
                            false);
        ASSERT_TRUE(inOrder) << "place " << i;
    }
    const Ranked last{outKeys[k - 1], outIds[k - 1]};
    int64_t noWorse = 0;
    for (int64_t c = 0; c < cols; ++c) {
        noWorse += !ranksBefore(last, {keys[c], c}, false);
    }
    ASSERT_EQ(noWorse, k);
}

class MultiPassLarge : public GpuTest {};

TEST_F(MultiPassLarge, MillionsOfOneRow) {
    const int64_t cols = (int64_t(1) << 26) + 7;
    if (!hasFreeMemory(size_t(32) * cols)) {
        GTEST_SKIP() << "needs 2 GiB of free GPU memory";
    }
    DeviceBuffer<float> deviceKeys(cols);
    fillKnownKeys(deviceKeys.data(), 1, cols);
    const std::vector<float> keys = deviceKeys.download();
    for (SelectAlgorithm algorithm :
         {SelectAlgorithm::SampleThreshold,
          SelectAlgorithm::BitsGlobal,
          SelectAlgorithm::SampleSelect,
          SelectAlgorithm::SampleSelectTwoStage,
          SelectAlgorithm::RadixSelect,
          SelectAlgorithm::Sort}) {
        for (int k : {100001, (1 << 23) + 1}) {
            SCOPED_TRACE(
                    std::string(nameOf(algorithm)) + " k=" + std::to_string(k));
            DeviceBuffer<float> outKeys(k, 0xA5);
            DeviceBuffer<int64_t> outIds(k, 0xA5);
            SelectProblem p;
            p.algorithm = algorithm;
            p.rows = 1;
            p.cols = cols;
            p.k = k;
            p.keys = deviceKeys.data();
            p.outKeys = outKeys.data();
            p.outIds = outIds.data();
            p.device = deviceTraits();
            DeviceBuffer<uint8_t> scratch(selectWorkspaceBytes(p));
            runSelect(p, {scratch.data(), scratch.size()}, nullptr);
            expectWhole(keys, outKeys.download(), outIds.download());
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
