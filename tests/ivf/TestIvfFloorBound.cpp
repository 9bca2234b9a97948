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
    double (*limitOf)(double, float, int) = nullptr;
};

/// What a limit is off by, of what it is from the estimate that sets it, as far
/// as vectors come beyond that: 1 is the limit.
double worstOf(const Estimates& e, int d) {
    double worst = 0;
    for (size_t i = 0; i < e.keys.size(); ++i) {
        const double limit = e.limitOf(double(e.values[i]), e.bound, d);
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

/// As matrix instructions add up: sixteen at a time, products are cut off below
/// the 24th bit of the largest.
class MatrixSum {
   public:
    void add(double product) {
        terms_.push_back(product);
        if (terms_.size() == 16) {
            close();
        }
    }
    float value() {
        close();
        return sum_;
    }

   private:
    void close() {
        double largest = std::fabs(sum_);
        for (double term : terms_) {
            largest = std::max(largest, std::fabs(term));
        }
        const double unit = std::ldexp(1.0, std::ilogb(largest) - 23);
        double sum = std::trunc(sum_ / unit) * unit;
        for (double term : terms_) {
            sum += largest > 0 ? std::trunc(term / unit) * unit : 0;
        }
        sum_ = largest > 0 ? float(sum) : 0.0f;
        terms_.clear();
    }

    float sum_ = 0;
    std::vector<double> terms_;
};

/// Of one vector.
template <Metric kMetric>
float sumOfCodes(
        const std::vector<int>& codes,
        const std::vector<ivf_code::Entry>& entries) {
    MatrixSum first, second;
    for (size_t c = 0; c < codes.size(); ++c) {
        const double code = codes[c] * double(ivf_code::kOfCode);
        if (kMetric == Metric::L2) {
            // Exact in float64, and so rounded once.
            const double value = double(__half2float(__double2half(
                    (code - entries[c].code) * entries[c].first +
                    entries[c].second)));
            first.add(value * value);
        } else {
            first.add(code * entries[c].first);
            second.add(code * entries[c].second);
        }
    }
    return std::fma(second.value(), ivf_code::kOfRest, first.value());
}

/// spread: of so many codes a component has some, and the query's is as near as
/// they are to each other; 256: all, and a query anywhere.
template <Metric kMetric>
Estimates ofSpreadCodes(
        int d,
        float size,
        float offset,
        int spread,
        std::mt19937& random) {
    std::normal_distribution<float> normal;
    const int lowest = 128 - spread / 2;
    std::vector<float> start(d), step(d), center(d), q(d);
    for (int c = 0; c < d; ++c) {
        const float middle = offset * float(1 + c % 5);
        start[c] = size * (middle - 1 + 0.1f * normal(random));
        step[c] = size * std::ldexp(std::fabs(normal(random)), -6 - c % 9);
        if (c % 31 == 30) {
            step[c] = 0; // of a component that all vectors have alike
        }
        center[c] = size * normal(random);
        const float code = float(lowest) + random() * 0x1p-32f * float(spread);
        q[c] = spread == 256 ? size * (middle + normal(random))
                             : start[c] + code * step[c] + center[c];
    }
    Estimates e;
    e.limitOf = ivf_code::limitOfCodes<kMetric>;
    ivf_code::PairSums sums;
    std::vector<ivf_code::Component> components;
    float greatest = 0;
    for (int c = 0; c < d; ++c) {
        components.push_back(ivf_code::componentOf<kMetric>(
                start[c], step[c], center[c], q[c], sums));
        greatest = std::max(
                greatest, ivf_code::magnitudeOf<kMetric>(components[c]));
    }
    const float scale = ivf_code::scaleOf<kMetric>(greatest);
    std::vector<ivf_code::Entry> entries;
    for (const ivf_code::Component& component : components) {
        entries.push_back(ivf_code::entryOf<kMetric>(component, scale, sums));
    }
    const float inverse = ivf_code::inverseOf(scale);
    e.bound = ivf_code::boundOf<kMetric>(sums.size, inverse, d);
    std::vector<int> codes(d);
    for (int v = 0; v < 40; ++v) {
        // Some vectors differ in one code alone, and some are alike.
        if (v % 4 == 0) {
            for (int& code : codes) {
                code = lowest + int(random() % spread);
            }
        } else if (v % 4 == 1) {
            codes[random() % d] = lowest + int(random() % spread);
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
        const float sum = sumOfCodes<kMetric>(codes, entries);
        e.values.push_back(
                ivf_code::keyOfCodes<kMetric>(sum, inverse, sums.base));
    }
    return e;
}

template <Metric kMetric>
Estimates ofCodes(int d, float size, float offset, std::mt19937& random) {
    return ofSpreadCodes<kMetric>(d, size, offset, 256, random);
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
    e.limitOf = ivf_code::limitOf<kMetric>;
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

template <class OfEstimates>
double worstOfAll(const OfEstimates& ofEstimates) {
    double worst = 0;
    const auto check = [&](const Estimates& e, int d) {
        worst = std::max(worst, worstOf(e, d));
    };
    forSearches(ofEstimates, check);
    EXPECT_LE(worst, 1);
    return worst;
}

TEST(IvfFloorBound, HoldsAndComesCloseForL2) {
    EXPECT_GT(worstOfAll(ofCodes<Metric::L2>), 0.05);
    EXPECT_GT(worstOfAll(ofTables<Metric::L2>), 0.02);
}

TEST(IvfFloorBound, HoldsAndComesCloseForInnerProducts) {
    EXPECT_GT(worstOfAll(ofCodes<Metric::InnerProduct>), 0.0003);
    EXPECT_GT(worstOfAll(ofTables<Metric::InnerProduct>), 0.003);
}

/// Whatever is subtracted from a code, as far as it goes and no farther.
TEST(IvfFloorBound, DifferencesOfCodesAreExact) {
    const auto isExact = [](double difference) {
        const double value = difference * double(ivf_code::kOfCode);
        return double(__half2float(__double2half(value))) == value;
    };
    const int most = int(ivf_code::kMostCode);
    for (int m = -most; m <= most; ++m) {
        EXPECT_TRUE(isExact(m)) << m;
        for (int n : {0, 1, 127, 254, 255}) {
            EXPECT_TRUE(isExact(n - m)) << n << " - " << m;
        }
    }
    EXPECT_FALSE(isExact(255 + most + 2));
}

/// What is subtracted is a whole number within its range, whatever the step.
TEST(IvfFloorBound, WhatIsSubtractedIsAWholeNumber) {
    for (float step : {0.0f, 1e-40f, 1e-30f, 1e-3f, 1.0f, -0.5f, 1e30f}) {
        for (float center :
             {0.0f, 1e-3f, 7.5f, -1792.4f, 1791.4f, -3000.0f, 1e9f, -1e30f}) {
            ivf_code::PairSums sums;
            const ivf_code::Component c = ivf_code::componentOf<Metric::L2>(
                    0, step, center, 0.5f, sums);
            const float scale = ivf_code::scaleOf<Metric::L2>(
                    ivf_code::magnitudeOf<Metric::L2>(c));
            const float code =
                    ivf_code::entryOf<Metric::L2>(c, scale, sums).code /
                    ivf_code::kOfCode;
            EXPECT_EQ(code, std::rint(code)) << step << " " << center;
            EXPECT_LE(std::fabs(code), ivf_code::kMostCode)
                    << step << " " << center;
            if (step == 1 && std::fabs(center) < 1792) {
                EXPECT_LE(std::fabs(code + (center - 0.5f)), 0.5f) << center;
            }
        }
    }
}

/// A query that is as near to vectors as they are to each other: the limit is
/// little farther from an estimate than float16 makes it.
TEST(IvfFloorBound, TightClustersHaveACloseLimit) {
    for (int spread : {4, 16, 64, 256}) {
        std::mt19937 random{uint32_t(spread)};
        double worst = 0;
        for (int turn = 0; turn < 20; ++turn) {
            const Estimates e =
                    ofSpreadCodes<Metric::L2>(128, 1, 0, spread, random);
            EXPECT_LE(worstOf(e, 128), 1) << spread;
            for (size_t v = 0; v < e.values.size(); v += 4) { // at random
                const double limit =
                        e.limitOf(double(e.values[v]), e.bound, 128);
                worst = std::max(worst, limit / double(e.values[v]));
            }
        }
        EXPECT_LT(worst, 1 + (spread < 16 ? 0x1p-6 : 0x1p-7)) << spread;
        EXPECT_GT(worst, 1 + 0x1p-9) << spread;
    }
}

TEST(IvfFloorBound, WhatIsNotFiniteHasNoLimit) {
    for (float value : {INFINITY, float(NAN)}) {
        ivf_code::PairSums sums;
        const ivf_code::Component c =
                ivf_code::componentOf<Metric::L2>(0, 1, value, 1, sums);
        const float scale = ivf_code::scaleOf<Metric::L2>(
                std::fmax(0.0f, ivf_code::magnitudeOf<Metric::L2>(c)));
        ivf_code::entryOf<Metric::L2>(c, scale, sums);
        const float bound = ivf_code::boundOf<Metric::L2>(
                sums.size, ivf_code::inverseOf(scale), 4);
        const double limit = ivf_code::limitOfCodes<Metric::L2>(1, bound, 4);
        EXPECT_FALSE(limit < INFINITY) << value;
    }
}

} // namespace
} // namespace faiss_bits::test
