/// The bound of estimates (IvfEstimateBound.h), without a device: products of
/// float16 words, added up as badly as tensor cores may, stay within it; and
/// some come close, so that a smaller bound would fail.

#include <random>

#include "tests/ivf/EstimateBoundHarness.h"

namespace faiss_bits::test {
namespace {

constexpr int kDims[] = {1, 2, 3, 16, 31, 33, 64, 128, 129, 300, 768};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Components whose rounding to float16 loses as much as can be, all to the
/// same side: just below the middle of two numbers, or just above.
float hardest(float value, bool up) {
    int exponent = 0;
    std::frexp(value, &exponent);
    const float unit = std::ldexp(1.0f, exponent - 11);
    const float middle = (std::floor(value / unit) + 0.5f) * unit;
    return std::nextafter(middle, up ? HUGE_VALF : -HUGE_VALF);
}

TEST(IvfEstimateBound, HoldsForRandomPairs) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int d : kDims) {
            const Factors factors = ivf_estimate::factorsOf(metric, d);
            for (float size : {1.0f, 1e-30f, 1e-18f, 1e-6f, 1e6f, 1e15f}) {
                for (float offset : {0.0f, 1.0f, 1e4f}) {
                    for (int run = 0; run < 12; ++run) {
                        Pair p{metric, {}, {}, {}};
                        p.shift = int(random() % 13);
                        const float ofQuery =
                                run % 3 ? 1 : std::ldexp(1.0f, run - 6);
                        for (int i = 0; i < d; ++i) {
                            const float middle = offset * (1 + float(i % 5));
                            const auto make = [&](float times) {
                                return size * (middle + times * normal(random));
                            };
                            p.c.push_back(run % 4 ? make(1) : 0);
                            p.x.push_back(make(1));
                            p.q.push_back(make(ofQuery));
                        }
                        if (run == 5) {
                            p.q = p.x;
                        } else if (run == 6) {
                            p.c = p.x;
                        } else if (run == 7) {
                            p.greatest = 1e6f * size * size * float(d);
                        }
                        for (Sums order : kSums) {
                            ASSERT_TRUE(holds(p, factors, order))
                                    << "size=" << size << " offset=" << offset
                                    << " run=" << run;
                        }
                    }
                }
            }
        }
    }
}

/// A pair along one direction that float16 rounds to one side.
Pair hardPair(Metric metric, int d, bool up, std::mt19937& random) {
    Pair p{metric, {}, {}, std::vector<float>(d, 0)};
    for (int i = 0; i < d; ++i) {
        // In the lower part of an octave a part is larger.
        const float value = hardest(1.0f + float(random() % 4) / 1024, up) *
                (random() % 2 ? 1.0f : -1.0f);
        p.x.push_back(value);
        p.q.push_back(value);
    }
    return p;
}

TEST(IvfEstimateBound, HoldsForTheHardestAndNoLess) {
    std::mt19937 random(2);
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int d : kDims) {
            const Factors factors = ivf_estimate::factorsOf(metric, d);
            double used = 0;
            double usedWidth = 0;
            for (bool up : {false, true}) {
                for (bool isOpposite : {false, true}) {
                    Pair p = hardPair(metric, d, up, random);
                    for (float& q : p.q) {
                        q = isOpposite ? -q : q;
                    }
                    for (Sums order : kSums) {
                        ASSERT_TRUE(
                                holds(p, factors, order, &used, &usedWidth));
                    }
                }
            }
            // Sums are proved for worse orders than there are here.
            EXPECT_GT(used, d <= 64 ? 0.9 : 0.7) << d;
            EXPECT_GT(usedWidth, d <= 64 ? 0.9 : 0.8) << d;
            EXPECT_LE(used, 1) << d;
        }
    }
}

