#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "kernels/common/Types.h"

/// What the search on the CPU is held against: every metric as it is defined,
/// in a wider type, and the keys that rounding in T can make of it. Shares no
/// code with the kernels, and is itself tested (TestCpuReference.cpp).
namespace faiss_bits::test {

/// The type of the reference's sums: float64, and more for T = double where
/// the machine has more.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;

/// Sums over the components of a query q and a vector x, of which every
/// metric and every bound below is made.
template <class T>
struct PairSums {
    using W = Wide<T>;
    W product = 0;       ///< q x
    W sizeOfProduct = 0; ///< |q x|
    W queryNorm = 0;     ///< q q
    W vectorNorm = 0;    ///< x x
    W squares = 0;       ///< (q - x)^2
    W absolutes = 0;     ///< |q - x|
    W largest = 0;       ///< max |q - x|, NaN if one is
    W powers = 0;        ///< |q - x|^p, only if asked for
    W powerErrors = 0;   ///< bound on the errors of those powers, in units u
    bool hasNan = false;
    bool hasInfinite = false;

    PairSums(const T* q, const T* x, int d, W p = 0) {
        for (int i = 0; i < d; ++i) {
            const W a = q[i];
            const W b = x[i];
            const W difference = std::abs(a - b);
            product += a * b;
            sizeOfProduct += std::abs(a * b);
            queryNorm += a * a;
            vectorNorm += b * b;
            squares += difference * difference;
            absolutes += difference;
            const bool keeps = std::isnan(largest) || difference <= largest;
            largest = keeps ? largest : difference;
            hasNan = hasNan || std::isnan(a) || std::isnan(b);
            hasInfinite = hasInfinite || std::isinf(a) || std::isinf(b);
            if (p > 0) {
                const W power = std::pow(difference, p);
                powers += power;
                // The difference is off by one rounding, and its logarithm
                // times p, of which the power is taken, by a few more.
                if (power > 0) {
                    const W exponent = std::abs(p * std::log(difference));
                    powerErrors += power * (p + 8 * exponent + 16);
                }
            }
        }
    }

    W cosine() const {
        if (hasNan || hasInfinite) {
            return std::numeric_limits<W>::quiet_NaN();
        }
        if (queryNorm == 0 || vectorNorm == 0) {
            return 0;
        }
        return product / (std::sqrt(queryNorm) * std::sqrt(vectorNorm));
    }
};

template <class T>
Wide<T> referenceDistance(
        Metric metric,
        T metricArg,
        const T* query,
        const T* vector,
        int d) {
    const bool isPower = metric == Metric::Lp;
    const PairSums<T> sums(query, vector, d, isPower ? metricArg : T(0));
    switch (metric) {
        case Metric::L2:
            return sums.squares;
        case Metric::InnerProduct:
            return sums.product;
        case Metric::Cosine:
            return sums.cosine();
        case Metric::L1:
            return sums.absolutes;
        case Metric::Linf:
            return sums.largest;
        case Metric::Lp:
            return sums.powers;
        default:
            return std::numeric_limits<Wide<T>>::quiet_NaN();
    }
}

/// The keys that a search may return for one vector.
template <class T>
struct Accepted {
    T least = 1; ///< least > most: no number
    T most = -1;
    bool nan = false;

    bool has(T key) const {
        return std::isnan(key) ? nan : least <= key && key <= most;
    }

