/// The bound of estimates in float32 (IvfFloorBound.h), without a device: of
/// two vectors the nearer one has an estimate within the limit that the farther
/// one's sets; and some come close to it.

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/ivf/IvfFloorBound.h"
#include "tests/common/CanonicalOracle.h"

namespace faiss_bits::test {
namespace {

/// Estimates and canonical keys of some vectors, and the bound.
struct Estimates {
    std::vector<float> values;
    std::vector<double> keys;
    float bound = 0;
};

/// What a limit is off by, of what it is from the estimate that sets it, as far
/// as vectors come beyond that: 1 is the limit.
template <Metric kMetric>
double worstOf(const Estimates& e, int d) {
    double worst = 0;
    for (size_t i = 0; i < e.keys.size(); ++i) {
        const double limit =
                ivf_code::limitOf<kMetric>(double(e.values[i]), e.bound, d);
        for (size_t j = 0; j < e.keys.size(); ++j) {
            if (e.keys[j] <= e.keys[i]) {
                worst = std::max(
                        worst,
                        (double(e.values[j]) - e.values[i]) /
                                (limit - e.values[i]));
            }
        }
    }
    return worst;
}

template <Metric kMetric>
double keyOfVectors(const std::vector<float>& q, const std::vector<float>& x) {
    const double distance =
            canonicalDistance(kMetric, 0, q.data(), x.data(), int(q.size()));
    return kMetric == Metric::L2 ? distance : -distance;
}

/// A lane's order of components, four sums that are added up.
template <class AddOne>
float sumOf(int d, const AddOne& addOne) {
    float sums[4] = {};
    for (int c = 0; c < d; ++c) {
        addOne(c, sums[c % 4]);
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <Metric kMetric>
Estimates ofCodes(int d, float size, float offset, std::mt19937& random) {
    std::normal_distribution<float> normal;
    std::vector<float> start(d), step(d), center(d), q(d);
    for (int c = 0; c < d; ++c) {
        const float middle = offset * float(1 + c % 5);
        start[c] = size * (middle - 1 + 0.1f * normal(random));
        step[c] = size * std::ldexp(std::fabs(normal(random)), -6 - c % 9);
        center[c] = size * normal(random);
        q[c] = size * (middle + normal(random));
    }
    Estimates e;
    ivf_code::PairSums sums;
    std::vector<ivf_code::Entry> entries;
    for (int c = 0; c < d; ++c) {
        entries.push_back(ivf_code::entryOf<kMetric>(
                start[c], step[c], center[c], q[c], sums));
    }
    e.bound = ivf_code::boundOf<kMetric>(sums.size, d);
    std::vector<int> codes(d);
    for (int v = 0; v < 40; ++v) {
        // Some vectors differ in one code alone, and some are alike.
        if (v % 4 == 0) {
            for (int& code : codes) {
                code = int(random() % 256);
            }
        } else if (v % 4 == 1) {
            codes[random() % d] = int(random() % 256);
        } else if (v % 4 == 2) { // as near as can be
            for (int c = 0; c < d; ++c) {
                const float code = (q[c] - center[c] - start[c]) / step[c];
                codes[c] = code > 0 ? int(std::min(code, 255.0f)) : 0;
            }
        }
        std::vector<float> x(d);
        for (int c = 0; c < d; ++c) {
            x[c] = std::fma(float(codes[c]), step[c], start[c]) + center[c];
        }
        e.keys.push_back(keyOfVectors<kMetric>(q, x));
        const float sum = sumOf(d, [&](int c, float& to) {
            ivf_code::add<kMetric>(
                    to,
                    128.0f + float(codes[c]) / 256,
                    entries[c].factor,
                    entries[c].term);
        });
        e.values.push_back(ivf_code::keyOf<kMetric>(sum, sums.base));
    }
    return e;
}

/// Of product codes by tables: parts of two components, of four rows each.
template <Metric kMetric>
Estimates ofTables(int d, float size, float offset, std::mt19937& random) {
    constexpr int kRows = 4;
    d += d % 2;
    std::normal_distribution<float> normal;
    std::vector<float> q(d), center(d), book(size_t(d) * kRows);
    for (int c = 0; c < d; ++c) {
        const float middle = offset * float(1 + c % 5);
        q[c] = size * (middle + normal(random));
        center[c] = size * (middle + normal(random));
        for (int r = 0; r < kRows; ++r) {
            book[c * kRows + r] = size * std::ldexp(normal(random), -c % 7);
        }
    }
    const auto squareOf = [&](const std::vector<float>& x) {
        float sum = 0;
        for (float value : x) {
            sum = std::fma(value, value, sum);
        }
        return sum;
    };
    std::vector<float> list = center;
    float base = 0;
    for (int c = 0; c < d; ++c) {
        base = std::fma(q[c], center[c], base);
        if (kMetric == Metric::L2) {
            list[c] = q[c] - center[c];
        }
    }
    std::vector<float> table(d / 2 * kRows);
    float longest = 0;
    for (int part = 0; part < d / 2; ++part) {
        float most = 0;
        for (int r = 0; r < kRows; ++r) {
            float square = 0;
            for (int c = 2 * part; c < 2 * part + 2; ++c) {
                const float y = book[c * kRows + r];
                square = std::fma(y, y, square);
                float& entry = table[part * kRows + r];
                if (kMetric == Metric::L2) {
                    const float t = list[c] - y;
                    entry = std::fma(t, t, entry);
                } else {
                    entry = std::fma(q[c], y, entry);
                }
            }
            most = std::max(most, square);
        }
        longest += most;
    }
    Estimates e;
    e.bound = ivf_code::boundOfTables<kMetric>(
            squareOf(q), squareOf(list), longest, d);
    std::vector<int> codes(d / 2);
    for (int v = 0; v < 40; ++v) {
        if (v % 2 == 0) {
            for (int& code : codes) {
                code = int(random() % kRows);
            }
        } else {
            codes[random() % codes.size()] = int(random() % kRows);
        }
        std::vector<float> x(d);
        for (int c = 0; c < d; ++c) {
            x[c] = book[c * kRows + codes[c / 2]] + center[c];
        }
        e.keys.push_back(keyOfVectors<kMetric>(q, x));
        const float sum = sumOf(d / 2, [&](int part, float& to) {
            to += table[part * kRows + codes[part]];
        });
        e.values.push_back(ivf_code::keyOf<kMetric>(sum, base));
    }
    return e;
}

template <class Make, class Check>
void forSearches(const Make& make, const Check& check) {
    std::mt19937 random(7);
    for (int d : {1, 4, 8, 36, 128}) {
        for (float size : {1e-36f, 1e-20f, 1.0f, 1e12f}) {
            for (float offset : {0.0f, 1.0f, 1000.0f}) {
                for (int turn = 0; turn < 10; ++turn) {
                    check(make(d, size, offset, random), d);
                }
            }
        }
    }
}

template <Metric kMetric>
double worstOfAll() {
    double worst = 0;
    const auto check = [&](const Estimates& e, int d) {
        worst = std::max(worst, worstOf<kMetric>(e, d));
    };
    forSearches(ofCodes<kMetric>, check);
    EXPECT_LE(worst, 1);
    forSearches(ofTables<kMetric>, check);
    EXPECT_LE(worst, 1);
    return worst;
}

TEST(IvfFloorBound, HoldsAndComesCloseForL2) {
    EXPECT_GT(worstOfAll<Metric::L2>(), 0.02);
}

TEST(IvfFloorBound, HoldsAndComesCloseForInnerProducts) {
    EXPECT_GT(worstOfAll<Metric::InnerProduct>(), 0.003);
}

TEST(IvfFloorBound, WhatIsNotFiniteHasNoLimit) {
    for (float value : {INFINITY, float(NAN)}) {
        ivf_code::PairSums sums;
        ivf_code::entryOf<Metric::L2>(0, 1, value, 1, sums);
        const float bound = ivf_code::boundOf<Metric::L2>(sums.size, 4);
        const double limit = ivf_code::limitOf<Metric::L2>(1, bound, 4);
        EXPECT_FALSE(limit < INFINITY) << value;
    }
}

} // namespace
} // namespace faiss_bits::test
