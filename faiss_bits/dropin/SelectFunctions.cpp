/// FAISS's selection functions, defined on our kernels.

#include "faiss_bits/dropin/Functions.h"
#include "faiss_bits/dropin/Replacement.h"
#include "faiss_bits/dropin/Request.h"

namespace faiss_bits::dropin {

namespace {

using faiss::gpu::L2SelectFunction;
using faiss::gpu::Matrix;
using faiss::gpu::SelectFunction;
using faiss::gpu::SelectPairFunction;
using faiss::gpu::Vector;

/// What all the functions share.
template <class Index>
Request makeRequest(
        const Matrix<float, Index>& in,
        const Matrix<float, Index>& outKeys,
        const Matrix<Index, Index>& outIds,
        bool largest,
        int k) {
    Request r;
    r.rows = in.size_[0];
    r.cols = in.size_[1];
    r.k = k;
    r.largest = largest;
    r.idType = sizeof(Index) == 4 ? IdType::Int32 : IdType::Int64;
    r.keys = in.data_;
    r.keyStride = in.stride_[0];
    r.outKeys = outKeys.data_;
    r.outKeyStride = outKeys.stride_[0];
    r.outIds = outIds.data_;
    r.outIdStride = outIds.stride_[0];
    return r;
}

/// What FAISS's runBlockSelect and runL2SelectMin assert.
template <class Index>
void expectOutputs(
        Request& request,
        const Matrix<float, Index>& outKeys,
        const Matrix<Index, Index>& outIds) {
    for (const Index* size : {outKeys.size_, outIds.size_}) {
        if (size[0] != request.rows || size[1] != request.k) {
            request.mismatch = "an output is " + shapeText(size[0], size[1]) +
                    ", expected " + shapeText(request.rows, request.k);
        }
    }
}

/// Selects with our kernels, or as FAISS does.
template <class F, class... Arguments>
void call(
        Replacement& replacement,
        const Request& request,
        cudaStream_t stream,
        Arguments&&... arguments) {
    const auto work = [&](const Original&) {
        select(request, stream);
        return std::string();
    };
    replacement.call<F>(
            refusalOf(request), work, std::forward<Arguments>(arguments)...);
}

template <class Index>
void runBlock(
        Replacement& replacement,
        Matrix<float, Index>& in,
        Matrix<float, Index>& outKeys,
        Matrix<Index, Index>& outIds,
        bool dir,
        int k,
        cudaStream_t stream) {
    Request request = makeRequest(in, outKeys, outIds, dir, k);
    expectOutputs(request, outKeys, outIds);
    call<SelectFunction<Index>>(
            replacement, request, stream, in, outKeys, outIds, dir, k, stream);
}

template <class Index>
void runPair(
        Replacement& replacement,
        Matrix<float, Index>& inKeys,
        Matrix<Index, Index>& inIds,
        Matrix<float, Index>& outKeys,
        Matrix<Index, Index>& outIds,
        bool dir,
        int k,
        cudaStream_t stream) {
    Request request = makeRequest(inKeys, outKeys, outIds, dir, k);
    request.ids = inIds.data_;
    request.idStride = inIds.stride_[0];
    const auto expectSame = [&](const auto& keys, const auto& ids) {
        if (keys.size_[0] != ids.size_[0] || keys.size_[1] != ids.size_[1]) {
            request.mismatch = "keys are " +
                    shapeText(keys.size_[0], keys.size_[1]) + ", their ids " +
                    shapeText(ids.size_[0], ids.size_[1]);
        }
    };
    expectSame(inKeys, inIds);
    expectSame(outKeys, outIds);
    call<SelectPairFunction<Index>>(
            replacement,
            request,
            stream,
            inKeys,
            inIds,
            outKeys,
            outIds,
            dir,
            k,
            stream);
}

template <class Index>
void runL2(
        Replacement& replacement,
        Matrix<float, Index>& product,
        Vector<float, Index>& centroid,
        Matrix<float, Index>& outKeys,
        Matrix<Index, Index>& outIds,
        int k,
        cudaStream_t stream) {
    Request request = makeRequest(product, outKeys, outIds, false, k);
    expectOutputs(request, outKeys, outIds);
    request.colBias = centroid.data_;
    if (centroid.size_[0] != request.cols) {
        request.mismatch = "there are " + std::to_string(centroid.size_[0]) +
                " centroid distances for " + std::to_string(request.cols) +
                " columns";
    }
    call<L2SelectFunction<Index>>(
            replacement,
            request,
            stream,
            product,
            centroid,
            outKeys,
            outIds,
            k,
            stream);
}

} // namespace

} // namespace faiss_bits::dropin

// ---- the functions themselves ----------------------------------------------

namespace faiss::gpu {

using namespace faiss_bits::dropin;

void runBlockSelect(
        Matrix<float, int>& in,
        Matrix<float, int>& outKeys,
        Matrix<int, int>& outIndices,
        bool dir,
        int k,
        cudaStream_t stream) {
    static auto& own = *new Replacement(describeBlockSelect<int>());
    runBlock(own, in, outKeys, outIndices, dir, k, stream);
}

void runBlockSelect(
        Matrix<float, int64_t>& in,
        Matrix<float, int64_t>& outKeys,
        Matrix<int64_t, int64_t>& outIndices,
        bool dir,
        int k,
        cudaStream_t stream) {
    static auto& own = *new Replacement(describeBlockSelect<int64_t>());
    runBlock(own, in, outKeys, outIndices, dir, k, stream);
}

void runBlockSelectPair(
        Matrix<float, int>& inKeys,
        Matrix<int, int>& inIndices,
        Matrix<float, int>& outKeys,
        Matrix<int, int>& outIndices,
        bool dir,
        int k,
        cudaStream_t stream) {
    static auto& own = *new Replacement(describeBlockSelectPair<int>());
    runPair(own, inKeys, inIndices, outKeys, outIndices, dir, k, stream);
}

void runBlockSelectPair(
        Matrix<float, int64_t>& inKeys,
        Matrix<int64_t, int64_t>& inIndices,
        Matrix<float, int64_t>& outKeys,
        Matrix<int64_t, int64_t>& outIndices,
        bool dir,
        int k,
        cudaStream_t stream) {
    static auto& own = *new Replacement(describeBlockSelectPair<int64_t>());
    runPair(own, inKeys, inIndices, outKeys, outIndices, dir, k, stream);
}

void runL2SelectMin(
        Matrix<float, int>& productDistances,
        Vector<float, int>& centroidDistances,
        Matrix<float, int>& outDistances,
        Matrix<int, int>& outIndices,
        int k,
        cudaStream_t stream) {
    static auto& own = *new Replacement(describeL2SelectMin<int>());
    runL2(own,
          productDistances,
          centroidDistances,
          outDistances,
          outIndices,
          k,
          stream);
}

void runL2SelectMin(
        Matrix<float, int64_t>& productDistances,
        Vector<float, int64_t>& centroidDistances,
        Matrix<float, int64_t>& outDistances,
        Matrix<int64_t, int64_t>& outIndices,
        int k,
        cudaStream_t stream) {
    static auto& own = *new Replacement(describeL2SelectMin<int64_t>());
    runL2(own,
          productDistances,
          centroidDistances,
          outDistances,
          outIndices,
          k,
          stream);
}

} // namespace faiss::gpu
