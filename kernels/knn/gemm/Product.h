#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>

#include "kernels/knn/FlatKnn.h"

namespace faiss_bits {

/// Products of some queries with some vectors, by cuBLAS, in an arithmetic
/// that does not depend on how a search is cut into pages and tiles.
///
/// cuBLAS chooses a kernel by the shape of each product, and kernels add up in
/// different orders. So one algorithm is chosen for a search, from the caller's
/// whole batch (FlatKnnProblem::batchQueries), and serves every product of it.
/// It never splits the sum over components among threads, and leaves nothing to
/// the shape; so a product has the same bits in every tile. Those of 16-bit
/// types get a few bytes of scratch, by which their blocks share out the work:
/// without it they are 4% slower (d = 128, H200).
///
/// float32  one fused multiply-add a component, in their order, from zero: on
///          an H200 (cuBLAS 13.0) every algorithm of this kind gives these very
///          bits (n = 2003, d = 3, 33, 128, 768; all 22
///          configurations)
/// float16, bfloat16  products and sums in fp32, in the order of the algorithm
///
/// Cost     2 q n d operations. float32 at n = 2^20, 256 queries, d = 128 and
///          256: 0.88 and 0.82 of the time of cublasGemmEx; float16 the same
///          as it (H200, cuBLAS 13.0, products alone)
class Product {
   public:
    /// What cuBLAS gets of it, at a multiple of as many bytes.
    static constexpr size_t kWorkspace = 256;
    /// Scratch of a product, on the device, wherever it begins.
    static constexpr size_t workspaceBytes(DataType type) {
        return type == DataType::Float32 ? 0 : 2 * kWorkspace;
    }

    /// Chooses the algorithm. The first time for a kind of problem cuBLAS is
    /// asked (about 0.1 ms); later it is remembered. Every product goes to
    /// `out`, with the same stride between rows.
    Product(const FlatKnnProblem& problem,
            cublasHandle_t handle,
            void* workspace,
            const float* out,
            idx_t outStride);

    /// out[q][v] = <query, vector>, times -2 for L2, and times -1 for an
    /// InnerProduct with a filter. Rows of `out` are outStride apart.
    /// firstVector is a multiple of kVectorAlignment, and unless it ends with
    /// the last vector, so is numVectors. Enqueues.
    ///
    /// gathered  [numVectors, d], aligned to 16 bytes: in place of those from
    ///           firstVector on, of row-major vectors; numVectors is a multiple
    ///           of kVectorAlignment and at least kLeastVectors, of which the
    ///           problem has no fewer: the algorithm was held against these
    void run(
            idx_t firstQuery,
            idx_t numQueries,
            idx_t firstVector,
            idx_t numVectors,
            float* out,
            idx_t outStride,
            cudaStream_t stream,
            const void* gathered = nullptr) const;

    /// Tiles of vectors begin at multiples of it, so that all but the last are
    /// alike to an algorithm that wants aligned sizes.
    static constexpr idx_t kVectorAlignment = 8;

   private:
    const FlatKnnProblem& problem_;
    void* workspace_;
    cublasLtHandle_t handle_;
    cublasLtMatmulAlgo_t algorithm_;
};

} // namespace faiss_bits
