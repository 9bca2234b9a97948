#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/ivf/IvfEstimateBound.h"
#include "tests/common/CanonicalOracle.h"
#include "tests/common/HalfBits.h"

/// Bounds of estimates as kernels make them, on the host, from the comment of
/// IvfEstimateBound.h: products of float16 words, added up as badly as tensor
/// cores may.
namespace faiss_bits::test {

using ivf_estimate::Factors;

inline float roundedUp(long double value) {
    const float near = float(value);
    return near < value ? std::nextafter(near, HUGE_VALF) : near;
}
inline float roundedDown(long double value) {
    return -roundedUp(-value);
}
inline float fmaUp(float a, float b, float c) {
    return roundedUp((long double)a * b + c);
}

inline float halved(float value) {
    return float16Value(float16Bits(value));
}

/// How sums are formed: what the proof leaves open.
enum class Sums {
    Forward,    ///< float32, each addition rounded to nearest
    Descending, ///< the same, the largest first
    Signs,      ///< what is positive first: the largest sums on the way
    TowardZero, ///< steps of 16, aligned to the largest of 17, cut off
    Down        ///< the same, to the number below
};
inline constexpr Sums kSums[] = {
        Sums::Forward,
        Sums::Descending,
        Sums::Signs,
        Sums::TowardZero,
        Sums::Down};

/// Keeps 24 bits of the largest.
inline double cutOff(double value, int exponent, bool down) {
    const double unit = std::ldexp(1.0, exponent - 24);
    const double units = value / unit;
    return (down ? std::floor(units) : std::trunc(units)) * unit;
}

/// Of numbers that are exact in float64.
inline float sumOf(std::vector<double> terms, Sums order) {
    if (order == Sums::TowardZero || order == Sums::Down) {
        double sum = 0;
        for (size_t from = 0; from < terms.size(); from += 16) {
            const size_t to = std::min(from + 16, terms.size());
            double largest = std::abs(sum);
            for (size_t i = from; i < to; ++i) {
                largest = std::max(largest, std::abs(terms[i]));
            }
            int exponent = 0;
            std::frexp(largest, &exponent);
            double step = cutOff(sum, exponent, order == Sums::Down);
            for (size_t i = from; i < to; ++i) {
                step += cutOff(terms[i], exponent, order == Sums::Down);
            }
            std::frexp(step, &exponent);
            sum = cutOff(step, exponent, order == Sums::Down);
        }
        return float(sum);
    }
    if (order == Sums::Descending) {
        std::sort(terms.begin(), terms.end(), [](double a, double b) {
            return std::abs(a) > std::abs(b);
        });
    } else if (order == Sums::Signs) {
        std::sort(terms.rbegin(), terms.rend());
    }
    float sum = 0;
    for (double term : terms) {
        sum += float(term);
    }
    return sum;
}

/// Of float32 numbers a and b, rounded product by product.
inline float dotOf(
        const std::vector<float>& a,
        const std::vector<float>& b,
        Sums order) {
    std::vector<double> terms(a.size());
    for (size_t i = 0; i < a.size(); ++i) {
        terms[i] = double(float(double(a[i]) * b[i]));
    }
    const bool isPlain = order == Sums::Descending || order == Sums::Signs;
    return sumOf(terms, isPlain ? order : Sums::Forward);
}

/// A pair of a vector and a query, as kernels treat it.
struct Pair {
    Metric metric;
    std::vector<float> x, q, c;
    float greatest = 0; ///< square of the longest of the group; 0: the vector's
    int shift = 0;      ///< the scale is so many steps below the suited one
};

struct Bounds {
    float lower = 0;
    float upper = 0;
    bool passes = false; ///< the scan's test, the canonical key being the limit
    double used = 0;     ///< the part of the slack that the error takes
    float width = HUGE_VALF; ///< the key is no more than lower and this
};

inline double canonicalKey(const Pair& p) {
    const float distance = canonicalDistance(
            p.metric, 0, p.q.data(), p.x.data(), int(p.x.size()));
    return p.metric == Metric::L2 ? distance : -distance;
}

/// Written from the comment of IvfEstimateBound.h.
inline Bounds boundsOf(const Pair& p, const Factors& factors, Sums order) {
    const int d = int(p.x.size());
    const bool isL2 = p.metric == Metric::L2;
    std::vector<float> r(d), s(d);
    for (int i = 0; i < d; ++i) {
        r[i] = p.x[i] - p.c[i];
        s[i] = isL2 ? p.q[i] - p.c[i] : p.q[i];
    }
    const float rr = dotOf(r, r, order);
    const float ss = dotOf(s, s, order);
    std::vector<float> sizeC(d), sizeQ(d);
    for (int i = 0; i < d; ++i) {
        sizeC[i] = isL2 ? 0 : std::abs(p.c[i]);
        sizeQ[i] = std::abs(p.q[i]);
    }
    const float centerSize = dotOf(sizeC, sizeQ, order);
    if (!(rr <= ivf_estimate::kGreatest && ss <= ivf_estimate::kGreatest &&
          centerSize <= ivf_estimate::kGreatest)) {
        return {-HUGE_VALF, HUGE_VALF, true}; // there is none
    }
    const float greatest = std::max(p.greatest, rr);
    const float suited = ivf_estimate::scaleOf(greatest);
    const float scale = std::ldexp(suited, -p.shift);
    EXPECT_TRUE(ivf_estimate::isSuited(scale, suited));
    const float scaleQ = ivf_estimate::scaleOf(ss);
    const float inverse =
            ivf_estimate::inverseOf(scale) * ivf_estimate::inverseOf(scaleQ);
    std::vector<double> terms(d);
    for (int i = 0; i < d; ++i) {
        terms[i] = double(halved(r[i] * scale)) * halved(s[i] * scaleQ);
    }
    const float product = sumOf(terms, order);
    EXPECT_TRUE(std::isfinite(product));

    Bounds found;
    const double key = canonicalKey(p);
    const float half = isL2 ? 0.5f * scaleQ : scaleQ;
    const auto test = [&](float term, float ofQuery, float factor) {
        const float x = isL2 ? half : half * factor;
        const float rest = half * (ofQuery - float(key));
        return !(product < std::fma(x, term * scale, rest * scale));
    };
    if (isL2) {
        const float slackR = fmaUp(
                factors.squares,
                rr,
                fmaUp(factors.greatest, greatest, 0.5f * ivf_estimate::kLeast));
        const float slackS =
                fmaUp(factors.squares, ss, 0.5f * ivf_estimate::kLeast);
        const auto bound = [&](float term, float ofQuery) {
            return std::fma(-2.0f * inverse, product, term + ofQuery);
        };
        const float lowR = roundedDown((long double)rr - slackR);
        const float lowS = roundedDown((long double)ss - slackS);
        found.lower = bound(lowR, lowS);
        found.upper =
                bound(roundedUp((long double)rr + slackR),
                      roundedUp((long double)ss + slackS));
        found.passes = test(lowR, lowS, 0);
        // That of vectors is of the greatest that there is.
        const float slackOfAll = fmaUp(
                factors.squares,
                greatest,
                fmaUp(factors.greatest, greatest, 0.5f * ivf_estimate::kLeast));
        found.width = 2 * roundedUp((long double)slackOfAll + slackS);
        found.used = std::abs(double(bound(rr, ss)) - key) /
                (double(slackR) + slackS);
        return found;
    }
    const float center = dotOf(p.c, p.q, order);
    const float lengthR =
            fmaUp(factors.greatest,
                  roundedUp(std::sqrt((long double)greatest)),
                  roundedUp(
                          (long double)roundedUp(std::sqrt((long double)rr)) +
                          factors.lost));
    const float lengthS = roundedUp(
            (long double)factors.squares *
            roundedUp(
                    (long double)roundedUp(std::sqrt((long double)ss)) +
                    factors.lost));
    const float slack = fmaUp(factors.center, centerSize, ivf_estimate::kLeast);
    const float rootOfAll = roundedUp(std::sqrt((long double)greatest));
    const float lengthOfAll =
            fmaUp(factors.greatest,
                  rootOfAll,
                  roundedUp((long double)rootOfAll + factors.lost));
    found.width = 2 * fmaUp(lengthS, lengthOfAll, slack);
    const auto bound = [&](float ofQuery, float factor) {
        return std::fma(factor, lengthR, std::fma(-inverse, product, ofQuery));
    };
    const float lowQ = roundedDown(-(long double)center - slack);
    found.lower = bound(lowQ, -lengthS);
    found.upper = bound(roundedUp(-(long double)center + slack), lengthS);
    found.passes = test(lengthR, lowQ, -lengthS);
    found.used = std::abs(double(bound(-center, 0)) - key) /
            (double(slack) + double(lengthR) * lengthS);
    return found;
}

inline ::testing::AssertionResult holds(
        const Pair& p,
        const Factors& factors,
        Sums order,
        double* used = nullptr,
        double* usedWidth = nullptr) {
    const Bounds found = boundsOf(p, factors, order);
    if (used) {
        *used = std::max(*used, found.used);
    }
    const double key = canonicalKey(p);
    if (usedWidth) {
        *usedWidth = std::max(*usedWidth, (key - found.lower) / found.width);
    }
    const bool isWithin = found.width == HUGE_VALF ||
            key <= roundedUp((long double)found.lower + found.width);
    if (found.lower <= key && key <= found.upper && found.passes && isWithin) {
        return ::testing::AssertionSuccess();
    }
    return ::testing::AssertionFailure()
            << "key " << key << " has bounds " << found.lower << " and "
            << found.upper << (found.passes ? "" : ", and does not pass")
            << (isWithin ? "" : ", and is wider than ") << found.width
            << "; d=" << p.x.size() << " metric=" << int(p.metric)
            << " sums=" << int(order) << " shift=" << p.shift
            << " x[0]=" << p.x[0] << " q[0]=" << p.q[0] << " c[0]=" << p.c[0];
}

} // namespace faiss_bits::test
