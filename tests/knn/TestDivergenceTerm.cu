/// What a component adds to Jensen-Shannon as kernels take it: the bits of the
/// definition, for every kind of component, on the host and on a GPU.

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "kernels/canonical/Distance.h"
#include "kernels/knn/certified/DivergenceTerm.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"

namespace faiss_bits::test {
namespace {

struct Pair {
    float x = 0;
    float q = 0;
};

/// Zeros, denormals, numbers around one, large ones, infinities and NaN, of
/// both signs, each with each.
std::vector<Pair> oddPairs() {
    using Limits = std::numeric_limits<float>;
    std::vector<float> odd;
    for (float x :
         {0.0f,
          Limits::denorm_min(),
          3 * Limits::denorm_min(),
          Limits::min(),
          0x1p-64f,
          0x1p-40f,
          1 - 0x1p-24f,
          1.0f,
          1 + 0x1p-23f,
          3.0f,
          0x1p60f,
          Limits::max(),
          Limits::infinity(),
          Limits::quiet_NaN()}) {
        odd.push_back(x);
        odd.push_back(-x);
    }
    std::vector<Pair> pairs;
    for (float x : odd) {
        for (float q : odd) {
            pairs.push_back({x, q});
        }
    }
    return pairs;
}

/// Histograms: of sizes that are alike, of small numbers, and copies.
std::vector<Pair> histograms() {
    std::mt19937 random(2);
    std::uniform_real_distribution<float> unit;
    std::vector<Pair> pairs;
    for (int i = 0; i < 300000; ++i) {
        const float x = unit(random);
        const float scale = std::ldexp(1.0f, -int(random() % 40));
        pairs.push_back({x, unit(random)});
        pairs.push_back({x, unit(random) * scale});
        pairs.push_back({x * scale, unit(random) * scale});
        pairs.push_back({x, x + 0x1p-22f * (unit(random) - 0.5f)});
        pairs.push_back({float(random() % 20), float(random() % 20)});
    }
    return pairs;
}

/// Every float32 is as likely: sizes that differ by far, and copies.
std::vector<Pair> anyPairs() {
    std::mt19937 random(1);
    std::vector<Pair> pairs;
    for (int i = 0; i < 200000; ++i) {
        const float x = std::bit_cast<float>(uint32_t(random()));
        pairs.push_back({x, std::bit_cast<float>(uint32_t(random()))});
        pairs.push_back({x, x});
        pairs.push_back({x, -x});
        pairs.push_back({x, std::nextafter(x, 1.0f)});
    }
    return pairs;
}

/// By the definition, on the host.
double definition(const Pair& pair) {
    double sum = 0;
    canonical::Terms<Metric::JensenShannon>::add(&sum, pair.x, pair.q, {});
    return sum;
}

void expectTerms(
        const std::vector<Pair>& pairs,
        const std::vector<double>& terms) {
    ASSERT_EQ(terms.size(), pairs.size());
    for (size_t i = 0; i < pairs.size(); ++i) {
        const double want = definition(pairs[i]);
        if (std::isnan(want)) {
            ASSERT_TRUE(std::isnan(terms[i]))
                    << pairs[i].x << " and " << pairs[i].q;
            continue;
        }
        ASSERT_EQ(
                std::bit_cast<uint64_t>(terms[i]),
                std::bit_cast<uint64_t>(want))
                << pairs[i].x << " and " << pairs[i].q;
    }
}

__global__ void termsKernel(const Pair* pairs, int n, double* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = canonical::add(0.0, divergenceTerm(pairs[i].x, pairs[i].q));
    }
}

std::vector<double> onTheGpu(const std::vector<Pair>& pairs) {
    constexpr int kThreads = 256;
    const DeviceBuffer<Pair> devicePairs(pairs);
    DeviceBuffer<double> terms(pairs.size());
    termsKernel<<<int(pairs.size() + kThreads - 1) / kThreads, kThreads>>>(
            devicePairs.data(), int(pairs.size()), terms.data());
    BITS_CUDA_CHECK(cudaGetLastError());
    BITS_CUDA_CHECK(cudaDeviceSynchronize());
    return terms.download();
}

TEST(DivergenceTerm, OnTheHost) {
    for (const auto& pairs : {oddPairs(), histograms(), anyPairs()}) {
        std::vector<double> terms;
        for (const Pair& pair : pairs) {
            terms.push_back(
                    canonical::add(0.0, divergenceTerm(pair.x, pair.q)));
        }
        expectTerms(pairs, terms);
    }
}

class DivergenceTermOnGpu : public GpuTest {};

TEST_F(DivergenceTermOnGpu, SmallOddComponents) {
    expectTerms(oddPairs(), onTheGpu(oddPairs()));
}

TEST_F(DivergenceTermOnGpu, Histograms) {
    expectTerms(histograms(), onTheGpu(histograms()));
}

TEST_F(DivergenceTermOnGpu, AnyBits) {
    expectTerms(anyPairs(), onTheGpu(anyPairs()));
}

} // namespace
} // namespace faiss_bits::test
