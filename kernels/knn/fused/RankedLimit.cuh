/// From the key of some rank to the limit of a scan.
#pragma once

#include "kernels/knn/certified/RowBound.cuh"

namespace faiss_bits {

/// What a key is off by, some deviations of it, whose rows are rounded by
/// `rounding` of a component each: a limit with it has the rank that was asked
/// for. Nothing rests on it.
template <Metric kMetric>
__device__ __forceinline__ double roundingError(
        const RowBound<kMetric>& bound,
        int d,
        double key,
        double rounding) {
    const bool isCosine = kMetric == Metric::Cosine;
    const double distance = isCosine ? 2 + 2 * key : key;
    const double x = isCosine || kMetric == Metric::L2
            ? bound.norm + sqrt(distance)
            : bound.greatest;
    const double error = rounding * bound.norm * x * rsqrt(double(d));
    return isCosine ? 0.5 * error : error;
}

/// The limit of a scan with this bound, for all keys up to `key`; infinity:
/// there is none.
template <Metric kMetric>
__device__ __forceinline__ float limitFor(
        double key,
        const RowBound<kMetric>& bound) {
    const float limit = __double2float_ru(bound.limitOf(key));
    // No neighbours: what is no number passes all the same.
    return bound.norm != bound.norm ? -__uint_as_float(0x7f800000u)
            : limit < __uint_as_float(0x7f800000u)
            ? limit
            : __uint_as_float(0x7f800000u);
}

/// Writes the limit, what is complete with it, and a count of zero; infinity:
/// there is none. Returns the limit. params: of SampleLimit or of strips. One
/// thread calls it.
template <Metric kMetric, class Params>
__device__ __forceinline__ float writeLimit(
        const Params& params,
        uint32_t row,
        double key,
        const RowBound<kMetric>& bound) {
    // Keys of all vectors up to this one are not above the limit.
    const float limit = limitFor(key, bound);
    float complete = __double2float_rd(key);
    if (limit == __uint_as_float(0x7f800000u)) {
        complete = limit;
    }
    if (bound.norm != bound.norm) {
        complete = nanf("");
    }
    params.limits[row] = limit;
    params.complete[row] = complete;
    params.counts[row] = 0;
    return limit;
}

} // namespace faiss_bits
