#pragma once

#include <tuple>

#include <cublasLt.h>

#include "kernels/knn/FlatKnn.h"

namespace faiss_bits {

/// Bytes that rows of `rowBytes` from `data` on are aligned to, at most 16.
uint32_t alignmentOf(const void* data, size_t rowBytes);

/// What an algorithm is chosen by. Nothing in it depends on pages or tiles.
struct ProductKind {
    int device = 0;
    DataType type = DataType::Float32;
    bool vectorsRowMajor = true;
    bool queriesRowMajor = true;
    int d = 0;
    idx_t vectorStride = 0;
    idx_t vectors = 0; // at most about kMostVectors, n modulo the alignment
    idx_t queries = 0; // at most kMostQueries
    uint32_t vectorAlignment = 16;
    uint32_t queryAlignment = 16;
    uint32_t outAlignment = 16;

    auto tied() const {
        return std::tie(
                device,
                type,
                vectorsRowMajor,
                queriesRowMajor,
                d,
                vectorStride,
                vectors,
                queries,
                vectorAlignment,
                queryAlignment,
                outAlignment);
    }
    bool operator<(const ProductKind& other) const {
        return tied() < other.tied();
    }
};

/// `outAlignment` is that of the rows that products go to.
ProductKind productKindOf(const FlatKnnProblem& problem, uint32_t outAlignment);

/// One product as cuBLAS wants it: its [vectors, queries], column-major, is
/// our [queries, vectors].
struct ProductCall {
    cublasLtMatmulDescOpaque_t operation;
    cublasLtMatrixLayoutOpaque_t vectors;
    cublasLtMatrixLayoutOpaque_t queries;
    cublasLtMatrixLayoutOpaque_t out;

    /// Reads the types, the layouts, d and the vectors' stride of `kind`.
    ProductCall(
            const ProductKind& kind,
            idx_t numVectors,
            idx_t numQueries,
            idx_t queryStride,
            idx_t outStride);
};

/// The algorithm for all products of a kind (Product.h says which). The first
/// time cuBLAS is asked; later it is remembered. Throws Error if there is none.
cublasLtMatmulAlgo_t productAlgorithm(
        cublasLtHandle_t handle,
        const ProductKind& kind);

} // namespace faiss_bits
