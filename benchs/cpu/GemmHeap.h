#pragma once

#include "kernels/common/Types.h"

/// The search that Yu et al. 2015 compare with, written out: Algorithm 2.1.
namespace faiss_bits::bench {

/// Squared L2, k nearest of every query. Rows of `queries` [numQueries, d] and
/// of `vectors` [numVectors, d]; ids choose rows, nullptr: all, in order.
template <class T> // float or double
struct GemmHeapProblem {
    idx_t numQueries = 0;
    idx_t numVectors = 0;
    int d = 0;
    idx_t k = 0;
    const T* queries = nullptr;
    const idx_t* queryIds = nullptr;
    const T* vectors = nullptr;
    const idx_t* vectorIds = nullptr;
    int threads = 1;
    T* outDistances = nullptr; ///< [numQueries, k], ascending
    idx_t* outIds = nullptr;   ///< [numQueries, k], -1 = none
};

/// Milliseconds of the parts, as in the paper's Table 5.
struct GemmHeapTimes {
    double collect = 0; ///< rows gathered, their norms taken
    double gemm = 0;
    double norms = 0; ///< added to the products
    double heap = 0;
    double total() const {
        return collect + gemm + norms + heap;
    }
};

/// Collects the rows, multiplies (BLAS), adds the norms, keeps a binary heap
/// of the standard library a query: each a pass of its own over the whole
/// matrix of distances, by OpenMP. Queries whose matrix would be above 1 GiB go
/// in parts. Buffers are kept for the next call; one call at a time.
template <class T>
GemmHeapTimes runGemmHeap(const GemmHeapProblem<T>& problem);

} // namespace faiss_bits::bench
