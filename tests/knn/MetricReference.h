#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/common/Types.h"

namespace faiss_bits::test {

/// The distance of x and q [d] by the metric's definition, one plain sum after
/// the other in long double: it shares no code with any kernel, and its own
/// error is far below float32's. Terms 0 / 0 and 0 log 0 count 0.
inline double referenceDistance(
        Metric metric,
        double p,
        const float* x,
        const float* q,
        int d) {
    using Wide = long double;
    const auto orZero = [](Wide a, Wide b) {
        return a == 0 && b == 0 ? Wide(0) : a / b;
    };
    const auto xLog = [](Wide a, Wide b) {
        return a == 0 ? Wide(0) : a * std::log(a / b);
    };
    Wide first = 0;
    Wide second = 0;
    Wide third = 0;
    for (int i = 0; i < d; ++i) {
        const Wide a = x[i];
        const Wide b = q[i];
        const Wide t = std::abs(a - b);
        switch (metric) {
            case Metric::L2:
                first += t * t;
                break;
            case Metric::InnerProduct:
                first += a * b;
                break;
            case Metric::L1:
                first += t;
                break;
            case Metric::Linf:
                first = std::isnan(first) || std::isnan(t) ? first + t
                                                           : std::max(first, t);
                break;
            case Metric::Lp:
                first += std::pow(t, Wide(p));
                break;
            case Metric::Cosine:
                first += a * b;
                second += a * a;
                third += b * b;
                break;
            case Metric::Canberra:
                first += orZero(t, std::abs(a) + std::abs(b));
                break;
            case Metric::BrayCurtis:
                first += t;
                second += std::abs(a + b);
                break;
            case Metric::JensenShannon: {
                const Wide m = (a + b) / 2;
                first += (xLog(a, m) + xLog(b, m)) / 2;
                break;
            }
            case Metric::Jaccard:
                if (std::isnan(a) || std::isnan(b)) {
                    first += a + b;
                } else {
                    first += std::min(a, b);
                    second += std::max(a, b);
                }
                break;
        }
    }
    switch (metric) {
        case Metric::Cosine:
            return second * third == 0 ? 0 : first / std::sqrt(second * third);
        case Metric::BrayCurtis:
        case Metric::Jaccard:
            return std::isnan(first) ? double(first) : orZero(first, second);
        default:
            return first;
    }
}

inline double sumOfSizes(const float* x, int d) {
    double sum = 0;
    for (int i = 0; i < d; ++i) {
        sum += std::abs(double(x[i]));
    }
    return sum;
}

} // namespace faiss_bits::test
