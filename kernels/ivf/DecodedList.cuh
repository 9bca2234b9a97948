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

/// What makes a component of codes: float16 numbers.
struct HalfDecoder {
    __device__ __forceinline__ explicit HalfDecoder(const IvfParams&) {}

    __device__ __forceinline__ static int numCodes(const IvfParams& params) {
        return params.d;
    }
    template <class Codes>
    __device__ __forceinline__ float operator()(const Codes& codes, int c)
            const {
        return __half2float(__ushort_as_half(uint16_t(codes(c))));
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
        return rowOf(codes, part)[c - part * partDims];
    }

    /// Whether components come four at a time, from a multiple of four on.
    __device__ __forceinline__ bool hasFours() const {
        return partDims % 4 == 0 && inverse != 0;
    }
    template <class Codes>
    __device__ __forceinline__ float4 four(const Codes& codes, int c) const {
        const uint32_t part = __umulhi(uint32_t(c), inverse);
        return *reinterpret_cast<const float4*>(
                rowOf(codes, part) + (c - part * partDims));
    }

   private:
    template <class Codes>
    __device__ __forceinline__ const float* rowOf(
            const Codes& codes,
            uint32_t part) const {
        const int64_t row = (int64_t(part) << bits) + codes(int(part));
        return codebook + row * partDims;
    }
};

/// Vectors of a coding other than Float32.
template <ListCoding kCoding, ListLayout kLayout>
class DecodedList {
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

        /// Components c and on, c a multiple of kCount: of a codebook several
        /// at a time where they lie so.
        template <int kCount>
        __device__ __forceinline__ void load(int c, float (&xs)[kCount]) const {
            static_assert(kCount % 4 == 0);
            if constexpr (kCoding == ListCoding::Product) {
                if (decoder.hasFours()) {
#pragma unroll
                    for (int i = 0; i < kCount; i += 4) {
                        const float4 four = decoder.four(codes, c + i);
                        xs[i] = sum(four.x, c + i);
                        xs[i + 1] = sum(four.y, c + i + 1);
                        xs[i + 2] = sum(four.z, c + i + 2);
                        xs[i + 3] = sum(four.w, c + i + 3);
                    }
                    return;
                }
            }
#pragma unroll
            for (int i = 0; i < kCount; ++i) {
                xs[i] = (*this)(c + i);
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
