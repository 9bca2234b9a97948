#include "kernels/cpu/ErrorBound.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace faiss_bits::cpu {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Higham's gamma(m) for the unit roundoff u; infinite where m u is not small.
double gammaOf(double m, double u) {
    const double rounds = m * u;
    return rounds < 0.004 ? rounds / (1 - rounds) : kInfinity;
}

/// Roundings of an approximate key on the way from the components.
template <class T>
double roundings(KernelMetric metric, double d, double power) {
    switch (metric) {
        case KernelMetric::L2:
            return d + 4;
        case KernelMetric::Product:
            return d;
        case KernelMetric::Cosine:
            return 2 * d + 12;
        case KernelMetric::L1:
            return d + 1;
        case KernelMetric::Linf:
            return 2;
        case KernelMetric::Squares:
            return d + 4;
        case KernelMetric::Power:
            // Products: twice the power. std::pow: within 8 units in the last
            // place, where glibc documents one.
            return d + 2 * power + 20;
        default:
            return kInfinity; // no other arithmetic than the canonical one
    }
}

} // namespace

template <class T>
ErrorBound<T>::ErrorBound(const Setup<T>& setup, bool direct)
        : metric_(setup.metric),
          isExpanded_(setup.metric == KernelMetric::L2 && !direct) {
    constexpr double kUnit = double(std::numeric_limits<T>::epsilon()) / 2;
    constexpr double kWideUnit = 0x1p-53;
    const double d = setup.depth;
    const double power = double(setup.power);
    double m = roundings<T>(metric_, d, power);
    if (setup.int16) {
        m += 4; // from sums of integers to the key
        byInt16_ = true;
        // That of vectors whose integers are as short as they may be, and
        // which are left evenly spread: more is seldom.
        likelyRounding_ = 1.1 * std::sqrt(d / 12) / 22450;
    }
    canonical_ = 2 * gammaOf(m + 8, kWideUnit);
    if (metric_ == KernelMetric::Power) {
        canonical_ += 0x1p-40; // of canonical::Power
        power_ = power;
    }
    // A thousandth for the roundings of the bound itself.
    relative_ = 1.001 * (gammaOf(m, kUnit) + canonical_);
    if (sizeof(T) == sizeof(float)) {
        canonical_ += 0x1p-23; // rounded to float32, either way
    }
    underflow_ = (4 * d + 16) * double(std::numeric_limits<T>::min());
    if (setup.lengths) {
        const Lengths<T>& lengths = *setup.lengths;
        largestLength_ = std::sqrt(
                1.01 * double(lengths.largestSquare.load()) + underflow_);
        lengthsInRange_ = !lengths.outOfRange.load();
        // A hundredth for the roundings of sums, and what underflows in them.
        rounding_ = 1.01 * std::sqrt(lengths.roundingShare.load()) + 0x1p-40;
    }
}

/// Of the product of a query and a vector no longer than `length`, both made of
/// integers: with x = X + u and q = Q + v, <q, x> - <Q, X> = <q, u> + <v, X>.
template <class T>
double ErrorBound<T>::int16Error(double length, const CanonicalQuery& query)
        const {
    if (!byInt16_) {
        return 0;
    }
    return 1.001 * length *
            (rounding_ * std::sqrt(query.squares) +
             query.rounding * (1 + rounding_));
}

template <class T>
double ErrorBound<T>::boundOf(double key, const CanonicalQuery& query) const {
    // No sum on the way leaves the range of T.
    constexpr double kRoom = double(std::numeric_limits<T>::max()) / 16;
    if (!(std::abs(key) < kRoom)) {
        return kInfinity;
    }
    const double exact = key + std::abs(key) * canonical_ + underflow_;
    // Roots of differences are small where these are beyond T.
    if (power_ < 1 && !(exact < std::pow(kRoom, power_))) {
        return kInfinity;
    }
    double error = relative_ * std::abs(exact);
    if (isExpanded_) {
        const double length =
                2 * std::sqrt(query.squares) + std::sqrt(std::abs(exact));
        const double size = length * length;
        if (!(size < kRoom)) {
            return kInfinity;
        }
        // |x| <= |q| + |x - q|
        const double most =
                std::sqrt(query.squares) + std::sqrt(std::abs(exact));
        error = relative_ * size +
                2 * int16Error(std::min(most, largestLength_), query);
    } else if (metric_ == KernelMetric::Product) {
        // Squares of float64 may underflow.
        const double length = query.squares > 0x1p-900
                ? std::sqrt(query.squares)
                : query.absolutes;
        const double size = length * largestLength_;
        if (!(size < kRoom)) {
            return kInfinity;
        }
        error = relative_ * size + int16Error(largestLength_, query);
    } else if (metric_ == KernelMetric::Cosine) {
        // Lengths whose squares, and the product of two, float64 can hold.
        constexpr double kLeast = sizeof(T) == 4 ? 0x1p-200 : 0x1p-400;
        const bool inRange =
                query.squares > kLeast && query.squares < 1 / kLeast;
        if (!lengthsInRange_ || !inRange) {
            return kInfinity;
        }
        error = relative_;
    }
    return exact + error + underflow_;
}

template <class T>
T ErrorBound<T>::reach(T key, const CanonicalQuery& query) const {
    const double bound = boundOf(double(key), query);
    // For T = double, what the additions above were rounded by.
    const double above = bound + std::abs(bound) * 0x1p-50;
    const T rounded = T(above);
    return double(rounded) < above
            ? std::nextafter(rounded, std::numeric_limits<T>::infinity())
            : rounded;
}

template <class T>
T ErrorBound<T>::reachIfAny(T key, const CanonicalQuery& query) const {
    return std::isnan(query.squares) ? -std::numeric_limits<T>::infinity()
                                     : reach(key, query);
}

template <class T>
HeapSlack<T> ErrorBound<T>::slack() const {
    // The error twice, on the way to the canonical key and back, and some room.
    const double twice = 2.1 * relative_;
    HeapSlack<T> slack;
    slack.isOn = metric_ != KernelMetric::Product;
    slack.more = T(4 * underflow_);
    slack.ofKey = T(twice + 1.1 * canonical_);
    if (isExpanded_) { // (2 |q| + sqrt(key))^2 <= 8 |q|^2 + 2 key
        slack.ofKey += T(twice);
        slack.ofTerm = T(8 * twice);
        // Likewise |q| |x| <= |q| (|q| + sqrt(key)) <= (3 |q|^2 + key) / 2.
        slack.ofKey += T(4 * likelyRounding_);
        slack.ofTerm += T(12 * likelyRounding_);
    } else if (metric_ == KernelMetric::Cosine) {
        slack.more += T(twice);
    }
    return slack;
}

template class ErrorBound<float>;
template class ErrorBound<double>;

} // namespace faiss_bits::cpu
