/// A term of Canberra as kernels take it, without a device: the bits of the
/// definition, for every kind of component.

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/canonical/Distance.h"
#include "kernels/knn/certified/CanberraTerm.h"

namespace faiss_bits::test {
namespace {

void expectSameBits(float x, float q) {
    double sum = 0;
    canonical::Terms<Metric::Canberra>::add(&sum, x, q, {});
    const double term = canonical::add(0.0, canberraTerm(x, q));
    if (std::isnan(sum)) {
        EXPECT_TRUE(std::isnan(term)) << x << " and " << q;
        return;
    }
    EXPECT_EQ(std::bit_cast<uint64_t>(term), std::bit_cast<uint64_t>(sum))
            << x << " and " << q;
}

TEST(CanberraTerm, OddComponents) {
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
    for (float x : odd) {
        for (float q : odd) {
            expectSameBits(x, q);
        }
    }
}

/// Every float32 is as likely: sizes that differ by far, and copies.
TEST(CanberraTerm, AnyBits) {
    std::mt19937 random(1);
    for (int i = 0; i < 200000; ++i) {
        const float x = std::bit_cast<float>(uint32_t(random()));
        expectSameBits(x, std::bit_cast<float>(uint32_t(random())));
        expectSameBits(x, x);
        expectSameBits(x, -x);
        expectSameBits(x, std::nextafter(x, 1.0f));
    }
}

} // namespace
} // namespace faiss_bits::test
