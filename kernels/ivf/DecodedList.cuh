/// Vectors of inverted lists that lie there as codes (ListDecoding).
#pragma once

#include <cuda_fp16.h>

#include <type_traits>

#include "kernels/ivf/ListPlaces.cuh"
#include "kernels/knn/certified/TileVectors.cuh"

namespace faiss_bits {

/// The bits of a code; 0: known at run time.
constexpr int codeBitsOf(ListCoding coding, ListLayout layout) {
    switch (coding) {
        case ListCoding::Float32:
            return 32;
        case ListCoding::Float16:
            return 16;
        case ListCoding::Scalar8:
            return 8;
        case ListCoding::Scalar6:
            return 6;
        case ListCoding::Scalar4:
            return 4;
        case ListCoding::Product:
            return layout == ListLayout::Rows ? 8 : 0;
    }
    return 0;
}

/// 2^23, whose last bits can take a code: a subtraction makes it a number, of
/// which there are more in a cycle than conversions.
constexpr uint32_t kNumberBits = 0x4B000000;

__device__ __forceinline__ float numberOfBits(uint32_t bits) {
    return __uint_as_float(bits) - 0x1p23f;
}
/// Of a code below 2^23.
__device__ __forceinline__ float numberOf(uint32_t code) {
    return numberOfBits(code | kNumberBits);
}

/// Four numbers of which the first is on sixteen bytes, or not.
__device__ __forceinline__ float4 loadFour(const float* from) {
    if (reinterpret_cast<uintptr_t>(from) % sizeof(float4) == 0) {
        return *reinterpret_cast<const float4*>(from);
    }
    return {from[0], from[1], from[2], from[3]};
}

/// What makes a component of codes: float16 numbers.
struct HalfDecoder {
    __device__ __forceinline__ explicit HalfDecoder(const IvfParams&) {}

    __device__ __forceinline__ static int numCodes(const IvfParams& params) {
        return params.d;
    }
    template <class Codes>
    __device__ __forceinline__ float operator()(const Codes& codes, int c)
            const {
        return decode(codes(c));
    }
    template <int kCount>
    __device__ __forceinline__ static void decode(
            const uint32_t (&codes)[kCount],
            int,
            float (&xs)[kCount]) {
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            xs[i] = decode(codes[i]);
        }
    }

   private:
    __device__ __forceinline__ static float decode(uint32_t code) {
        return __half2float(__ushort_as_half(uint16_t(code)));
    }
};

/// Steps of a range.
struct ScalarDecoder {
    const float* starts;
    const float* steps;

    __device__ __forceinline__ explicit ScalarDecoder(const IvfParams& params)
            : starts(params.starts), steps(params.steps) {}

    __device__ __forceinline__ static int numCodes(const IvfParams& params) {
        return params.d;
    }
    template <class Codes>
    __device__ __forceinline__ float operator()(const Codes& codes, int c)
            const {
        return __fmaf_rn(float(codes(c)), steps[c], starts[c]);
    }
    /// Of components c and on, c a multiple of four.
    template <int kCount>
    __device__ __forceinline__ void decode(
            const uint32_t (&codes)[kCount],
            int c,
            float (&xs)[kCount]) const {
#pragma unroll
        for (int i = 0; i < kCount; i += 4) {
            // In scratch, they begin on sixteen bytes.
            const float4 step = *reinterpret_cast<const float4*>(steps + c + i);
            const float4 start =
                    *reinterpret_cast<const float4*>(starts + c + i);
            xs[i] = __fmaf_rn(numberOf(codes[i]), step.x, start.x);
            xs[i + 1] = __fmaf_rn(numberOf(codes[i + 1]), step.y, start.y);
            xs[i + 2] = __fmaf_rn(numberOf(codes[i + 2]), step.z, start.z);
            xs[i + 3] = __fmaf_rn(numberOf(codes[i + 3]), step.w, start.w);
        }
    }
};

/// Components of a codebook.
struct ProductDecoder {
    const float* codebook;
    uint32_t partDims;
    uint32_t inverse; // 2^32 / partDims, rounded up; 0: divide
    int bits;

    __device__ __forceinline__ explicit ProductDecoder(const IvfParams& params)
            : codebook(params.lists.decoding.codebook),
              partDims(params.d / params.lists.decoding.numParts),
              // Exact for components below 2^32 / partDims; 1 has none.
              inverse(params.d < 1 << 16 ? UINT32_MAX / partDims + 1 : 0),
              bits(params.lists.decoding.partBits) {}

    __device__ __forceinline__ static int numCodes(const IvfParams& params) {
        return params.lists.decoding.numParts;
    }
    template <class Codes>
    __device__ __forceinline__ float operator()(const Codes& codes, int c)
            const {
        const uint32_t part =
                inverse ? __umulhi(uint32_t(c), inverse) : c / partDims;
        return rowOf(part, codes(int(part)))[c - part * partDims];
    }

