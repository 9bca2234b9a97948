/// Vectors and queries in float16, laid out as tensor cores read them from
/// shared memory: one plain bulk copy a piece of work, no address arithmetic.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/common/Types.h"

namespace faiss_bits {

/// How an image lies in memory. Tiles of 128 rows; a tile is slabs of up to 64
/// components; a slab is 128 rows of 32, 64 or 128 bytes. The 16-byte pieces
/// of a row are XORed with (byte offset of the row in the slab / 128) mod
/// (pieces of a row): 8 rows at the same piece are in 8 different banks. This
/// is what Hopper's descriptors call 32-, 64- and 128-byte swizzles.
struct TensorImageLayout {
    static constexpr int kTileRows = 128;
    /// Rows are padded with zeros to a multiple: the largest step of a scan.
    static constexpr int kRowPadding = 512;

    int d;
    int rowBytes;   ///< of one slab: 32 for d <= 16, 64 for d <= 32, else 128
    int slabs;      ///< of a tile
    int lastSteps;  ///< steps of 16 components in the last slab, 1 to 4
    int slabBytes;  ///< 128 rowBytes
    idx_t capacity; ///< rows that there is room for, padding included

    explicit TensorImageLayout(idx_t rows, int components)
            : d(components),
              rowBytes(
                      components <= 16           ? 32
                              : components <= 32 ? 64
                                                 : 128),
              slabs((components + 63) / 64),
              lastSteps((components - (slabs - 1) * 64 + 15) / 16),
              slabBytes(kTileRows * rowBytes),
              capacity((rows + kRowPadding - 1) / kRowPadding * kRowPadding) {}

    size_t pieceBytes() const {
        return size_t(capacity) * rowBytes * slabs;
    }
};

/// What scales an image has, and what it lost. In device memory.
struct TensorImageFacts {
    float scale = 1;          ///< a power of two: x' = image / scale
    float inverse = 1;        ///< 1 / scale
    float residual = 0;       ///< greatest |x - x'| of the rows that are finite
    float normScale = 1;      ///< a power of two: |x|^2 = norm step / normScale
    float normInverse = 1;    ///< 1 / normScale
    float normError = 0;      ///< how far a norm step is from |x|^2, at most
    float greatestLength = 0; ///< greatest |x| of the rows that are finite
};

/// <c, q> of a query and the center: what products of images lack.
struct CenterProduct {
    double value = 0;
    double error = 0; ///< how far off, at most
};

/// Pointers into an image, on the device. Those of queries have a scale a row
/// (`inverses`, `residuals`), those of vectors one for all (`facts`).
struct TensorImage {
    void* pieces = nullptr;
    /// Vectors: [capacity] |x|^2, +inf behind.
    float* norms = nullptr;
    /// Vectors: [capacity, 16] |x|^2 normScale as a sum of three float16
    /// numbers and zeros, laid out as a slab of 32-byte rows: a step of 16
    /// components more makes the norm part of the product. At most 65504: what
    /// is longer than the scale is for seems nearer than it is, and passes.
    /// +inf behind.
    void* normSteps = nullptr;
    float* inverses = nullptr;         ///< [capacity], queries: 1 / scale
    float* residuals = nullptr;        ///< [capacity], queries: |q - q'|
    TensorImageFacts* facts = nullptr; ///< vectors
};

/// Bytes of an image of `rows` rows, to be aligned to 16. No CUDA call.
size_t tensorImageBytes(idx_t rows, int d, bool areQueries);

/// The pointers of an image at `memory`, of the same `rows` as its size.
TensorImage tensorImageAt(void* memory, idx_t rows, int d, bool areQueries);

/// Rows to be written into an image.
struct TensorImageProblem {
    const void* rows = nullptr; ///< [n, d], row-major, of `type`
    DataType type = DataType::Float32;
    idx_t n = 0;
    int d = 0;
    bool areQueries = false;
    /// The row of the image that the first row goes to; 0 also starts the
    /// facts anew. Vectors alone.
    idx_t first = 0;
    /// [n] squared norms: vectors, for L2; nullptr otherwise.
    const float* norms = nullptr;
    /// [d] what is subtracted from every row, in float32; the norms are then
    /// those of the differences, and not read. Counts in residuals.
    const float* center = nullptr;
    /// [n] 1 / |x|, 0 of a zero row, below 0 of one that has to pass always
    /// (RowFacts::InverseNorm): cosine, whose images hold normalised rows, less
    /// the center if there is one, for scans by L2; nullptr otherwise. Norms
    /// are then those of what is held, and 1 more of zero rows, so that their
    /// distance is that of a cosine of 0 (TensorScanBound.h).
    const float* inverseNorms = nullptr;
    /// One float: the greatest finite |component| of the vectors less the
    /// center (runGreatestComponent); read for first = 0. It decides precision,
    /// never correctness: what is larger than the image can hold is cut to its
    /// largest number, and counts in the residual. Vectors without
    /// inverseNorms.
    const float* greatest = nullptr;
    /// Of the vectors that the queries will meet, for L2 and cosine: their
    /// scale has to suit that of the norms. Queries; nullptr otherwise.
    const TensorImageFacts* vectorFacts = nullptr;
    TensorImage image;

    /// Queries: what else to write, or nullptr. Their squared norms, [n], in
    /// float32 (1 more of zero rows for cosine), and their components in
    /// bfloat16, [n, d] row-major, both less the center; and their products
    /// with `productCenter`, [n].
    float* outNorms = nullptr;
    void* outRounded = nullptr;
    const float* productCenter = nullptr;
    CenterProduct* outProducts = nullptr;
};

/// Writes rows into an image, and the padding behind them.
///
/// Result   image = float16(x scale), to nearest even, at most 65504; NaN and
///          infinite components stay. The scale is a power of two that brings
///          the greatest component, of the vectors or of each query, to
///          [2^8, 2^9), or is 2^8 for vectors that are normalised, within
///          2^-50 to 2^60 (queries: 2^-60, and so that
///          0.5 scale scale' / normScale is in [2^-24, 2^15]). Residuals are
///          upper bounds, computed from the image as it is; rows with
///          components that are not finite have none (vectors), or infinity
///          (queries). Rows that have to pass always: vectors are zeros
///          with a squared norm of -infinity, queries NaN with one of
///          infinity.
/// Stream   enqueues, never waits; two kernels, one for queries
/// Errors   throws Error for a bad argument or a failed launch
/// Cost     one read of the rows, one write of the image
void runTensorImage(const TensorImageProblem& problem, cudaStream_t stream);

/// *out = max(*out if `keep`, greatest finite |component| of n rows less the
/// center, if there is one).
void runGreatestComponent(
        const void* rows,
        DataType type,
        idx_t n,
        int d,
        const float* center,
        bool keep,
        float* out,
        cudaStream_t stream);

} // namespace faiss_bits
