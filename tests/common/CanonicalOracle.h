#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/common/Types.h"
#include "tests/common/Oracle.h"

/// The canonical distances that docs/exact.md defines, in code of their own:
/// plain loops, written from the definition.
namespace faiss_bits::test {

/// The eight partial sums of a metric's terms, term(i) being that of component
/// i, added up in the order that is written down.
template <class Term>
double eightSums(int d, const Term& term) {
    std::array<double, 8> s = {};
    for (int i = 0; i < d; ++i) {
        s[i % 8] = s[i % 8] + term(i);
    }
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

inline double sumOfPowers(double p, const float* q, const float* x, int d) {
    const auto power = [p](double t) {
        if (p == 1) {
            return t;
        }
        if (p == 2) {
            return t * t;
        }
        const double twice = 2 * p;
        if (twice > 64 || twice != std::floor(twice)) {
            return std::pow(t, p); // not bit for bit: see docs/exact.md
        }
        double result = int(twice) % 2 ? std::sqrt(t) : 1.0;
        for (int rest = int(twice) / 2; rest > 0; rest /= 2) {
            if (rest % 2 == 1) {
                result = result * t;
            }
            t = t * t;
        }
        return result;
    };
    return eightSums(
            d, [&](int i) { return power(std::abs(double(x[i]) - q[i])); });
}

/// Before it is rounded to float32. p is read for Lp.
inline double canonicalDouble(
        Metric metric,
        double p,
        const float* q,
        const float* x,
        int d) {
    const auto product = [](const float* a, const float* b) {
        return [a, b](int i) { return double(a[i]) * double(b[i]); };
    };
    const auto difference = [&](int i) {
        return std::abs(double(x[i]) - double(q[i]));
    };
    const auto orZero = [](double a, double b) {
        return a == 0 && b == 0 ? 0.0 : a / b;
    };
    const auto either = [&](int i) {
        return std::isnan(x[i]) || std::isnan(q[i]);
    };
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    switch (metric) {
        case Metric::L2:
            return eightSums(d, [&](int i) {
                const double t = double(x[i]) - double(q[i]);
                return t * t;
            });
        case Metric::InnerProduct:
            return eightSums(d, product(x, q));
        case Metric::L1:
            return eightSums(d, difference);
        case Metric::Linf: {
            double largest = 0;
            for (int i = 0; i < d; ++i) {
                const double t = difference(i);
                if (std::isnan(t)) {
                    return t;
                }
                largest = std::max(largest, t);
            }
            return largest;
        }
        case Metric::Lp:
            return sumOfPowers(p, q, x, d);
        case Metric::Cosine: {
            const double squares =
                    eightSums(d, product(x, x)) * eightSums(d, product(q, q));
            return squares == 0
                    ? 0.0
                    : eightSums(d, product(x, q)) / std::sqrt(squares);
        }
        case Metric::Canberra:
            return eightSums(d, [&](int i) {
                return orZero(
                        difference(i),
                        std::abs(double(x[i])) + std::abs(double(q[i])));
            });
        case Metric::BrayCurtis:
            return orZero(eightSums(d, difference), eightSums(d, [&](int i) {
                              return std::abs(double(x[i]) + double(q[i]));
                          }));
        case Metric::JensenShannon:
            return 0.5 * eightSums(d, [&](int i) {
                       const double m = 0.5 * (double(x[i]) + double(q[i]));
                       const auto part = [m](double a) {
                           return a == 0 ? 0.0 : a * std::log(a / m);
                       };
                       return part(x[i]) + part(q[i]);
                   });
        case Metric::Jaccard:
            return orZero(
                    eightSums(
                            d,
                            [&](int i) {
                                return either(i) ? kNan
                                                 : double(std::min(x[i], q[i]));
                            }),
                    eightSums(d, [&](int i) {
                        return either(i) ? kNan : double(std::max(x[i], q[i]));
                    }));
    }
    return kNan;
}

inline float canonicalDistance(
        Metric metric,
        double p,
        const float* q,
        const float* x,
        int d) {
    return float(canonicalDouble(metric, p, q, x, d));
}

/// The k nearest of n vectors [n, d]: (canonical distance, number), best
/// first; NaN is no result.
inline std::vector<Ranked> canonicalTopK(
        Metric metric,
        double p,
        const float* query,
        const float* vectors,
        int64_t n,
        int d,
        int64_t k) {
    std::vector<float> distances(n);
    for (int64_t i = 0; i < n; ++i) {
        distances[i] = canonicalDistance(metric, p, query, vectors + i * d, d);
    }
    return topKOfRow(
            distances.data(), n, nullptr, 0, k, isSimilarity(metric), true);
}

} // namespace faiss_bits::test
