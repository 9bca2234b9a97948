/// Images of 8 bits a component, made of those of 16, for scans of long vectors
/// by L2: half of the bytes, and products at twice the rate.
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
    idx_t capacity; ///< rows that there is room for, padding included

    ByteImageLayout(idx_t rows, int d)
            : slabs((d + kSlabComponents - 1) / kSlabComponents),
              capacity(TensorImageLayout(rows, d).capacity) {}

    size_t pieceBytes() const {
        return size_t(capacity) * slabs * kSlabComponents;
    }
};

/// Pointers into an image, on the device: x' = byte * step, one step for all
/// vectors and one for each query. Norms are those of the image of 16 bits.
struct ByteImage {
    void* pieces = nullptr;
    float* steps = nullptr;            ///< [capacity], queries
    float* residuals = nullptr;        ///< [capacity], queries: |q - q'|
    TensorImageFacts* facts = nullptr; ///< vectors: `inverse` is the step
};

/// Components of images of 8 bits: products of two are exact in float32.
constexpr int kMostByteComponents = 1024;

size_t byteImageBytes(idx_t rows, int d, bool areQueries);

ByteImage byteImageAt(void* memory, idx_t rows, int d, bool areQueries);

/// The image of vectors, all padding included.
///
/// greatest  one float: the greatest |component| of the vectors; it decides
///           precision, never correctness
/// Result    facts of `to`: the step, the greatest residual, of what the images
///           of 16 bits lost too, and greatestLength as it is. Components that
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

/// The same of queries, each with the step of its greatest component.
///
/// costs  [tiles of 128 rows], set to zero
void runByteQueries(
        const TensorImage& from,
        idx_t rows,
        int d,
        const ByteImage& to,
        uint32_t* costs,
        cudaStream_t stream);

} // namespace faiss_bits
