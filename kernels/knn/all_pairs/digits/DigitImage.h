/// Rows as digits of 8 bits, for products by integers on tensor cores: exact
/// sums, of which only the least digits are left out.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Types.h"
#include "kernels/knn/certified/CertifiedParams.h"

namespace faiss_bits {

/// Tiles of 64 rows; a tile is slabs of 64 components; a slab is four or five
/// digits, the greatest first, of 64 rows of 64 bytes, swizzled over 64 bytes:
/// the 16-byte pieces of a row are XORed with (row / 2) mod 4.
struct DigitImageLayout {
    static constexpr int kTileRows = 64;
    static constexpr int kSlabComponents = 64;
    static constexpr int kDigitBytes = kTileRows * kSlabComponents;
    /// Rows are padded with zeros to a multiple: two tiles.
    static constexpr int kRowPadding = 2 * kTileRows;

    static constexpr int kMostDigits = 5;

    int digits;
    int slabs;      ///< of a tile
    idx_t capacity; ///< rows that there is room for, padding included

    DigitImageLayout(idx_t rows, int d, int numDigits)
            : digits(numDigits),
              slabs((d + kSlabComponents - 1) / kSlabComponents),
              capacity((rows + kRowPadding - 1) / kRowPadding * kRowPadding) {}

    size_t pieceBytes() const {
        return size_t(capacity) / kTileRows * slabs * digits * kDigitBytes;
    }
};

/// What is known of a row x, by L2 less a center. Its digits a_i stand for
/// parts x_i = 2^(16 - 8 i) scale a_i, whose sum is x'. Lengths are at least
/// those of what they are said to be.
struct alignas(16) DigitRow {
    double size;  ///< EstimateRow::sizeOf(|x|^2), of the metric
    double scale; ///< a power of two; 0 of zeros
    float length; ///< of x, and of x'
    float rest;   ///< of x - x', and what a sum that is cut loses; infinity of
                  ///< a row that is not finite. 0: x is x_0 + x_1, but for L2
                  ///< x_0 + x_1 + x_2
    float parts[4]; ///< of x_1; of x_2 to x_4, added up; of x_3 and x_4; of x_4
    /// But for L2: the length in units of which all components are multiples,
    /// where x is x_0 + x_1 + x_2; else infinity.
    float ones;
};

/// On the device.
struct DigitImage {
    uint8_t* pieces = nullptr; // DigitImageLayout
    DigitRow* rows = nullptr;  // [capacity]
    /// [1] digits of which some row has one that is not 0: those behind are.
    uint32_t* used = nullptr;
};

/// Rows to be written as digits.
struct DigitImageParams {
    Metric metric = Metric::L2;
    VectorsParams from; // row-major
    idx_t numRows = 0;
    idx_t capacity = 0;
    int d = 0;
    int slabs = 0;
    int digits = 0;
    /// By L2, of what a center is subtracted from all: of each component the
    /// one in the middle of these three vectors, 0 if it is not finite. It is
    /// one that vectors have, so that small integers stay small integers; and
    /// it is nearer to most of them than a vector is.
    VectorsParams centers;
    idx_t centerRows[3] = {};
    DigitImage to; // *to.used is 0 before
    /// Words that become zeros, one and several; nullptr: none.
    uint32_t* clearOne = nullptr;
    uint32_t* clear = nullptr;
    idx_t numClear = 0;
};

/// Enqueues one kernel.
void launchDigitImage(const DigitImageParams& params, cudaStream_t stream);

} // namespace faiss_bits
