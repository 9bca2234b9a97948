/// Means, splits, lengths and rounding of centroids against float64.

#include <cmath>
#include <random>

#include "kernels/cluster/ClusterCentroids.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"

namespace faiss_bits::test {
namespace {

class ClusterCentroids : public GpuTest {};

constexpr int kDims[] = {1, 2, 3, 127, 128, 129, 300};

std::vector<float> randomFloats(size_t count, float scale = 10) {
    std::mt19937 random(3);
    std::uniform_real_distribution<float> uniform(-scale, scale);
    std::vector<float> values(count);
    for (float& value : values) {
        value = uniform(random);
    }
    return values;
}

TEST_F(ClusterCentroids, SmallMeans) {
    const int64_t k = 9;
    for (int d : kDims) {
        for (int64_t first : {0, 1, 8, 9}) {
            std::vector<double> sums;
            for (float x : randomFloats(k * d)) {
                sums.push_back(x * 1.1);
            }
            // Without a row; lighter than a float32 can say.
            const std::vector<double> weights{
                    1, 0, 3, 7, 1e-60, 0.5, -2, 1e6, 11};
            const auto before = randomFloats(k * d, 1);
            const DeviceBuffer<double> deviceSums(sums);
            const DeviceBuffer<double> deviceWeights(weights);
            const DeviceBuffer<float> centroids(before);
            runClusterMeans(
                    deviceSums.data(),
                    deviceWeights.data(),
                    first,
                    k,
                    d,
                    centroids.data(),
                    nullptr);
            const auto result = centroids.download();
            for (int64_t i = 0; i < k * d; ++i) {
                const int64_t c = i / d;
                const float expected = c < first ? before[i]
                        : float(weights[c]) == 0 ? 0
                                                 : float(sums[i] / weights[c]);
                ASSERT_EQ(result[i], expected) << "d=" << d << " " << i;
            }
        }
    }
}

TEST_F(ClusterCentroids, SmallSplitsFollowEachOther) {
    // 1 takes from 0, 2 from 1, 0 from 2, 3 from 1.
    const std::vector<ClusterSplit> splits{{1, 0}, {2, 1}, {0, 2}, {3, 1}};
    for (int d : kDims) {
        std::vector<float> expected = randomFloats(5 * d);
        const DeviceBuffer<float> centroids(expected);
        const DeviceBuffer<ClusterSplit> deviceSplits(splits);
        runClusterSplits(
                deviceSplits.data(),
                int64_t(splits.size()),
                d,
                centroids.data(),
                nullptr);
        for (const ClusterSplit& split : splits) {
            for (int j = 0; j < d; ++j) {
                const double value = expected[split.from * d + j];
                const double up = value * (1 + 1 / 1024.0);
                const double down = value * (1 - 1 / 1024.0);
                expected[split.to * d + j] = float(j % 2 == 0 ? up : down);
                expected[split.from * d + j] = float(j % 2 == 0 ? down : up);
            }
        }
        EXPECT_EQ(centroids.download(), expected) << "d=" << d;
    }
}

TEST_F(ClusterCentroids, SmallLengthsAndRounding) {
    const int64_t k = 6;
    for (int d : kDims) {
        for (int way = 0; way < 4; ++way) {
            const bool normalize = way & 1;
            const bool round = way & 2;
            std::vector<float> values = randomFloats(k * d);
            std::fill(values.begin(), values.begin() + d, 0.0f);
            values[d] = 2.5f;
            values[2 * d] = -0.5f;
            const DeviceBuffer<float> centroids(values);
            runFinishCentroids(
                    k, d, normalize, round, centroids.data(), nullptr);
            const auto result = centroids.download();
            for (int64_t i = 0; i < k; ++i) {
                double squares = 0;
                for (int j = 0; j < d; ++j) {
                    squares += double(values[i * d + j]) * values[i * d + j];
                }
                const double length =
                        normalize && squares > 0 ? std::sqrt(squares) : 1;
                for (int j = 0; j < d; ++j) {
                    const double exact = values[i * d + j] / length;
                    const float got = result[i * d + j];
                    if (round && normalize) {
                        // A length that is off by a bit may round either way.
                        ASSERT_EQ(got, std::round(got));
                        ASSERT_NEAR(got, exact, 0.5 + 1e-6);
                    } else if (round) {
                        ASSERT_EQ(got, float(std::round(exact)));
                    } else {
                        ASSERT_NEAR(got, exact, std::abs(exact) * 0x1p-23);
                    }
                }
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
