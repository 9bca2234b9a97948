#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/common/Types.h"
#include "tests/common/Oracle.h"

/// The canonical distance and the results that follow from it, in plain loops
/// written from docs/exact.md. Shares no code with the kernels; compiled with
/// -ffp-contract=off, as every file of the project is.
namespace faiss_bits::test {

/// A sum of terms: term i goes to slot i mod 8, and the slots are joined in one
/// order.
class SlotSum {
   public:
    void add(int i, double term) {
        slots_[i % 8] += term;
    }
    void takeLargest(int i, double term) {
        double& slot = slots_[i % 8];
        slot = std::isnan(slot) || std::isnan(term) ? slot + term
                                                    : std::max(slot, term);
    }
    double sum() const {
        const double* s = slots_;
        const double even = (s[0] + s[4]) + (s[2] + s[6]);
        const double odd = (s[1] + s[5]) + (s[3] + s[7]);
        return even + odd;
    }
    double largest() const {
        double found = slots_[0];
        for (double slot : slots_) {
            found = std::isnan(found) || std::isnan(slot)
                    ? found + slot
                    : std::max(found, slot);
        }
        return found;
    }

   private:
    double slots_[8] = {};
};

/// ln a: with a = 2^e m, m from sqrt(1/2) to sqrt(2), s = (m - 1) / (m + 1) and
/// z = s^2, it is e ln 2 + 2 s + 2 s z (1/3 + z (1/5 + ... + z / 23)).
inline double canonicalLog(double a) {
    if (std::isnan(a) || a < 0) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    if (a == 0 || std::isinf(a)) {
        return a == 0 ? -std::numeric_limits<double>::infinity() : a;
    }
    int e;
    double m = std::frexp(a, &e); // 1/2 <= m < 1
    if (m < 0x1.6a09e667f3bcdp-1) {
        m *= 2;
        --e;
    }
    const double s = (m - 1) / (m + 1);
    const double z = s * s;
    double series = 1.0 / 23;
    for (int odd = 21; odd >= 3; odd -= 2) {
        series = series * z;
        series = series + 1.0 / odd;
    }
    const double twice = 2 * s;
    const double tail = (twice * z) * series;
    const double ofM = twice + tail;
    // ln 2 in a part of 33 bits and what is left of it.
    const double low = e * 0x1.a39ef35793c76p-33;
    const double high = e * 0x1.62e42feep-1;
    return high + (ofM + low);
}

/// e^a: with j = a / ln 2 rounded and r = a - j ln 2, it is 2^j times
/// 1 + (r + r^2 (1/2 + r (1/6 + ... + r / 14!))).
inline double canonicalExp(double a) {
    if (std::isnan(a)) {
        return a;
    }
    if (a > 709) {
        return std::numeric_limits<double>::infinity();
    }
    if (a < -708) {
        return 0;
    }
    const double j = std::nearbyint(a * 0x1.71547652b82fep+0);
    const double r = (a - j * 0x1.62e42feep-1) - j * 0x1.a39ef35793c76p-33;
    double factorials[15] = {1};
    for (int i = 1; i < 15; ++i) {
        factorials[i] = factorials[i - 1] * i;
    }
    double series = 1 / factorials[14];
    for (int i = 13; i >= 2; --i) {
        series = series * r;
        series = series + 1 / factorials[i];
    }
    const double square = r * r;
    return std::ldexp(1 + (r + square * series), int(j));
}

/// a^p for a >= 0: multiples of a half up to 32 by a square root and products,
/// from the lowest bit of p on; others as e^(p ln a).
inline double canonicalPower(double a, double p) {
    if (2 * p <= 64 && 2 * p == std::floor(2 * p)) {
        const int halves = int(2 * p);
        double result = halves % 2 ? std::sqrt(a) : 1.0;
        double square = a;
        for (int bit = 0; bit < 6; ++bit) {
            if (halves / 2 >> bit & 1) {
                result = result * square;
            }
            square = square * square;
        }
        return result;
    }
    return a == 0 ? 0 : canonicalExp(p * canonicalLog(a));
}

/// The canonical distance before it is rounded to float32.
template <class T>
double canonicalDistance64(
        Metric metric,
        double p,
        const T* query,
        const T* vector,
        int d) {
    SlotSum first, second, third;
    for (int i = 0; i < d; ++i) {
        const double x = vector[i];
        const double q = query[i];
        const double difference = x - q;
        const double gap = std::abs(difference);
        switch (metric) {
            case Metric::L2:
                first.add(i, difference * difference);
                break;
            case Metric::InnerProduct:
                first.add(i, x * q);
                break;
            case Metric::L1:
                first.add(i, gap);
                break;
            case Metric::Linf:
                first.takeLargest(i, gap);
                break;
            case Metric::Lp:
                first.add(i, canonicalPower(gap, p));
                break;
            case Metric::Cosine:
                first.add(i, x * q);
                second.add(i, x * x);
                third.add(i, q * q);
                break;
            case Metric::Canberra: {
                const double size = std::abs(x) + std::abs(q);
                first.add(i, size == 0 ? 0 : gap / size);
                break;
            }
            case Metric::BrayCurtis:
                first.add(i, gap);
                second.add(i, std::abs(x + q));
                break;
            case Metric::JensenShannon: {
                const double middle = 0.5 * (x + q);
                const double ofX = x == 0 ? 0 : x * canonicalLog(x / middle);
                const double ofQ = q == 0 ? 0 : q * canonicalLog(q / middle);
                first.add(i, ofX + ofQ);
                break;
            }
            case Metric::Jaccard: {
                const bool nan = std::isnan(x) || std::isnan(q);
                first.add(i, nan ? x + q : std::min(x, q));
                second.add(i, nan ? x + q : std::max(x, q));
                break;
            }
        }
    }
    switch (metric) {
        case Metric::Linf:
            return first.largest();
        case Metric::Cosine: {
            const double squares = second.sum() * third.sum();
            return squares == 0 ? 0 : first.sum() / std::sqrt(squares);
        }
        case Metric::BrayCurtis:
        case Metric::Jaccard: {
            const bool isNothing = first.sum() == 0 && second.sum() == 0;
            return isNothing ? 0 : first.sum() / second.sum();
        }
        case Metric::JensenShannon:
            return 0.5 * first.sum();
        default:
            return first.sum();
    }
}

/// The canonical distance; half vectors are given as float.
inline float canonicalDistance(
        Metric metric,
        double p,
        const float* query,
        const float* vector,
        int d) {
    const float rounded =
            float(canonicalDistance64(metric, p, query, vector, d));
    return rounded == 0 ? 0.0f : rounded;
}
inline double canonicalDistance(
        Metric metric,
        double p,
        const double* query,
        const double* vector,
        int d) {
    const double distance = canonicalDistance64(metric, p, query, vector, d);
    return distance == 0 ? 0.0 : distance;
}

/// The min(k, n) best of vectors [n, d], best first; equal ones by the lower
/// number, NaN left out.
template <class T>
std::vector<Ranked> canonicalTopK(
        Metric metric,
        double p,
        const T* query,
        const T* vectors,
        int64_t n,
        int d,
        int64_t k) {
    std::vector<Ranked> candidates;
    for (int64_t i = 0; i < n; ++i) {
        const T distance =
                canonicalDistance(metric, p, query, vectors + i * d, d);
        if (!std::isnan(distance)) {
            candidates.push_back({double(distance), i});
        }
    }
    return topK(candidates, k, faiss_bits::isSimilarity(metric));
}

/// Every place is the oracle's, bit for bit, and those behind are empty.
inline ::testing::AssertionResult isCanonical(
        const std::vector<Ranked>& want,
        bool largest,
        const float* outDistances,
        const int64_t* outIds,
        int64_t k) {
    const float most = std::numeric_limits<float>::max();
    for (int64_t i = 0; i < k; ++i) {
        const bool filled = i < int64_t(want.size());
        const float key = filled ? float(want[i].key) : largest ? -most : most;
        const float distance = key + 0.0f; // zero has no sign
        const int64_t id = filled ? want[i].id : -1;
        if (outIds[i] != id ||
            std::memcmp(outDistances + i, &distance, sizeof(float)) != 0) {
            return ::testing::AssertionFailure()
                    << "place " << i << " is (" << outDistances[i] << ", "
                    << outIds[i] << "), canonical is (" << distance << ", "
                    << id << ")";
        }
    }
    return ::testing::AssertionSuccess();
}

} // namespace faiss_bits::test
