/// FAISS's whole searches, defined on our kernels.

#include "faiss_bits/dropin/Functions.h"
#include "faiss_bits/dropin/Replacement.h"
#include "faiss_bits/dropin/Search.h"

namespace faiss_bits::dropin {

namespace {

/// Of FAISS's tensors: this file is compiled for each (CMakeLists.txt).
using Index = FAISS_BITS_DROPIN_INDEX;

using faiss::gpu::Matrix;

/// [count, d], or [d, count] if it is not row-major.
SearchMatrix readMatrix(const Matrix<float, Index>& tensor, bool rowMajor) {
    SearchMatrix matrix;
    matrix.data = tensor.data_;
    matrix.rowMajor = rowMajor;
    matrix.count = tensor.size_[rowMajor ? 0 : 1];
    matrix.d = tensor.size_[rowMajor ? 1 : 0];
    // The stride of a single row may be anything.
    matrix.isDense =
            tensor.size_[0] <= 1 || tensor.stride_[0] == tensor.size_[1];
    return matrix;
}

SearchRequest makeRequest(
        Metric metric,
        const Matrix<float, Index>& vectors,
        bool vectorsRowMajor,
        const Matrix<float, Index>& queries,
        bool queriesRowMajor,
        int k,
        const Matrix<float, Index>& outDistances,
        const Matrix<Index, Index>& outIndices) {
    SearchRequest r;
    r.metric = metric;
    r.vectors = readMatrix(vectors, vectorsRowMajor);
    r.queries = readMatrix(queries, queriesRowMajor);
    r.k = k;
    r.idType = sizeof(Index) == 4 ? IdType::Int32 : IdType::Int64;
    r.outDistances = outDistances.data_;
    r.outIds = outIndices.data_;
    r.outputsAreDense = r.queries.count <= 1 ||
            (outDistances.stride_[0] == k && outIndices.stride_[0] == k);
    // What FAISS's functions assert.
    for (const Index* size : {outDistances.size_, outIndices.size_}) {
        if (size[0] != r.queries.count || size[1] != k) {
            r.mismatch = "an output is " + shapeText(size[0], size[1]) +
                    ", expected " + shapeText(r.queries.count, k);
        }
    }
    if (r.queries.count > 0 && r.vectors.count > 0 &&
        r.queries.d != r.vectors.d) {
        r.mismatch = "queries have " + std::to_string(r.queries.d) +
                " dimensions, vectors " + std::to_string(r.vectors.d);
    }
    return r;
}

/// Searches with our kernels, or as FAISS does.
template <class F, class... Arguments>
void call(
        Replacement& replacement,
        const SearchRequest& request,
        cudaStream_t stream,
        Arguments&&... arguments) {
    const auto work = [&](const Original& original) {
        return search(request, original, stream);
    };
    replacement.call<F>(
            refusalOf(request), work, std::forward<Arguments>(arguments)...);
}

} // namespace

} // namespace faiss_bits::dropin

// ---- the functions themselves ----------------------------------------------

namespace faiss::gpu {

using namespace faiss_bits::dropin;

void runL2Distance(
        GpuResources* resources,
        cudaStream_t stream,
        Matrix<float, Index>& vectors,
        bool vectorsRowMajor,
        Vector<float, Index>* vectorNorms,
        Matrix<float, Index>& queries,
        bool queriesRowMajor,
        int k,
        Matrix<float, Index>& outDistances,
        Matrix<Index, Index>& outIndices,
        bool ignoreOutDistances) {
    static auto& own = *new Replacement(describeL2Distance<Index>());
    const SearchRequest request = makeRequest(
            faiss_bits::Metric::L2,
            vectors,
            vectorsRowMajor,
            queries,
            queriesRowMajor,
            k,
            outDistances,
            outIndices);
    call<L2DistanceFunction<Index>>(
            own,
            request,
            stream,
            resources,
            stream,
            vectors,
            vectorsRowMajor,
            vectorNorms,
            queries,
            queriesRowMajor,
            k,
            outDistances,
            outIndices,
            ignoreOutDistances);
}

void runIPDistance(
        GpuResources* resources,
        cudaStream_t stream,
        Matrix<float, Index>& vectors,
        bool vectorsRowMajor,
        Matrix<float, Index>& queries,
        bool queriesRowMajor,
        int k,
        Matrix<float, Index>& outDistances,
        Matrix<Index, Index>& outIndices) {
    static auto& own = *new Replacement(describeIPDistance<Index>());
    const SearchRequest request = makeRequest(
            faiss_bits::Metric::InnerProduct,
            vectors,
            vectorsRowMajor,
            queries,
            queriesRowMajor,
            k,
            outDistances,
            outIndices);
    call<IPDistanceFunction<Index>>(
            own,
            request,
            stream,
            resources,
            stream,
            vectors,
            vectorsRowMajor,
            queries,
            queriesRowMajor,
            k,
            outDistances,
            outIndices);
}

} // namespace faiss::gpu
