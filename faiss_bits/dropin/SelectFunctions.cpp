/// FAISS's selection functions, defined on our kernels.

#include "faiss_bits/dropin/Functions.h"
#include "faiss_bits/dropin/Replacement.h"
#include "faiss_bits/dropin/Request.h"

namespace faiss_bits::dropin {

namespace {

/// Of FAISS's tensors: this file is compiled for each (CMakeLists.txt).
using Index = FAISS_BITS_DROPIN_INDEX;

using faiss::gpu::Matrix;

/// What all the functions share.
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

} // namespace

} // namespace faiss_bits::dropin

// ---- the functions themselves ----------------------------------------------

namespace faiss::gpu {

using namespace faiss_bits::dropin;

void runBlockSelect(
        Matrix<float, Index>& in,
        Matrix<float, Index>& outKeys,
        Matrix<Index, Index>& outIndices,
        bool dir,
        int k,
        cudaStream_t stream) {
    static auto& own = *new Replacement(describeBlockSelect<Index>());
    Request request = makeRequest(in, outKeys, outIndices, dir, k);
    expectOutputs(request, outKeys, outIndices);
    call<SelectFunction<Index>>(
            own, request, stream, in, outKeys, outIndices, dir, k, stream);
}

void runBlockSelectPair(
        Matrix<float, Index>& inKeys,
        Matrix<Index, Index>& inIndices,
        Matrix<float, Index>& outKeys,
        Matrix<Index, Index>& outIndices,
        bool dir,
        int k,
        cudaStream_t stream) {
    static auto& own = *new Replacement(describeBlockSelectPair<Index>());
    Request request = makeRequest(inKeys, outKeys, outIndices, dir, k);
    request.ids = inIndices.data_;
    request.idStride = inIndices.stride_[0];
    const auto expectSame = [&](const auto& keys, const auto& ids) {
        if (keys.size_[0] != ids.size_[0] || keys.size_[1] != ids.size_[1]) {
            request.mismatch = "keys are " +
                    shapeText(keys.size_[0], keys.size_[1]) + ", their ids " +
                    shapeText(ids.size_[0], ids.size_[1]);
        }
    };
    expectSame(inKeys, inIndices);
    expectSame(outKeys, outIndices);
    call<SelectPairFunction<Index>>(
            own,
            request,
            stream,
            inKeys,
            inIndices,
            outKeys,
            outIndices,
            dir,
            k,
            stream);
}

void runL2SelectMin(
        Matrix<float, Index>& productDistances,
        Vector<float, Index>& centroidDistances,
        Matrix<float, Index>& outDistances,
        Matrix<Index, Index>& outIndices,
        int k,
        cudaStream_t stream) {
    static auto& own = *new Replacement(describeL2SelectMin<Index>());
    Request request =
            makeRequest(productDistances, outDistances, outIndices, false, k);
    expectOutputs(request, outDistances, outIndices);
    request.colBias = centroidDistances.data_;
    if (centroidDistances.size_[0] != request.cols) {
        request.mismatch = "there are " +
                std::to_string(centroidDistances.size_[0]) +
                " centroid distances for " + std::to_string(request.cols) +
                " columns";
    }
    call<L2SelectFunction<Index>>(
            own,
            request,
            stream,
            productDistances,
            centroidDistances,
            outDistances,
            outIndices,
            k,
            stream);
}

} // namespace faiss::gpu
