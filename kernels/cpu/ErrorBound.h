#pragma once

#include <cmath>
#include <limits>

#include "kernels/cpu/CanonicalTypes.h"
#include "kernels/cpu/Setup.h"

namespace faiss_bits::cpu {

/// How far approximate keys, those of the plain kernels, can be from canonical
/// ones. docs/bounds_cpu.md has the derivations.
template <class T>
class ErrorBound {
   public:
    /// `direct`: of Variant::Direct. Reads what setup.lengths holds after the
    /// sweep.
    ErrorBound(const Setup<T>& setup, bool direct);

    /// The largest approximate key of a vector whose canonical key is at most
    /// `key`, and that it is a number at all. Infinite: nothing is known.
    T reach(T key, const CanonicalQuery& query) const;

    /// The same, but -infinity for a query with NaN, which has no result.
    T reachIfAny(T key, const CanonicalQuery& query) const;

    /// What is to be added to the key of the nearest vector so that `reach` is
    /// mostly less. Off where that takes more than the key and the query's
    /// term.
    HeapSlack<T> slack() const;

   private:
    double boundOf(double key, const CanonicalQuery& query) const;
    double int16Error(double length, const CanonicalQuery& query) const;

    KernelMetric metric_;
    bool isExpanded_;  ///< |q|^2 - 2 <q, x> + |x|^2
    double relative_;  ///< of sums without cancellation
    double canonical_; ///< of the canonical distance, its rounding included
    double underflow_; ///< absolute
    double power_ = 1; ///< of differences, where it is none of a square
    double largestLength_ = 0;
    bool lengthsInRange_ = true;
    bool byInt16_ = false;
    double rounding_ = 0;       ///< what integers leave of |x|, at most
    double likelyRounding_ = 0; ///< the same before it is known
};

/// Just above a reach, so that what is at it is below. -infinity, which nothing
/// is below, where the reach is infinite: of a query without a bound all
/// vectors are taken anyway.
template <class T>
T limitAbove(T reach) {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    return reach < kInfinity && reach > -kInfinity
            ? std::nextafter(reach, kInfinity)
            : -kInfinity;
}

} // namespace faiss_bits::cpu
