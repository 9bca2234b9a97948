/// Where components of vectors, or their codes, lie in a list.
#pragma once

#include <cstdint>

#include "kernels/ivf/IvfParams.h"

namespace faiss_bits {

constexpr int kListGroup = 32; // vectors side by side, interleaved
static_assert(kListGroup == kIvfGroup);

/// Where component c of vector v of a list is.
template <ListLayout kLayout>
__device__ __forceinline__ int64_t listPlace(int64_t v, int c, int d) {
    return kLayout == ListLayout::Rows ? v * d + c
                                       : v / kListGroup * kListGroup * d +
                    int64_t(c) * kListGroup + v % kListGroup;
}

/// The codes of a vector, of kBits each; 0: of a number known at run time, up
/// to 8.
template <int kBits, ListLayout kLayout>
class CodesOfVector {
   public:
    /// Of vector v of a list of vectors with numCodes codes.
    __device__ __forceinline__
    CodesOfVector(const void* list, int64_t v, int numCodes, int runtimeBits)
            : bits_(kBits ? kBits : runtimeBits) {
        const auto* bytes = static_cast<const uint8_t*>(list);
        if constexpr (kLayout == ListLayout::Rows) {
            const int64_t rowBytes = (int64_t(numCodes) * bits_ + 7) / 8;
            from_ = bytes + v * rowBytes;
            bit_ = 0;
        } else {
            from_ = bytes + v / kListGroup * numCodes * groupBytes();
            bit_ = int(v % kListGroup) * bits_;
        }
    }

    /// Code number i.
    __device__ __forceinline__ uint32_t operator()(int i) const {
        return kLayout == ListLayout::Rows
                ? codeAt(from_, int64_t(i) * bits_)
                : codeAt(from_ + i * groupBytes(), bit_);
    }

    /// Codes number i and on; where kCount is a multiple of four, i is one too.
    template <int kCount>
    __device__ __forceinline__ void load(int i, uint32_t (&codes)[kCount])
            const {
        if constexpr (
                kBits == 8 && kLayout == ListLayout::Rows && kCount % 4 == 0) {
            // Side by side: rows are far apart, and a word costs as much as a
            // byte.
            if (reinterpret_cast<uintptr_t>(from_) % sizeof(uint32_t) == 0) {
                const auto* words = reinterpret_cast<const uint32_t*>(from_);
#pragma unroll
                for (int k = 0; k < kCount; k += 4) {
                    const uint32_t word = words[(i + k) / 4];
#pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        codes[k + j] = word >> (8 * j) & 0xff;
                    }
                }
                return;
            }
        }
#pragma unroll
        for (int k = 0; k < kCount; ++k) {
            codes[k] = (*this)(i + k);
        }
    }

   private:
    /// Of one code of a group of vectors.
    __device__ __forceinline__ int64_t groupBytes() const {
        return bits_ * (kListGroup / 8);
    }

    __device__ __forceinline__ uint32_t
    codeAt(const uint8_t* bytes, int64_t bit) const {
        const uint8_t* at = bytes + bit / 8;
        if constexpr (kBits == 16) {
            return *reinterpret_cast<const uint16_t*>(at);
        } else if constexpr (kBits == 8) {
            return *at;
        } else {
            const int shift = int(bit % 8);
            uint32_t code = uint32_t(*at) >> shift;
            // The byte behind the last code is not ours to read.
            if (kBits != 4 && shift + bits_ > 8) {
                code |= uint32_t(at[1]) << (8 - shift);
            }
            return code & ((1u << bits_) - 1);
        }
    }

    const uint8_t* from_;
    int bit_; // of the vector, within a group
    int bits_;
};

/// Whether two vectors of a list have the same product code.
template <class Codes>
__device__ __forceinline__ bool haveSameCodes(
        const IvfLists& lists,
        uint32_t list,
        uint32_t a,
        uint32_t b) {
    const ListDecoding& decoding = lists.decoding;
    const auto codesOf = [&](uint32_t vector) {
        return Codes(
                lists.vectors[list],
                vector,
                decoding.numParts,
                decoding.partBits);
    };
    const Codes ofA = codesOf(a);
    const Codes ofB = codesOf(b);
    uint32_t different = 0;
#pragma unroll 8
    for (int part = 0; part < decoding.numParts; ++part) {
        different |= uint32_t(ofA(part)) ^ uint32_t(ofB(part));
    }
    return different == 0;
}

} // namespace faiss_bits
