/// Which pairs pass, from their sums. Most do not, so that the one comparison
/// that finds out is all that a pair costs: Limit holds what the query's limit
/// makes of the sum, without the divisions of the term's finish(). Where
/// finish() rounds in another place the limit is wider by about 2^-18 of it.
#pragma once

#include "kernels/knn/pairwise/PairwiseTerms.cuh"

namespace faiss_bits {

/// InnerProduct: one instruction a component.
struct ProductTerm : PlainTerm {
    static constexpr Metric kMetric = Metric::InnerProduct;

    __device__ __forceinline__ static void add(
            float& sum,
            const float (&x)[1],
            const float (&q)[1],
            float) {
        sum = __fmaf_rn(x[0], q[0], sum);
    }
};

/// The fact of a row is 1 / |row|, or 0 (RowFacts::InverseNorm).
struct CosineTerm : ProductTerm {
    static constexpr bool kFacts = true;
    static constexpr UnfitPairs kUnfit = UnfitPairs::Canonical;
    static constexpr Metric kMetric = Metric::Cosine;

    __device__ __forceinline__ static float finish(
            float sum,
            float ofVector,
            float ofQuery) {
        return __fmul_rn(__fmul_rn(sum, ofQuery), ofVector);
    }
};

/// A sum passes where it is not beyond a + b ofVector.
struct PassLimit {
    float a;
    float b;

    /// The same to read, another number to the compiler: so that it does not
    /// keep the results of a test for the rare case that they are asked again.
    __device__ __forceinline__ PassLimit again() const {
        PassLimit other = *this;
        asm volatile("" : "+f"(other.a));
        return other;
    }
};

template <class Term>
struct PassTest {
    static constexpr bool kSimilarity = isSimilarity(Term::kMetric);
    /// Passed by no number.
    __device__ static PassLimit nothing() {
        return {kSimilarity ? __int_as_float(0x7f800000)
                            : __int_as_float(0xff800000),
                0.0f};
    }

    /// Of a query whose largest key is `limit`.
    __device__ static PassLimit of(float limit, float) {
        return {kSimilarity ? -limit : limit, 0.0f};
    }

    /// Whether a fit pair passes: if its key is not above the limit.
    __device__ __forceinline__ static bool passes(
            float sum,
            float,
            const PassLimit& limit) {
        return kSimilarity ? !(sum < limit.a) : !(sum > limit.a);
    }

    __device__ __forceinline__ static float key(
            float sum,
            float ofVector,
            float ofQuery) {
        const float value = Term::finish(sum, ofVector, ofQuery);
        return kSimilarity ? -value : value;
    }
};

namespace widened {

// Far wider than the roundings of finish() and of the test, far narrower than
// anything that would let more pass.
constexpr float kWider = 1 + 0x1p-18f;
constexpr float kNarrower = 1 - 0x1p-18f;
constexpr float kTiny = 0x1p-120f; // of what underflows

} // namespace widened

/// sum ln 2 / 2 <= limit.
template <>
__device__ inline PassLimit PassTest<JensenShannonTerm>::of(
        float limit,
        float) {
    if (limit < 0) { // distances are not
        return nothing();
    }
    constexpr float kPerSum = 2.88539008f * widened::kWider;
    return {__fmaf_rn(limit, kPerSum, widened::kTiny), 0.0f};
}

/// sum / (ofVector + ofQuery) <= limit.
template <>
__device__ inline PassLimit PassTest<BrayCurtisTerm>::of(
        float limit,
        float ofQuery) {
    if (limit < 0) { // distances are not
        return nothing();
    }
    const float wide = __fmul_rn(limit, widened::kWider);
    return {__fmaf_rn(wide, ofQuery, widened::kTiny), wide};
}

template <>
__device__ __forceinline__ bool PassTest<BrayCurtisTerm>::passes(
        float sum,
        float ofVector,
        const PassLimit& limit) {
    return !(sum > __fmaf_rn(limit.b, ofVector, limit.a));
}

/// sum / (rows - sum) >= s, with rows = ofVector + ofQuery and s = -limit: sum
/// >= rows s / (1 + s). Similarities are not negative.
template <>
__device__ inline PassLimit PassTest<JaccardTerm>::of(
        float limit,
        float ofQuery) {
    const float s = -limit;
    if (!(s > 0)) {
        return {__int_as_float(0xff800000), 0.0f};
    }
    if (s > 2 || ofQuery == 0) { // a query of zeros is like nothing
        return nothing();
    }
    const float part =
            __fmul_rn(__fdiv_rn(s, __fadd_rn(1.0f, s)), widened::kNarrower);
    return {__fmaf_rn(part, ofQuery, -widened::kTiny), part};
}

template <>
__device__ __forceinline__ bool PassTest<JaccardTerm>::passes(
        float sum,
        float ofVector,
        const PassLimit& limit) {
    return !(sum < __fmaf_rn(limit.b, ofVector, limit.a));
}

/// sum ofVector >= -limit / ofQuery.
template <>
__device__ inline PassLimit PassTest<CosineTerm>::of(
        float limit,
        float ofQuery) {
    constexpr float kInfinity = __builtin_huge_valf();
    if (!(limit >= -2)) {
        return limit < -2 ? nothing() : PassLimit{-kInfinity, 0.0f};
    }
    if (limit > 2 || ofQuery == 0) {
        return {limit >= 0 ? -kInfinity : kInfinity, 0.0f};
    }
    const float least = __fdiv_rn(-limit, ofQuery);
    return {least - fabsf(least) * 0x1p-18f - widened::kTiny, 0.0f};
}

template <>
__device__ __forceinline__ bool PassTest<CosineTerm>::passes(
        float sum,
        float ofVector,
        const PassLimit& limit) {
    return !(__fmul_rn(sum, ofVector) < limit.a);
}

} // namespace faiss_bits
