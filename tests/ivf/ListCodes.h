#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "kernels/ivf/IvfLists.h"
#include "tests/common/HalfBits.h"

/// Codes of inverted lists as they lie in memory, written from the comments of
/// IvfLists.h.
namespace faiss_bits::test {

class ListCoder {
   public:
    /// values(n): n numbers, for ranges or a codebook.
    ListCoder(
            ListCoding coding,
            int d,
            int numParts,
            int partBits,
            const std::function<std::vector<float>(idx_t)>& values)
            : coding_(coding), d_(d), parts_(numParts), partBits_(partBits) {
        if (coding == ListCoding::Product) {
            trained_ = values((idx_t(1) << partBits) * d);
        } else if (isScalar(coding)) {
            trained_ = values(2 * d);
        }
    }

    /// Ranges, or the codebook.
    const std::vector<float>& trained() const {
        return trained_;
    }
    /// As FAISS has it.
    bool byInverse() const {
        return coding_ != ListCoding::Scalar4;
    }

    /// Codes of n vectors [n, d]: of floats these; others are any codes, and
    /// `vectors` become what they are decoded to. What pads is 0xFF.
    std::vector<uint8_t> code(
            std::vector<float>& vectors,
            int n,
            ListLayout layout,
            uint32_t seed) const {
        std::mt19937 random(seed);
        const int bits = codeBits();
        const int numCodes = coding_ == ListCoding::Product ? parts_ : d_;
        const bool isRows = layout == ListLayout::Rows;
        const int64_t rowBits = (int64_t(numCodes) * bits + 7) / 8 * 8;
        const int64_t groups = (n + 31) / 32;
        std::vector<uint8_t> bytes(
                isRows ? n * rowBits / 8 : groups * numCodes * bits * 4, 0xFF);
        for (int v = 0; v < n; ++v) {
            for (int i = 0; i < numCodes; ++i) {
                const uint32_t code =
                        codeOf(vectors[size_t(v) * d_ + i], random);
                const int64_t bit = isRows
                        ? v * rowBits + int64_t(i) * bits
                        : (int64_t(v / 32) * numCodes + i) * bits * 32 +
                                v % 32 * bits;
                for (int b = 0; b < bits; ++b) {
                    uint8_t& byte = bytes[(bit + b) / 8];
                    const int shift = int((bit + b) % 8);
                    byte = uint8_t(
                            (byte & ~(1 << shift)) | (code >> b & 1) << shift);
                }
                decode(code, i, vectors.data() + size_t(v) * d_);
            }
        }
        return bytes;
    }

   private:
    int codeBits() const {
        switch (coding_) {
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
            default:
                return partBits_;
        }
    }

    uint32_t codeOf(float value, std::mt19937& random) const {
        if (coding_ == ListCoding::Float32) {
            uint32_t bits;
            std::memcpy(&bits, &value, sizeof(bits));
            return bits;
        }
        return coding_ == ListCoding::Float16 ? float16Bits(value)
                                              : random() % (1u << codeBits());
    }

    /// Code number i of a vector.
    void decode(uint32_t code, int i, float* vector) const {
        if (coding_ == ListCoding::Float16) {
            vector[i] = float16Value(uint16_t(code));
        } else if (coding_ == ListCoding::Product) {
            const int dims = d_ / parts_;
            std::copy_n(
                    trained_.data() + ((size_t(i) << partBits_) + code) * dims,
                    dims,
                    vector + i * dims);
        } else if (isScalar(coding_)) {
            const float most = float((1 << codeBits()) - 1);
            const float least = trained_[i];
            const float range = trained_[d_ + i];
            const float step =
                    byInverse() ? range * (1.0f / most) : range / most;
            const float half = 0.5f * step;
            vector[i] = std::fma(float(code), step, least + half);
        }
    }

    ListCoding coding_;
    int d_;
    int parts_;
    int partBits_;
    std::vector<float> trained_;
};

} // namespace faiss_bits::test
