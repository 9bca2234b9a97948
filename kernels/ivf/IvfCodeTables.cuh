/// What a warp of IvfFewEstimates.cuh has of a list of 8-bit codes, whose
/// estimates multiply codes: less those of the list's first vector they are
/// numbers of float16, and a step makes them components (IvfCodeBound.h).
#pragma once

#include <cuda_fp16.h>

#include "kernels/device/MmaFloat16.cuh"
#include "kernels/ivf/IvfCodeBound.h"
#include "kernels/ivf/ListTables.cuh"

namespace faiss_bits {

/// Center and steps in shared memory; in registers what bounds have of them.
template <class Vectors, int kDepth>
class IvfCodeTables {
    static_assert(kDepth == 4 * kWarpSize);

   public:
    struct Storage {
        alignas(16) float centers[kDepth];
        // Of components in float16, two and two: 1024 and the code of the
        // center, and the step, scaled.
        struct Two {
            uint32_t middles;
            uint32_t steps;
        };
        alignas(16) Two twos[kDepth / 2];
    };

    __device__ __forceinline__ explicit IvfCodeTables(Storage& storage)
            : storage_(storage) {}

    /// Of a list whose first codes these are, of d components. The middle has
    /// them, or the codes nearest to the center that is given. Behind a barrier
    /// of the warp they are there.
    __device__ __forceinline__ void read(
            const ListTables<Vectors>& from,
            const uint8_t* codes,
            int d) {
        const int c = 4 * (int(threadIdx.x) % kWarpSize);
        const float4 starts = from.starts(c);
        const float4 steps = from.steps(c);
        const float4 centroids = from.centroids(c);
        const auto codeOf = [&](int i,
                                float start,
                                float step,
                                float centroid) -> uint32_t {
            if (c + i >= d) {
                return 0;
            }
            if (!from.isGiven()) {
                return __ldg(codes + (c + i) * kListGroup);
            }
            // NaN, of a step of 0, is a code, too.
            const float code =
                    rintf((from.center(c + i) - centroid - start) / step);
            return uint32_t(
                    fminf(fmaxf(code, 0.0f), ivf_estimate::kGreatestCode));
        };
        const uint32_t first[4] = {
                codeOf(0, starts.x, steps.x, centroids.x),
                codeOf(1, starts.y, steps.y, centroids.y),
                codeOf(2, starts.z, steps.z, centroids.z),
                codeOf(3, starts.w, steps.w, centroids.w)};
        const float most =
                fmaxf(fmaxf(fabsf(steps.x), fabsf(steps.y)),
                      fmaxf(fabsf(steps.z), fabsf(steps.w)));
        const float scale = ivf_estimate::scaleOfSteps(__uint_as_float(
                __reduce_max_sync(kFullWarp, __float_as_uint(most))));
        inverse_ = ivf_estimate::inverseOf(scale);
        float sizes = 0; // sum of squares
        const auto centerOf =
                [&](uint32_t code, float start, float step, float centroid) {
                    const float size = fabsf(start) + fabsf(centroid) +
                            ivf_estimate::kGreatestCode * fabsf(step);
                    sizes = __fmaf_ru(size, size, sizes);
                    return __fmaf_rn(float(code), step, start) + centroid;
                };
        *reinterpret_cast<float4*>(&storage_.centers[c]) = {
                centerOf(first[0], starts.x, steps.x, centroids.x),
                centerOf(first[1], starts.y, steps.y, centroids.y),
                centerOf(first[2], starts.z, steps.z, centroids.z),
                centerOf(first[3], starts.w, steps.w, centroids.w)};
        constexpr uint32_t kNumbers = 0x64006400; // 1024, twice
        *reinterpret_cast<uint4*>(&storage_.twos[c / 2]) = {
                kNumbers + first[0] + (first[1] << 16),
                toFloat16(steps.x * scale, steps.y * scale),
                kNumbers + first[2] + (first[3] << 16),
                toFloat16(steps.z * scale, steps.w * scale)};
#pragma unroll
        for (int distance = 1; distance < kWarpSize; distance *= 2) {
            sizes += __shfl_xor_sync(kFullWarp, sizes, distance);
        }
        slack_ = ivf_estimate::slackOfCodes(sizes, inverse_);
    }

    __device__ __forceinline__ float4 centers(int c) const {
        return *reinterpret_cast<const float4*>(&storage_.centers[c]);
    }
    /// Of components c to c + 3, two and two: middles, steps.
    __device__ __forceinline__ uint4 twos(int c) const {
        return *reinterpret_cast<const uint4*>(&storage_.twos[c / 2]);
    }
    /// 1 / scale of the steps.
    __device__ __forceinline__ float inverse() const {
        return inverse_;
    }
    /// What bounds are off by whatever the codes; not finite: there are none.
    __device__ __forceinline__ float slack() const {
        return slack_;
    }

   private:
    Storage& storage_;
    float inverse_ = 0;
    float slack_ = 0;
};

/// Words of codes of a lane's four vectors: of its four components of every
/// sixteen.
struct CodeReads {
    const uint8_t* from; // the lane's codes of its first component
    int left;            // components from there on

    /// Of step `step`, `ahead` steps behind; zeros behind the last component.
    __device__ __forceinline__ void read(
            uint32_t (&words)[4],
            int step,
            int ahead) const {
        const uint8_t* row = from + step * (16 * kListGroup);
        const int some = left - step * 16;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const int c = ahead * 16 + k;
            words[k] = 0;
            if (c < some) {
                words[k] = __ldg(reinterpret_cast<const uint32_t*>(
                        row + c * kListGroup));
            }
        }
    }
};

/// Components c to c + 3 of four vectors, of four words of codes, in float16,
/// less the center and as matrix instructions take them: of vectors 2 a and 2 a
/// + 1, components 2 i and 2 i + 1 in values[a][2 i] and [2 i + 1].
__device__ __forceinline__ void componentsOfCodes(
        const uint32_t (&words)[4],
        const uint4& twos,
        uint32_t (&values)[2][4]) {
    constexpr uint32_t kBits = 0x64646464; // above a code: 1024 and the code
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const uint32_t one = words[2 * i];
        const uint32_t two = words[2 * i + 1];
        const uint32_t middle = i == 0 ? twos.x : twos.z;
        const uint32_t step = i == 0 ? twos.y : twos.w;
#pragma unroll
        for (int a = 0; a < 2; ++a) {
            const uint32_t both =
                    __byte_perm(one, two, a == 0 ? 0x5140 : 0x7362);
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const uint32_t numbers =
                        __byte_perm(both, kBits, j == 0 ? 0x4140 : 0x4342);
                const __half2 value = __hmul2(
                        __hsub2(reinterpret_cast<const __half2&>(numbers),
                                reinterpret_cast<const __half2&>(middle)),
                        reinterpret_cast<const __half2&>(step));
                values[a][2 * i + j] = reinterpret_cast<const uint32_t&>(value);
            }
        }
    }
}

} // namespace faiss_bits
