/// The bound of estimates of float32 (IvfFloatBound.h), without a device: of
/// two vectors the nearer one has an estimate within the limit that the farther
/// one's sets.

#include <random>

#include "kernels/ivf/IvfFloatBound.h"
#include "tests/ivf/EstimateBoundHarness.h"

namespace faiss_bits::test {
namespace {

struct Vectors {
    Metric metric;
    std::vector<float> q;
    std::vector<std::vector<float>> x;
};

/// Four sums, each from the first component on; written from the comment of
/// IvfFloatBound.h.
float estimateOf(
        Metric metric,
        const std::vector<float>& q,
        const std::vector<float>& x,
        float& sizes) {
    float sums[4] = {};
    sizes = 0;
    for (size_t i = 0; i < q.size(); ++i) {
        float& sum = sums[i % 4];
        if (metric == Metric::L2) {
            const float off = x[i] - q[i];
            sum = std::fma(off, off, sum);
        } else {
            sum = std::fma(x[i], q[i], sum);
            sizes = std::fma(std::abs(x[i]), std::abs(q[i]), sizes);
        }
    }
    const float all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    return metric == Metric::L2 ? all : -all;
}

/// part: of the bound.
testing::AssertionResult holds(const Vectors& all, double part = 1) {
    const int d = int(all.q.size());
    std::vector<double> keys;
    std::vector<float> values;
    float most = 0;
    for (const auto& x : all.x) {
        float sizes = 0;
        values.push_back(estimateOf(all.metric, all.q, x, sizes));
        if (all.metric == Metric::InnerProduct &&
            !std::isfinite(values.back())) {
            return testing::AssertionSuccess(); // it has none, nor a limit
        }
        keys.push_back(canonicalKey({all.metric, x, all.q, {}}));
        most = std::max(most, sizes);
    }
    const float bound = ivf_float::boundOf(most, d);
    for (size_t near = 0; near < keys.size(); ++near) {
        for (size_t far = 0; far < keys.size(); ++far) {
            if (!(keys[near] <= keys[far])) {
                continue;
            }
            const double from = values[far];
            double limit = all.metric == Metric::L2
                    ? ivf_float::limitOf<Metric::L2>(from, bound, d)
                    : ivf_float::limitOf<Metric::InnerProduct>(from, bound, d);
            limit = from + part * (limit - from);
            if (!std::isnan(limit) && !(values[near] <= roundedUp(limit))) {
                return testing::AssertionFailure()
                        << "keys " << keys[near] << " and " << keys[far]
                        << " have estimates " << values[near] << " and " << from
                        << ", limit " << limit << "; d=" << d
                        << " metric=" << int(all.metric);
            }
        }
    }
    return testing::AssertionSuccess();
}

TEST(IvfFloatBound, HoldsForRandomVectors) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int d : {1, 2, 3, 16, 31, 128, 255, 256}) {
            for (float size :
                 {1.0f, 1e-38f, 1e-30f, 1e-22f, 1e-6f, 1e15f, 1e19f, 1e38f}) {
                for (float offset : {0.0f, 1.0f, 1e4f}) {
                    Vectors all{metric, {}, {}};
                    all.x.resize(24);
                    for (int i = 0; i < d; ++i) {
                        const float middle = offset * float(1 + i % 5);
                        all.q.push_back(size * (middle + normal(random)));
                        for (auto& x : all.x) {
                            x.push_back(size * (middle + normal(random)));
                        }
                    }
                    // Some are the query, or nearly, or what others are.
                    all.x[0] = all.q;
                    for (int i = 0; i < d; ++i) {
                        all.x[1][i] = std::nextafter(all.q[i], all.x[2][i]);
                        all.x[3][i] = all.x[4][d - 1 - i];
                        all.x[5][i] = std::nextafter(all.x[4][i], 0.0f);
                    }
                    ASSERT_TRUE(holds(all)) << size << " " << offset;
                }
            }
        }
    }
}

TEST(IvfFloatBound, NoBoundWouldNotHold) {
    // Permutations have the same canonical distance, or nearly, and sums that
    // differ.
    std::mt19937 random(2);
    std::normal_distribution<float> normal;
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        Vectors all{metric, std::vector<float>(128, 1.0f), {}};
        std::vector<float> x;
        for (int i = 0; i < 128; ++i) {
            x.push_back(normal(random));
        }
        for (int i = 0; i < 40; ++i) {
            std::shuffle(x.begin(), x.end(), random);
            all.x.push_back(x);
        }
        EXPECT_TRUE(holds(all));
        EXPECT_FALSE(holds(all, 0));
    }
}

TEST(IvfFloatBound, GreatNumbersHaveNoLimit) {
    EXPECT_TRUE(std::isnan(
            ivf_float::limitOf<Metric::L2>(double(INFINITY), 0, 16)));
    EXPECT_TRUE(std::isnan(ivf_float::limitOf<Metric::L2>(double(NAN), 0, 16)));
    EXPECT_FALSE(std::isnan(ivf_float::limitOf<Metric::L2>(1e30, 0, 16)));
    EXPECT_TRUE(
            std::isnan(ivf_float::limitOf<Metric::InnerProduct>(1, NAN, 16)));
}

} // namespace
} // namespace faiss_bits::test
