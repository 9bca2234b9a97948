/// Where a tile of distances finds the components of its vectors.
///
/// A class of vectors has Params, what kernels get of a search, with d, queries
/// and power; areNear(params, count), whether `count` vectors of a tile are
/// found with 32 bits; and with(params, body), which calls body(vectors). Those
/// vectors have column(place, c) and vector(place, i), of a TilePlace.
#pragma once

#include "kernels/knn/certified/CanonicalPair.cuh"

namespace faiss_bits {

/// Where a tile is: its vectors, and the rows of its queries.
struct TilePlace {
    int64_t first;        // vector
    int64_t last;         // end of the vectors
    const uint32_t* rows; // nullptr: from firstRow on
    uint32_t numRows;
    uint32_t firstRow = 0;
    /// What the vectors are numbered in, where that is not the same for all
    /// tiles: a list of an inverted file.
    const void* list = nullptr;
    uint32_t listNumber = 0;

    __device__ __forceinline__ int64_t row(uint32_t q) const {
        return rows ? rows[q] : firstRow + q;
    }

    /// Without the first q < numRows queries and v vectors.
    __device__ __forceinline__ TilePlace from(uint32_t q, int64_t v) const {
        return {first + v,
                last,
                rows ? rows + q : nullptr,
                numRows - q,
                firstRow + q,
                list,
                listNumber};
    }
};

/// Vectors of a matrix, of one type.
template <class T>
struct MatrixVectors {
    const T* data;
    int64_t rowStride;
    int64_t columnStride;

    /// A component of the vectors of a tile.
    struct Column {
        const T* x; // of the first
        int64_t rowStride;

        /// Of vector i of the tile.
        __device__ __forceinline__ float at(int64_t i) const {
            return toFloat(x[i * rowStride]);
        }
        /// The same where areNear().
        __device__ __forceinline__ float near(uint32_t i) const {
            return toFloat(x[i * uint32_t(rowStride)]);
        }
    };

    /// The components of a vector.
    struct Vector {
        const T* x;
        int64_t columnStride;

        __device__ __forceinline__ float operator()(int c) const {
            return toFloat(x[c * columnStride]);
        }
    };

    __device__ __forceinline__ Column
    column(const TilePlace& place, int c) const {
        return {data + place.first * rowStride + c * columnStride, rowStride};
    }

    __device__ __forceinline__ Vector
    vector(const TilePlace& place, int64_t i) const {
        return {data + (place.first + i) * rowStride, columnStride};
    }
};

/// The vectors of CertifiedParams.
struct MatrixOfVectors {
    using Params = CertifiedParams;

    __device__ __forceinline__ static bool areNear(
            const CertifiedParams& params,
            int count) {
        return params.vectors.rowStride < UINT32_MAX / count;
    }

    template <class Body>
    __device__ __forceinline__ static void with(
            const CertifiedParams& params,
            const Body& body) {
        withVectors(params.vectors, [&](const auto* data) {
            using T = std::remove_cvref_t<decltype(*data)>;
            body(MatrixVectors<T>{
                    data,
                    params.vectors.rowStride,
                    params.vectors.columnStride});
        });
    }
};

} // namespace faiss_bits
