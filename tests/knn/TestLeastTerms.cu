/// LeastTerms: what a distance is no less than, against the canonical distance
/// of the same pairs.

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/canonical/Distance.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/knn/certified/LeastTerms.cuh"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"

namespace faiss_bits::test {
namespace {

/// A pair a thread: x and q of d components each.
template <Metric kMetric, int kHalves>
__global__ void leastKernel(
        const float* x,
        const float* q,
        int pairs,
        int d,
        float* out) {
    const int pair = int(blockIdx.x * blockDim.x + threadIdx.x);
    if (pair >= pairs) {
        return;
    }
    using Least = LeastTerms<kMetric>;
    float sums[Least::kSums] = {};
    for (int c = 0; c < d; ++c) {
        Least::template add<kHalves>(
                sums, x[int64_t(pair) * d + c], q[int64_t(pair) * d + c]);
    }
    out[pair] = Least::least(sums, d);
}

/// Kinds of pairs that are hard for float32.
enum class Pairs {
    Uniform,
    Near,   ///< that differ in the last bits
    Sizes,  ///< components from 2^-130 to 2^120
    Signs,  ///< of both signs
    Sparse, ///< mostly zeros
    Odd,    ///< with infinities, NaN, the smallest and the greatest numbers
    Small,  ///< terms that float32 rounds up to its least number
};
constexpr Pairs kPairs[] = {
        Pairs::Uniform,
        Pairs::Near,
        Pairs::Sizes,
        Pairs::Signs,
        Pairs::Sparse,
        Pairs::Odd,
        Pairs::Small};

void drawComponent(Pairs kind, std::mt19937& random, float& x, float& q) {
    std::uniform_real_distribution<float> uniform(0, 1);
    x = uniform(random);
    q = uniform(random);
    switch (kind) {
        case Pairs::Uniform:
        case Pairs::Small:
            break;
        case Pairs::Near:
            q = x * (1 + (uniform(random) - 0.5f) * 0x1p-20f);
            break;
        case Pairs::Sizes:
            x = std::ldexp(x, int(random() % 250) - 130);
            q = std::ldexp(q, int(random() % 250) - 130);
            break;
        case Pairs::Signs:
            x = x * 2 - 1;
            q = random() % 4 == 0 ? -x : q * 2 - 1;
            break;
        case Pairs::Sparse:
            x = random() % 4 == 0 ? x : 0.f;
            q = random() % 4 == 0 ? q : 0.f;
            break;
        case Pairs::Odd: {
            using Limits = std::numeric_limits<float>;
            const float odd[] = {
                    Limits::infinity(),
                    -Limits::infinity(),
                    Limits::quiet_NaN(),
                    Limits::denorm_min(),
                    Limits::min(),
                    Limits::max(),
                    -Limits::max(),
                    -0.f};
            x = random() % 8 == 0 ? odd[random() % 8] : x;
            q = random() % 8 == 0 ? odd[random() % 8] : q;
            break;
        }
    }
}

/// How close it has to be where float32 tells neighbours apart: a part of the
/// distance.
template <Metric kMetric, int kHalves>
void expectBelow(double closeness) {
    constexpr int kCount = 20000;
    std::mt19937 random(3);
    for (Pairs kind : kPairs) {
        for (int d : {1, 2, 7, 33, 250, 1100, 2048}) {
            if (d > 250 && kind != Pairs::Small) {
                continue; // the more components, the less close
            }
            SCOPED_TRACE(
                    "halves " + std::to_string(kHalves) + " kind " +
                    std::to_string(int(kind)) + " d " + std::to_string(d));
            const int pairs = kCount / d;
            std::vector<float> x(size_t(pairs) * d);
            std::vector<float> q(x.size());
            for (size_t i = 0; i < x.size(); ++i) {
                drawComponent(kind, random, x[i], q[i]);
            }
            if (kind == Pairs::Small) {
                const double power = kMetric == Metric::Lp ? kHalves / 2.0
                        : kMetric == Metric::L2            ? 2
                                                           : 1;
                const auto term = float(std::exp2(-150 / power) * 1.0001);
                std::fill(x.begin(), x.end(), term);
                std::fill(q.begin(), q.end(), 0.0f);
            }
            const DeviceBuffer<float> deviceX(x);
            const DeviceBuffer<float> deviceQ(q);
            DeviceBuffer<float> out(pairs);
            leastKernel<kMetric, kHalves><<<(pairs + 127) / 128, 128>>>(
                    deviceX.data(), deviceQ.data(), pairs, d, out.data());
            BITS_CUDA_CHECK(cudaGetLastError());
            const std::vector<float> least = out.download();
            for (int i = 0; i < pairs; ++i) {
                const float distance =
                        canonical::toFloat32(canonical::distance<kMetric>(
                                x.data() + size_t(i) * d,
                                q.data() + size_t(i) * d,
                                d,
                                canonical::Power(kHalves / 2.0)));
                if (std::isnan(distance)) {
                    continue; // never a result
                }
                ASSERT_FALSE(least[i] > distance)
                        << "pair " << i << " " << least[i] << " " << distance;
                // Logarithms lose more than what tells near pairs apart.
                if (kind == Pairs::Uniform ||
                    (kind == Pairs::Near && kMetric != Metric::JensenShannon)) {
                    ASSERT_GE(least[i], closeness * distance - 1e-30)
                            << "pair " << i;
                }
            }
        }
    }
}

class LeastTermsTest : public GpuTest {};

TEST_F(LeastTermsTest, SmallIsNeverAbove) {
    constexpr double kClose = 0.9998;
    expectBelow<Metric::L2, 4>(kClose);
    expectBelow<Metric::L1, 0>(kClose);
    expectBelow<Metric::Linf, 0>(kClose);
    expectBelow<Metric::Canberra, 0>(kClose);
    expectBelow<Metric::BrayCurtis, 0>(kClose);
    expectBelow<Metric::Lp, 3>(kClose);
    expectBelow<Metric::Lp, 4>(kClose);
    expectBelow<Metric::Lp, 5>(kClose);
    expectBelow<Metric::Lp, 6>(kClose);
    expectBelow<Metric::Lp, 8>(kClose);
    // Of logarithms the first term of a series: 1 / (2 log 2) of it or more.
    expectBelow<Metric::JensenShannon, 0>(0.7);
}

} // namespace
} // namespace faiss_bits::test
