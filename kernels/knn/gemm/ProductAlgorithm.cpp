#include "kernels/knn/gemm/ProductAlgorithm.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <vector>

#include "kernels/common/CublasLtCalls.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/knn/gemm/Product.h"

namespace faiss_bits {

namespace {

/// Beyond these, a larger product gets the same algorithm.
constexpr idx_t kMostVectors = idx_t(1) << 20;
constexpr idx_t kMostQueries = 256;
/// FlatKnnPlan makes no narrower tile where there are more vectors.
constexpr idx_t kLeastVectors = 8192;
static_assert(kLeastVectors % Product::kVectorAlignment == 0);

cudaDataType_t cublasType(DataType type) {
    switch (type) {
        case DataType::Float32:
            return CUDA_R_32F;
        case DataType::Float16:
            return CUDA_R_16F;
        case DataType::BFloat16:
            return CUDA_R_16BF;
    }
    throw Error(formatMessage("dataType = %d is unknown", int(type)));
}

void setTransposed(
        cublasLtMatmulDescOpaque_t& operation,
        cublasLtMatmulDescAttributes_t which,
        bool transposed) {
    const cublasOperation_t value = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    BITS_CUBLAS_CHECK(
            cublasLtCalls().descSet(&operation, which, &value, sizeof(value)));
}

} // namespace

/// Bytes that rows of `rowBytes` from `data` on are aligned to, at most 16.
uint32_t alignmentOf(const void* data, size_t rowBytes) {
    const size_t bits = reinterpret_cast<uintptr_t>(data) | rowBytes | 16;
    return uint32_t(bits & -bits);
}

ProductKind productKindOf(const FlatKnnProblem& p, uint32_t outAlignment) {
    ProductKind kind;
    BITS_CUDA_CHECK(cudaGetDevice(&kind.device));
    kind.type = p.dataType;
    kind.vectorsRowMajor = p.vectorsRowMajor;
    kind.queriesRowMajor = p.queriesRowMajor;
    kind.d = p.d;
    kind.vectorStride = p.vectorsRowMajor ? p.d : p.numVectors;
    const size_t size = sizeOf(p.dataType);
    kind.vectors = p.numVectors <= kMostVectors
            ? p.numVectors
            : kMostVectors + p.numVectors % Product::kVectorAlignment;
    kind.queries =
            std::min(std::max(p.batchQueries, p.numQueries), kMostQueries);
    kind.vectorAlignment =
            alignmentOf(p.vectors, size_t(kind.vectorStride) * size);
    // Pages and tiles of queries may begin anywhere in a row of a column-major
    // matrix.
    kind.queryAlignment = p.queriesRowMajor
            ? alignmentOf(p.queries, size_t(p.d) * size)
            : uint32_t(size);
    kind.outAlignment = outAlignment;
    return kind;
}

ProductCall::ProductCall(
        const ProductKind& kind,
        idx_t numVectors,
        idx_t numQueries,
        idx_t queryStride,
        idx_t outStride) {
    const CublasLtCalls& lt = cublasLtCalls();
    BITS_CUBLAS_CHECK(lt.descInit(
            &operation, sizeof(operation), CUBLAS_COMPUTE_32F, CUDA_R_32F));
    setTransposed(operation, CUBLASLT_MATMUL_DESC_TRANSA, kind.vectorsRowMajor);
    setTransposed(
            operation, CUBLASLT_MATMUL_DESC_TRANSB, !kind.queriesRowMajor);
    const cudaDataType_t type = cublasType(kind.type);
    const uint64_t n = numVectors;
    const uint64_t q = numQueries;
    const uint64_t d = kind.d;
    BITS_CUBLAS_CHECK(lt.layoutInit(
            &vectors,
            sizeof(vectors),
            type,
            kind.vectorsRowMajor ? d : n,
            kind.vectorsRowMajor ? n : d,
            kind.vectorStride));
    BITS_CUBLAS_CHECK(lt.layoutInit(
            &queries,
            sizeof(queries),
            type,
            kind.queriesRowMajor ? d : q,
            kind.queriesRowMajor ? q : d,
            queryStride));
    BITS_CUBLAS_CHECK(
            lt.layoutInit(&out, sizeof(out), CUDA_R_32F, n, q, outStride));
}

namespace {

/// Whether the algorithm can do this product. Some that run without a
/// workspace, as proposals() demands for float32, are said to want 4 bytes.
bool fits(
        cublasLtHandle_t handle,
        ProductCall call,
        const cublasLtMatmulAlgo_t& algorithm) {
    cublasLtMatmulHeuristicResult_t result = {};
    return cublasLtCalls().algoCheck(
                   handle,
                   &call.operation,
                   &call.vectors,
                   &call.queries,
                   &call.out,
                   &call.out,
                   &algorithm,
                   &result) == CUBLAS_STATUS_SUCCESS;
}

idx_t roundUp(idx_t value, idx_t step) {
    return (value + step - 1) / step * step;
}

/// A product of this shape.
ProductCall callFor(
        const ProductKind& kind,
        idx_t numVectors,
        idx_t numQueries) {
    return ProductCall(
            kind,
            numVectors,
            numQueries,
            kind.queriesRowMajor ? kind.d : numQueries,
            roundUp(numVectors, kind.outAlignment / sizeof(float)));
}

/// Algorithms that cuBLAS would take for this shape, best first, with whole
/// sums and little or no workspace.
std::vector<cublasLtMatmulAlgo_t> proposals(
        cublasLtHandle_t handle,
        const ProductKind& kind,
        idx_t numVectors,
        idx_t numQueries) {
    const CublasLtCalls& lt = cublasLtCalls();
    cublasLtMatmulPreferenceOpaque_t preference;
    BITS_CUBLAS_CHECK(lt.preferenceInit(&preference, sizeof(preference)));
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t which,
                         auto value) {
        BITS_CUBLAS_CHECK(
                lt.preferenceSet(&preference, which, &value, sizeof(value)));
    };
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
        uint64_t(kind.type == DataType::Float32 ? 0 : Product::kWorkspace));
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        uint32_t(CUBLASLT_REDUCTION_SCHEME_NONE));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, kind.vectorAlignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, kind.queryAlignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, kind.outAlignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, kind.outAlignment);
    ProductCall call = callFor(kind, numVectors, numQueries);
    std::array<cublasLtMatmulHeuristicResult_t, 16> results;
    int found = 0;
    const cublasStatus_t status = lt.heuristic(
            handle,
            &call.operation,
            &call.vectors,
            &call.queries,
            &call.out,
            &call.out,
            &preference,
            int(results.size()),
            results.data(),
            &found);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) {
        return {};
    }
    BITS_CUBLAS_CHECK(status);
    std::vector<cublasLtMatmulAlgo_t> list;
    for (int i = 0; i < found; ++i) {
        int32_t splits = 1;
        (void)lt.algoGet(
                &results[i].algo,
                CUBLASLT_ALGO_CONFIG_SPLITK_NUM,
                &splits,
                sizeof(splits),
                nullptr);
        if (results[i].state == CUBLAS_STATUS_SUCCESS && splits <= 1) {
            list.push_back(results[i].algo);
        }
    }
    return list;
}