    /// Components c and on, c a multiple of kCount and this of eight.
    template <class Codes, int kCount>
    __device__ __forceinline__ void load(
            const Codes& codes,
            int c,
            float (&xs)[kCount]) const {
        if (partDims % 4 == 0 && inverse != 0) {
            uint32_t numbers[kCount / 4];
            if (kCount % 16 == 0 && partDims == 4) {
                codes.load(c / 4, numbers);
            } else {
#pragma unroll
                for (int i = 0; i < kCount / 4; ++i) {
                    numbers[i] = codes(int(partOf(c + 4 * i)));
                }
            }
#pragma unroll
            for (int i = 0; i < kCount / 4; ++i) {
                const uint32_t part = partOf(c + 4 * i);
                const float4 four = *reinterpret_cast<const float4*>(
                        rowOf(part, numbers[i]) +
                        (c + 4 * i - part * partDims));
                xs[4 * i] = four.x;
                xs[4 * i + 1] = four.y;
                xs[4 * i + 2] = four.z;
                xs[4 * i + 3] = four.w;
            }
        } else if (partDims == 2) {
            uint32_t numbers[kCount / 2];
            codes.load(c / 2, numbers);
#pragma unroll
            for (int i = 0; i < kCount / 2; ++i) {
                const float2 two = *reinterpret_cast<const float2*>(
                        rowOf(uint32_t(c / 2 + i), numbers[i]));
                xs[2 * i] = two.x;
                xs[2 * i + 1] = two.y;
            }
        } else {
#pragma unroll
            for (int i = 0; i < kCount; ++i) {
                xs[i] = (*this)(codes, c + i);
            }
        }
    }

   private:
    /// Exact for components below 2^32 / partDims; inverse is not 0.
    __device__ __forceinline__ uint32_t partOf(int c) const {
        return __umulhi(uint32_t(c), inverse);
    }

    __device__ __forceinline__ const float* rowOf(uint32_t part, uint32_t code)
            const {
        const int64_t row = (int64_t(part) << bits) + code;
        return codebook + row * partDims;
    }
};

/// Vectors of a coding other than Float32.
template <ListCoding kOfCoding, ListLayout kOfLayout>
class DecodedList {
   public:
    static constexpr ListCoding kCoding = kOfCoding;
    static constexpr ListLayout kLayout = kOfLayout;

   private:
    using Codes = CodesOfVector<codeBitsOf(kCoding, kLayout), kLayout>;
    using Decoder = std::conditional_t<
            kCoding == ListCoding::Product,
            ProductDecoder,
            std::conditional_t<
                    kCoding == ListCoding::Float16,
                    HalfDecoder,
                    ScalarDecoder>>;
    static_assert(kCoding != ListCoding::Float32);

   public:
    __device__ __forceinline__ explicit DecodedList(const IvfParams& params)
            : decoder_(params),
              centroids_(params.lists.decoding.centroids),
              d_(params.d),
              numCodes_(Decoder::numCodes(params)),
              bits_(params.lists.decoding.partBits) {}

    struct Vector {
        Codes codes;
        Decoder decoder;
        const float* centroid; // nullptr: none is added

        __device__ __forceinline__ float operator()(int c) const {
            return sum(decoder(codes, c), c);
        }

        /// Components c and on, c a multiple of kCount: all codes first, and
        /// four at a time what lies so.
        template <int kCount>
        __device__ __forceinline__ void load(int c, float (&xs)[kCount]) const {
            static_assert(kCount % 8 == 0);
            if constexpr (kCoding == ListCoding::Product) {
                decoder.load(codes, c, xs);
            } else {
                uint32_t numbers[kCount];
#pragma unroll
                for (int i = 0; i < kCount; ++i) {
                    numbers[i] = codes(c + i);
                }
                decoder.decode(numbers, c, xs);
            }
            if (centroid) {
#pragma unroll
                for (int i = 0; i < kCount; i += 4) {
                    const float4 four = loadFour(centroid + c + i);
                    xs[i] = __fadd_rn(xs[i], four.x);
                    xs[i + 1] = __fadd_rn(xs[i + 1], four.y);
                    xs[i + 2] = __fadd_rn(xs[i + 2], four.z);
                    xs[i + 3] = __fadd_rn(xs[i + 3], four.w);
                }
            }
        }

       private:
        __device__ __forceinline__ float sum(float x, int c) const {
            return centroid ? __fadd_rn(x, centroid[c]) : x;
        }
    };

    struct Column {
        DecodedList list;
        TilePlace place;
        int c;

        __device__ __forceinline__ float at(int64_t i) const {
            return list.vector(place, i)(c);
        }
        __device__ __forceinline__ float near(uint32_t i) const {
            return at(i);
        }
    };

    __device__ __forceinline__ Column
    column(const TilePlace& place, int c) const {
        return {*this, place, c};
    }
    __device__ __forceinline__ Vector
    vector(const TilePlace& place, int64_t i) const {
        return {Codes(place.list, place.first + i, numCodes_, bits_),
                decoder_,
                centroids_ ? centroids_ + int64_t(place.listNumber) * d_
                           : nullptr};
    }

   private:
    Decoder decoder_;
    const float* centroids_;
    int d_;
    int numCodes_;
    int bits_;
};

} // namespace faiss_bits
