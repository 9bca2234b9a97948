/// Places along a Z-order curve: Morton numbers.
#pragma once

#include "kernels/range/boxes/BoxScan.cuh"

namespace faiss_bits {

/// Bits of a component, where a number has `bits` in all.
__device__ __forceinline__ constexpr int mortonBits(int dims, int bits) {
    return bits / dims < 23 ? bits / dims : 23;
}

/// Of a vector within the extent [dims][least, greatest]; components outside
/// count as at its end, NaN as the least. Decides how tight boxes are, no
/// answer.
template <int kDims, class X>
__device__ __forceinline__ uint64_t
mortonOf(const X& x, const float* extent, int dims, int bits) {
    const int each = mortonBits(dims, bits);
    const float most = float((1u << each) - 1);
    uint64_t number = 0;
#pragma unroll
    for (int c = 0; c < kDims; ++c) {
        if (c < dims) {
            const double least = extent[2 * c];
            const double size = double(extent[2 * c + 1]) - least;
            const double at =
                    size > 0 ? (double(x(c)) - least) / size * most : 0.0;
            const uint32_t cell = uint32_t(fmin(fmax(at, 0.0), double(most)));
            for (int b = 0; b < each; ++b) {
                number |= uint64_t(cell >> b & 1) << (b * dims + c);
            }
        }
    }
    return number;
}

} // namespace faiss_bits