    /// The key that ranks last of them.
    T worst(bool largestFirst) const {
        return nan ? std::numeric_limits<T>::quiet_NaN()
                   : (largestFirst ? least : most);
    }
};

/// The numbers of T nearest below and above a value; infinite where IEEE
/// rounding makes it so.
template <class T>
T roundedDown(Wide<T> value) {
    const T near = T(value);
    const bool stays = !(near > value) || std::isinf(near);
    return stays ? near : std::nextafter(near, -std::numeric_limits<T>::max());
}

template <class T>
T roundedUp(Wide<T> value) {
    return -roundedDown<T>(-value);
}

/// gamma(m) = m u / (1 - m u) with u half the machine epsilon of T (Higham
/// 2002, lemma 3.1), times 1 + 2^-8 for the rounding of the reference.
template <class T>
Wide<T> gammaOf(Wide<T> m) {
    const Wide<T> rounds = m * std::numeric_limits<T>::epsilon() / 2;
    return rounds / (1 - rounds) * (1 + std::ldexp(Wide<T>(1), -8));
}

/// The keys that any order of summation in T can give, with or without fused
/// multiply-add; u as in gammaOf:
///
///   L2            gamma(d + 4) (|q|^2 + 2 sum |q_i x_i| + |x|^2), which covers
///                 sum (q - x)^2 too; never below zero
///   InnerProduct  gamma(d) sum |q_i x_i|
///   Cosine        gamma(2 d + 12) sum |q_i x_i| / (|q| |x|): norms and their
///                 roots, and one quotient a component or at the end
///   L1            gamma(d + 1) sum |q_i - x_i|
///   Linf          u max |q_i - x_i|
///   Lp            PairSums::powerErrors u + gamma(d) sum |q_i - x_i|^p
///
/// and, where products or powers underflow, d + 4 times the least normal
/// number. Where a sum can overflow on the way, the key may be what is left of
/// it: an infinity, or NaN where two of them meet.
///
/// exact  the caller knows that nothing is rounded for L2, InnerProduct, L1
///        and Linf: one key is accepted, save of what is not finite
template <class T>
Accepted<T> acceptedKeys(
        Metric metric,
        T metricArg,
        const T* query,
        const T* vector,
        int d,
        bool exact) {
    using W = Wide<T>;
    constexpr T kInfinite = std::numeric_limits<T>::infinity();
    const W greatest = std::numeric_limits<T>::max();
    const W tiny = (d + 4) * W(std::numeric_limits<T>::min());
    const W unit = W(std::numeric_limits<T>::epsilon()) / 2;
    const bool isPower = metric == Metric::Lp;
    const PairSums<T> sums(query, vector, d, isPower ? metricArg : T(0));
    const Accepted<T> onlyNan{1, -1, true};
    if (sums.hasNan) {
        return onlyNan;
    }
    auto around = [&](W value, W error) {
        if (std::isnan(value)) {
            return onlyNan;
        }
        if (std::isinf(value)) {
            return Accepted<T>{T(value), T(value), false};
        }
        const W margin = exact && !isPower ? W(0) : error;
        return Accepted<T>{
                roundedDown<T>(value - margin),
                roundedUp<T>(value + margin),
                false};
    };
    switch (metric) {
        case Metric::L2: {
            const W sizes =
                    sums.queryNorm + sums.vectorNorm + 2 * sums.sizeOfProduct;
            if (!std::isfinite(sums.squares)) {
                // |q|^2 - 2 <q, x> + |x|^2 of an infinite vector is NaN.
                return {kInfinite, kInfinite, true};
            }
            auto keys = around(sums.squares, gammaOf<T>(d + 4) * sizes + tiny);
            keys.least = std::max(keys.least, T(0));
            if (sizes > greatest) {
                keys.most = kInfinite;
                keys.nan = true;
            }
            return keys;
        }
        case Metric::InnerProduct:
            if (std::isfinite(sums.product) && sums.sizeOfProduct > greatest) {
                return {-kInfinite, kInfinite, true};
            }
            return around(
                    sums.product, gammaOf<T>(d) * sums.sizeOfProduct + tiny);
        case Metric::Cosine: {
            if (sums.hasInfinite) {
                return onlyNan;
            }
            // Nothing is promised of lengths whose squares leave T's range.
            for (W squares : {sums.queryNorm, sums.vectorNorm}) {
                if (squares > greatest ||
                    (squares > 0 && squares < tiny / unit)) {
                    return {-kInfinite, kInfinite, true};
                }
            }
            if (sums.queryNorm == 0 || sums.vectorNorm == 0) {
                return {0, 0, false};
            }
            const W norms =
                    std::sqrt(sums.queryNorm) * std::sqrt(sums.vectorNorm);
            const W error = gammaOf<T>(2 * d + 12) * sums.sizeOfProduct / norms;
            const W value = sums.product / norms;
            return {roundedDown<T>(value - error),
                    roundedUp<T>(value + error),
                    false};
        }
        case Metric::L1:
            return around(sums.absolutes, gammaOf<T>(d + 1) * sums.absolutes);
        case Metric::Linf:
            return around(sums.largest, gammaOf<T>(1) * sums.largest);
        case Metric::Lp:
            return around(
                    sums.powers,
                    unit * sums.powerErrors + gammaOf<T>(d) * sums.powers +
                            tiny);
        default:
            return onlyNan;
    }
}

} // namespace faiss_bits::test
