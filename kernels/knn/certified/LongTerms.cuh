/// Canonical distances of metrics whose terms are long: in the same operations
/// as pairDistance, put so that they fit the instruction cache.
#pragma once

#include <type_traits>

#include "kernels/knn/certified/CanberraQuotient.h"
#include "kernels/knn/certified/DivergenceTerm.h"
#include "kernels/knn/certified/FewQueryDistances.cuh"

namespace faiss_bits {

/// The power of kHalves / 2, of the operations that canonical::Power takes for
/// it, of which none is chosen at run time.
template <int kHalves>
struct FixedPower {
    __device__ __forceinline__ double operator()(double a) const {
        double result = kHalves & 1 ? canonical::sqrt(a) : 1.0;
        bool isOne = !(kHalves & 1);
#pragma unroll
        for (int rest = kHalves >> 1; rest != 0; rest >>= 1) {
            if (rest & 1) {
                // 1 a is a.
                result = isOne ? a : canonical::mul(result, a);
                isOne = false;
            }
            a = canonical::mul(a, a);
        }
        return result;
    }
};

/// 2 p of a power p that is one of the usual, else 0.
__device__ __forceinline__ int usualHalves(float p) {
    const float twice = 2 * p;
    return twice == 1 || twice == 3 || twice == 5 || twice == 6 || twice == 8
            ? int(twice)
            : 0;
}

/// Calls body(add), whose add(sums, x, q) adds a component's terms: for Lp of
/// usual powers without a choice at run time, for Canberra without the call
/// that equal components cost, for Jensen-Shannon with both logarithms at once.
template <Metric kMetric, class Body>
__device__ __forceinline__ void withTerms(
        const CertifiedParams& search,
        const Body& body) {
    using Terms = canonical::Terms<kMetric>;
    if constexpr (kMetric == Metric::Lp) {
        const auto fixed = [&](auto power) {
            body([=](double* s, double x, double q) {
                s[0] = canonical::add(s[0], power(fabs(canonical::sub(x, q))));
            });
        };
        switch (usualHalves(search.metricArg)) {
            case 1:
                return fixed(FixedPower<1>());
            case 3:
                return fixed(FixedPower<3>());
            case 5:
                return fixed(FixedPower<5>());
            case 6:
                return fixed(FixedPower<6>());
            case 8:
                return fixed(FixedPower<8>());
            default:
                break;
        }
    }
    if constexpr (kMetric == Metric::Canberra) {
        body([](double* s, double x, double q) {
            s[0] = canonical::add(s[0], canberraQuotient(x, q));
        });
    } else if constexpr (kMetric == Metric::JensenShannon) {
        body([](double* s, double x, double q) {
            s[0] = canonical::add(s[0], divergenceTerm(x, q));
        });
    } else {
        body([&](double* s, double x, double q) {
            Terms::add(s, x, q, search.power);
        });
    }
}

/// pairDistance, of a vector x in memory.
template <Metric kMetric, class T>
__device__ __forceinline__ double distanceOfPair(
        const CertifiedParams& search,
        const T* x,
        const float* q,
        int d) {
    if constexpr (!kHasLongTerms<kMetric>) {
        return pairDistance<kMetric>(
                x, search.vectors.columnStride, q, d, search.power);
    } else {
        using Terms = canonical::Terms<kMetric>;
        const int64_t stride = search.vectors.columnStride;
        const int lane = threadIdx.x % kPairLanes;
        double sums[Terms::kSums] = {};
        withTerms<kMetric>(search, [&](const auto& add) {
            // One term after the other, and the components of the next ahead.
            float nextX = lane < d ? toFloat(x[lane * stride]) : 0.0f;
            float nextQ = lane < d ? q[lane] : 0.0f;
#pragma unroll 1
            for (int c = lane; c < d; c += kPairLanes) {
                const double ofX = nextX;
                const double ofQ = nextQ;
                const int next = c + kPairLanes;
                nextX = next < d ? toFloat(x[next * stride]) : 0.0f;
                nextQ = next < d ? q[next] : 0.0f;
                add(sums, ofX, ofQ);
            }
        });
        joinSlots<Terms>(sums);
        return Terms::finish(sums);
    }
}

} // namespace faiss_bits
