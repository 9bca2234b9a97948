/// How far a vector can be whose key in a scan is known, without a device.

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/knn/KeyReachScan.h"

namespace faiss_bits::test {
namespace {

Rows rowsOf(int n, int d, const std::function<float(int, int)>& component) {
    Rows rows(n, std::vector<float>(d));
    for (int v = 0; v < n; ++v) {
        for (int i = 0; i < d; ++i) {
            rows[v][i] = component(v, i);
        }
    }
    return rows;
}

const Metric kMetrics[] = {Metric::L2, Metric::InnerProduct};

/// Of half of the pairs the canonical key is beyond that of the scan, and none
/// is beyond its reach.
TEST(KeyReach, Uniform) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(-0.5f, 0.5f);
    const auto any = [&](int, int) { return uniform(random); };
    for (Metric metric : kMetrics) {
        for (int d : {257, 768, 2000}) {
            const Counted counted =
                    countPairs(metric, rowsOf(60, d, any), rowsOf(20, d, any));
            EXPECT_GT(counted.beyondKey, counted.pairs / 4);
            EXPECT_LT(counted.beyondKey, counted.pairs * 3 / 4);
            EXPECT_EQ(counted.endless, 0);
            EXPECT_LT(counted.widest, 1.07);
        }
    }
}

/// The center's product counts for as much as all other errors, and is off by
/// all that it may be.
TEST(KeyReach, Center) {
    std::mt19937 random(6);
    std::uniform_real_distribution<float> uniform(-0.5f, 0.5f);
    for (int d : {257, 768}) {
        std::vector<float> center(d);
        for (float& one : center) {
            one = 3 + uniform(random);
        }
        const Rows vectors = rowsOf(
                60, d, [&](int, int i) { return center[i] + uniform(random); });
        const Rows queries =
                rowsOf(20, d, [&](int, int) { return 1 + uniform(random); });
        for (double off : {0x1p-20, 0x1p-10, 0x1p-4}) {
            const Counted counted = countPairs(
                    Metric::InnerProduct, vectors, queries, center, off);
            EXPECT_EQ(counted.endless, 0);
            EXPECT_LT(counted.widest, 1.07);
            if (off > 0x1p-10) {
                EXPECT_EQ(counted.beyondKey, counted.pairs);
                // Nearly all of the reach is what the product is off by.
                EXPECT_GT(counted.closest, 0.9);
            }
        }
    }
}

/// All components are rounded to the greater size by nearly half of the last
/// place, so that no error takes another away.
TEST(KeyReach, RoundedAlike) {
    std::mt19937 random(2);
    for (Metric metric : kMetrics) {
        for (int d : {260, 768}) {
            const Rows vectors = rowsOf(60, d, [&](int, int i) {
                const float size = 1 + float(random() % 200) * 0x1p-10f +
                        0x1p-11f * (1 + 0x1p-6f);
                return i % 3 == 0 ? -size : size;
            });
            const Rows queries = rowsOf(10, d, [&](int, int i) {
                const float size = 1 + float(random() % 200) * 0x1p-10f;
                return i % 3 == 0 ? -size : size;
            });
            const Counted counted = countPairs(metric, vectors, queries);
            EXPECT_EQ(counted.beyondKey, counted.pairs);
            EXPECT_EQ(counted.endless, 0);
            // The bound is not much wider than it must be.
            EXPECT_GT(counted.closest, 0.25);
        }
    }
}

/// Copies that differ in their last bits, all rounded to the greater size: keys
/// are 0, and canonical distances are more.
TEST(KeyReach, Copies) {
    std::mt19937 random(3);
    const auto near = [&](int, int i) {
        const float size = 1 + float(i % 50) * 0x1p-10f +
                0x1p-11f * (1 + 0x1p-6f) + float(random() % 8) * 0x1p-23f;
        return i % 3 == 0 ? -size : size;
    };
    for (Metric metric : kMetrics) {
        const int d = 300;
        const Counted counted =
                countPairs(metric, rowsOf(50, d, near), rowsOf(10, d, near));
        EXPECT_EQ(counted.beyondKey, counted.pairs);
        EXPECT_EQ(counted.endless, 0);
        EXPECT_LT(counted.widest, 1.07);
    }
}

/// Rows of every size, among which the small ones are lost.
TEST(KeyReach, Sizes) {
    std::mt19937 random(4);
    std::uniform_real_distribution<float> around(-1.0f, 1.0f);
    const int d = 270;
    const auto sized = [&](int most) {
        return [&, most](int v, int) {
            return std::ldexp(around(random), -(v * 7 % most));
        };
    };
    for (Metric metric : kMetrics) {
        for (int most : {12, 40, 90}) {
            const Counted counted = countPairs(
                    metric,
                    rowsOf(60, d, sized(most)),
                    rowsOf(40, d, sized(most)));
            EXPECT_GT(counted.beyondKey, 0);
        }
    }
    // Queries of zeros, and vectors that are.
    const auto zeros = [](int, int) { return 0.0f; };
    const Counted ofZeros = countPairs(
            Metric::L2, rowsOf(9, d, sized(12)), rowsOf(2, d, zeros));
    EXPECT_EQ(ofZeros.pairs, 18);
    countPairs(Metric::L2, rowsOf(9, d, zeros), rowsOf(3, d, sized(12)));
}

/// No distance beyond the reach has a key that is as small, as the bound has
/// it: it need not be looked for but at the reach.
TEST(KeyReach, HoldsBeyond) {
    std::mt19937 random(5);
    const auto size = [&](int least, int most) {
        return std::ldexp(
                1 + double(random() % 1000) / 1000,
                least + int(random() % (most - least)));
    };
    int64_t found = 0;
    int64_t doubled = 0;
    for (int i = 0; i < 20000; ++i) {
        ImageBound bound;
        bound.metric = i % 4 == 0 ? Metric::InnerProduct : Metric::L2;
        bound.d = 1 + int(random() % (i % 5 == 0 ? 100000 : 2000));
        bound.norm = random() % 9 == 0 ? 0 : size(-40, 40);
        bound.residual = random() % 9 == 0 ? 0 : size(-60, 38);
        bound.greatest = size(-40, 40);
        bound.imageResidual = random() % 9 == 0 ? 0 : size(-60, 38);
        bound.normError = random() % 9 == 0 ? 0 : size(-80, 60);
        double key = random() % 9 == 0 ? 0 : size(-80, 80);
        if (bound.metric == Metric::InnerProduct && random() % 2) {
            key = -key;
        }
        const double reach = reachOfKey(key, bound);
        if (std::isinf(reach)) {
            continue;
        }
        ++found;
        doubled += reach - key > 1.1 * bound.at(key);
        EXPECT_GE(reach, key);
        for (int step = -40; step <= 60; ++step) {
            const double c = reach +
                    std::max(std::fabs(reach), 0x1p-100) *
                            std::ldexp(1.0, step);
            const double least = c - bound.at(c);
            if (std::isfinite(least)) {
                ASSERT_GE(least, key) << "c = " << c << ", reach = " << reach;
            }
        }
    }
    EXPECT_GT(found, 10000);
    EXPECT_GT(doubled, 100); // one try is not enough for all
}

/// Where nothing is known of a key, it reaches everything.
TEST(KeyReach, UnknownIsEndless) {
    ImageBound bound;
    bound.d = 300;
    bound.norm = 0x1p70; // beyond the range of the bound
    EXPECT_EQ(reachOfKey(1.0, bound), INFINITY);
    bound.norm = NAN;
    EXPECT_EQ(reachOfKey(1.0, bound), INFINITY);
    bound.norm = 1;
    EXPECT_EQ(reachOfKey(double(NAN), bound), INFINITY);
    bound.d = 1 << 23; // sums are off by more than themselves
    EXPECT_EQ(reachOfKey(1.0, bound), INFINITY);
}

} // namespace
} // namespace faiss_bits::test