/// True if the algorithm takes every tile that a search of this kind may make:
/// of aligned width and, where n is not, the last one; with many queries and
/// with one. Tiles of fewer vectors than kLeastVectors are whole searches.
bool fitsEveryTile(
        cublasLtHandle_t handle,
        const ProductKind& kind,
        const cublasLtMatmulAlgo_t& algorithm) {
    const idx_t odd = kind.vectors % Product::kVectorAlignment;
    std::vector<idx_t> widths = {kind.vectors};
    if (kind.vectors > kLeastVectors) {
        widths.push_back(kLeastVectors);
        widths.push_back(kLeastVectors + odd);
    }
    for (const idx_t vectors : widths) {
        for (const idx_t queries : {kind.queries, idx_t(1)}) {
            if (!fits(handle, callFor(kind, vectors, queries), algorithm)) {
                return false;
            }
        }
    }
    return true;
}

/// The same float32 kernel with tiles for this many queries, if there is one.
/// cuBLAS proposes tiles of 64 queries and more, whatever the number; and for
/// many queries, smaller ones than are best (measured, H200).
cublasLtMatmulAlgo_t withTilesFor(
        cublasLtHandle_t handle,
        const ProductKind& kind,
        const cublasLtMatmulAlgo_t& proposed) {
    const cublasLtMatmulTile_t tile = kind.queries <= 32
            ? CUBLASLT_MATMUL_TILE_128x32
            : kind.queries <= 64 ? CUBLASLT_MATMUL_TILE_256x64
                                 : CUBLASLT_MATMUL_TILE_128x128;
    cublasLtMatmulAlgo_t changed = proposed;
    const uint32_t value = tile;
    const bool set = cublasLtCalls().algoSet(
                             &changed,
                             CUBLASLT_ALGO_CONFIG_TILE_ID,
                             &value,
                             sizeof(value)) == CUBLAS_STATUS_SUCCESS;
    return set && fitsEveryTile(handle, kind, changed) ? changed : proposed;
}

cublasLtMatmulAlgo_t choose(cublasLtHandle_t handle, const ProductKind& kind) {
    // Last, for what those of the whole shape cannot do: an algorithm for the
    // least aligned sizes.
    for (const auto& [vectors, queries] :
         {std::pair(kind.vectors, kind.queries),
          std::pair(std::min(kind.vectors, kLeastVectors - 1), idx_t(1))}) {
        for (const cublasLtMatmulAlgo_t& one :
             proposals(handle, kind, vectors, queries)) {
            if (fitsEveryTile(handle, kind, one)) {
                return kind.type == DataType::Float32
                        ? withTilesFor(handle, kind, one)
                        : one;
            }
        }
    }
    throw Error(formatMessage(
            "cuBLAS has no algorithm for products of %lld vectors and %lld "
            "queries of %d components (dataType = %d)",
            (long long)kind.vectors,
            (long long)kind.queries,
            kind.d,
            int(kind.type)));
}

} // namespace

cublasLtMatmulAlgo_t productAlgorithm(
        cublasLtHandle_t handle,
        const ProductKind& kind) {
    static std::mutex mutex;
    static std::map<ProductKind, cublasLtMatmulAlgo_t> known;
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = known.find(kind);
    if (found != known.end()) {
        return found->second;
    }
    // A program that searches ever new shapes must not fill the memory.
    constexpr size_t kMostKnown = 4096;
    if (known.size() >= kMostKnown) {
        known.clear();
    }
    return known[kind] = choose(handle, kind);
}

} // namespace faiss_bits
