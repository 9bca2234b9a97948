/// Images of 8 bits a component, made of those of 16, for scans by L2: half of
/// the bytes, and products at twice the rate.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/DeviceTraits.h"
#include "kernels/common/Types.h"
#include "kernels/knn/fused/tensor/TensorImage.h"

namespace faiss_bits {

/// Tiles of 128 rows as TensorImageLayout has them; a slab is 128 components of
/// a byte each, swizzled over 128 bytes.
struct ByteImageLayout {
    static constexpr int kSlabComponents = 128;

    int slabs;      ///< of a tile
    int lastSteps;  ///< steps of 32 components in the last slab, 1 to 4
    idx_t capacity; ///< rows that there is room for, padding included

    ByteImageLayout(idx_t rows, int d)
            : slabs((d + kSlabComponents - 1) / kSlabComponents),
              lastSteps((d - (slabs - 1) * kSlabComponents + 31) / 32),
              capacity(TensorImageLayout(rows, d).capacity) {}

    size_t pieceBytes() const {
        return size_t(capacity) * slabs * kSlabComponents;
    }
};

/// Components of images of 8 bits: products of two are exact in float32. Of
/// fewer a scan is bound by comparisons, in 16 bits as in 8.
constexpr int kLeastByteComponents = 65;
constexpr int kMostByteComponents = 1024;

/// Up to so many components the scan keeps queries in shared memory
/// (ByteKeptScan.cuh), and norms are integers in units of two squared steps of
/// the vectors: so queries have that very step.
constexpr int kMostKeptByteComponents = 512;

constexpr bool hasByteNorms(int d) {
    return d <= kMostKeptByteComponents;
}

/// Norms of an image of 8 bits. Products are at most 2^23 in size, limits from
/// -2^29 to 2^29.
struct ByteNorms {
    static constexpr int kMost = 1 << 28; ///< longer vectors seem nearer
    static constexpr int kMostLimit = 1 << 29;
    static constexpr int kNone = 1 << 30; ///< beyond all limits
};

/// Pointers into an image, on the device: x' = byte * step, one step for all
/// vectors and one for each query.
struct ByteImage {
    void* pieces = nullptr;
    float* steps = nullptr;            ///< [capacity], queries
    float* residuals = nullptr;        ///< [capacity], queries: |q - q'|
    TensorImageFacts* facts = nullptr; ///< vectors: `inverse` is the step
    /// Vectors, hasByteNorms: [capacity] minus |x|^2 / (2 step^2), rounded to
    /// nearest even; -kNone of infinite ones and of padding, kNone, so that
    /// they pass, of those that are no number. Else norms are those of the
    /// image of 16 bits.
    int32_t* norms = nullptr;
};

size_t byteImageBytes(idx_t rows, int d, bool areQueries);

ByteImage byteImageAt(void* memory, idx_t rows, int d, bool areQueries);

/// The image of vectors, all padding included.
///
/// greatest  one float: the greatest |component| of the vectors; it decides
///           precision, never correctness
/// Result    facts of `to`: the step, the greatest residual, of what the images
///           of 16 bits lost too, greatestLength as it is, and normError of
///           norms that are integers (else 0). Components that
///           are not finite are zeros, and have no residual: a norm that is not
///           finite says what such vectors are.
/// Stream    enqueues two kernels, never waits
/// Cost      one read of the image of 16 bits, one write of this one
void runByteImage(
        const TensorImage& from,
        idx_t rows,
        int d,
        const float* greatest,
        const ByteImage& to,
        cudaStream_t stream);

/// The same of queries, each with the step of its greatest component, or
/// hasByteNorms with that of the vectors.
///
/// vectors  facts of the image of 8 bits that they will meet
/// costs    [tiles of ByteSearch::kTileQueries], set to zero
void runByteQueries(
        const TensorImage& from,
        idx_t rows,
        int d,
        const TensorImageFacts* vectors,
        const ByteImage& to,
        uint32_t* costs,
        cudaStream_t stream);

} // namespace faiss_bits