TEST(IvfEstimateBound, HoldsForSmallVectorsAmongLargeOnes) {
    // What float16 has no word for is lost as part of the greatest.
    std::mt19937 random(3);
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int d : kDims) {
            const Factors factors = ivf_estimate::factorsOf(metric, d);
            double used = 0;
            for (int shift : {0, 5, 12}) {
                for (float part : {0.49f, 0.51f, 1.49f, 3.0f}) {
                    for (float ofQuery : {1e-5f, 0.01f, 1.0f, 100.0f}) {
                        Pair p{metric, {}, {}, std::vector<float>(d, 0)};
                        p.shift = shift;
                        p.greatest = 4; // its root is brought to 2^14
                        const float unit = std::ldexp(
                                1.0f,
                                -24 + shift - 13); // the least of float16
                        for (int i = 0; i < d; ++i) {
                            p.x.push_back(part * unit);
                            p.q.push_back(ofQuery * 2 / std::sqrt(float(d)));
                        }
                        for (Sums order : kSums) {
                            ASSERT_TRUE(holds(p, factors, order, &used))
                                    << part << " " << ofQuery;
                        }
                    }
                }
            }
            EXPECT_LE(used, 1) << d;
        }
    }
}

TEST(IvfEstimateBound, HoldsWhereSquaresAreLost) {
    std::mt19937 random(6);
    std::normal_distribution<float> normal;
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int d : kDims) {
            const Factors factors = ivf_estimate::factorsOf(metric, d);
            for (float size : {1e-22f, 1e-24f, 1e-30f, 1e-38f}) {
                for (float ofQuery : {1e-30f, 1.0f, 1e10f, 1e15f}) {
                    for (bool isSwapped : {false, true}) {
                        Pair p{metric, {}, {}, std::vector<float>(d, 0)};
                        for (int i = 0; i < d; ++i) {
                            p.x.push_back(size * normal(random));
                            p.q.push_back(ofQuery * normal(random));
                        }
                        if (isSwapped) {
                            std::swap(p.x, p.q);
                        }
                        for (Sums order : kSums) {
                            ASSERT_TRUE(holds(p, factors, order))
                                    << size << " " << ofQuery;
                        }
                    }
                }
            }
        }
    }
}

TEST(IvfEstimateBound, SmallerFactorsFail) {
    // What is said above says something: of each factor a part is not enough.
    std::mt19937 random(4);
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        const int d = 16;
        Factors factors = ivf_estimate::factorsOf(metric, d);
        Pair p = hardPair(metric, d, false, random);
        ASSERT_TRUE(holds(p, factors, Sums::Forward));
        factors.squares *= 0.9f;
        const bool isBelow = bool(holds(p, factors, Sums::Forward));
        for (float& q : p.q) {
            q = -q;
        }
        const bool isAbove = bool(holds(p, factors, Sums::Forward));
        EXPECT_FALSE(isBelow && isAbove) << int(metric);

        // A vector that is lost among greater ones, and a long query.
        factors = ivf_estimate::factorsOf(metric, d);
        Pair small{metric, {}, {}, std::vector<float>(d, 0)};
        small.shift = 12;
        small.greatest = 4;
        const float unit = 0x1p-25f;
        small.x.assign(d, 0.49f * unit);
        small.q.assign(d, metric == Metric::L2 ? 0x1p-17f : 1.0f);
        ASSERT_TRUE(holds(small, factors, Sums::Forward));
        factors.greatest = 0;
        EXPECT_FALSE(holds(small, factors, Sums::Forward)) << int(metric);
    }
}

TEST(IvfEstimateBound, ScalesArePowersOfTwoThatFit) {
    std::mt19937 random(5);
    for (int exponent = -126; exponent <= 120; ++exponent) {
        for (float part : {1.0f, 1.1f, 1.9999999f}) {
            const float square = std::ldexp(part, exponent);
            const float scale = ivf_estimate::scaleOf(square);
            int e = 0;
            EXPECT_EQ(std::frexp(scale, &e), 0.5f);
            EXPECT_EQ(scale * ivf_estimate::inverseOf(scale), 1.0f);
            const double root = std::sqrt(double(square)) * scale;
            EXPECT_LT(root, 0x1p15) << exponent;
            EXPECT_GE(root, 0x1p14) << exponent;
        }
    }
    EXPECT_LE(ivf_estimate::scaleOf(0), 0x1p78f);
    EXPECT_FALSE(ivf_estimate::isSuited(2, 1));
    EXPECT_FALSE(ivf_estimate::isSuited(0x1p-13f, 1));
    EXPECT_FALSE(ivf_estimate::isSuited(kNan, 1));
}

} // namespace
} // namespace faiss_bits::test
