/// FAISS's functions, defined on our kernels.

#include <type_traits>

#include "faiss_bits/dropin/FaissFunctions.h"
#include "faiss_bits/dropin/LoadedFaiss.h"
#include "faiss_bits/dropin/Replacement.h"

namespace faiss_bits::dropin {

namespace {

using faiss::gpu::L2SelectFunction;
using faiss::gpu::Matrix;
using faiss::gpu::SelectFunction;
using faiss::gpu::SelectPairFunction;
using faiss::gpu::Vector;

template <class Key, class Index>
constexpr const char* typesOf() {
    if (sizeof(Index) == 4) {
        return std::is_same_v<Key, float> ? "float keys, 32-bit ids"
                                          : "half keys, 32-bit ids";
    }
    return std::is_same_v<Key, float> ? "float keys, 64-bit ids"
                                      : "half keys, 64-bit ids";
}

/// No FAISS that we know has functions for half keys, though its headers
/// declare them, and none calls runWarpSelect itself.
template <class Key, class Index, class F>
Function describe(const char* name, bool called, F* address) {
    const bool isFloat = std::is_same_v<Key, float>;
    return {name,
            typesOf<Key, Index>(),
            int(8 * sizeof(Index)),
            isFloat,
            isFloat && called,
            reinterpret_cast<const void*>(address)};
}

template <class Key, class Index>
Function describeBlock() {
    SelectFunction<Key, Index>* address = &faiss::gpu::runBlockSelect;
    return describe<Key, Index>("runBlockSelect", true, address);
}

template <class Key, class Index>
Function describePair() {
    SelectPairFunction<Key, Index>* address = &faiss::gpu::runBlockSelectPair;
    return describe<Key, Index>("runBlockSelectPair", true, address);
}

template <class Key, class Index>
Function describeWarp() {
    SelectFunction<Key, Index>* address = &faiss::gpu::runWarpSelect;
    return describe<Key, Index>("runWarpSelect", false, address);
}

template <class Index>
Function describeL2() {
    L2SelectFunction<Index>* address = &faiss::gpu::runL2SelectMin;
    return describe<float, Index>("runL2SelectMin", true, address);
}

template <class Key>
constexpr DataType keyTypeOf() {
    return std::is_same_v<Key, float> ? DataType::Float32 : DataType::Float16;
}

std::string shapeText(idx_t rows, idx_t cols) {
    return std::to_string(rows) + " x " + std::to_string(cols);
}

/// What all the functions share.
template <class Key, class Index>
Request makeRequest(
        const Matrix<Key, Index>& in,
        const Matrix<Key, Index>& outKeys,
        const Matrix<Index, Index>& outIds,
        bool largest,
        int k) {
    Request r;
    r.rows = in.size_[0];
    r.cols = in.size_[1];
    r.k = k;
    r.largest = largest;
    r.keyType = keyTypeOf<Key>();
    r.idType = sizeof(Index) == 4 ? IdType::Int32 : IdType::Int64;
    r.keys = in.data_;
    r.keyStride = in.stride_[0];
    r.outKeys = outKeys.data_;
    r.outKeyStride = outKeys.stride_[0];
    r.outIds = outIds.data_;
    r.outIdStride = outIds.stride_[0];
    return r;
}

/// What FAISS's runBlockSelect and runL2SelectMin assert, and runWarpSelect
/// does not.
template <class Key, class Index>
void expectOutputs(
        Request& request,
        const Matrix<Key, Index>& outKeys,
        const Matrix<Index, Index>& outIds) {
    for (const Index* size : {outKeys.size_, outIds.size_}) {
        if (size[0] != request.rows || size[1] != request.k) {
            request.mismatch = "an output is " + shapeText(size[0], size[1]) +
                    ", expected " + shapeText(request.rows, request.k);
        }
    }
}

template <class Key, class Index>
void runBlock(
        Replacement& replacement,
        Matrix<Key, Index>& in,
        Matrix<Key, Index>& outKeys,
        Matrix<Index, Index>& outIds,
        bool dir,
        int k,
        cudaStream_t stream) {
    Request request = makeRequest(in, outKeys, outIds, dir, k);
    expectOutputs(request, outKeys, outIds);
    replacement.call<SelectFunction<Key, Index>>(
            request, stream, in, outKeys, outIds, dir, k, stream);
}

template <class Key, class Index>
void runWarp(
        Replacement& replacement,
        Matrix<Key, Index>& in,
        Matrix<Key, Index>& outKeys,
        Matrix<Index, Index>& outIds,
        bool dir,
        int k,
        cudaStream_t stream) {
    const Request request = makeRequest(in, outKeys, outIds, dir, k);
    replacement.call<SelectFunction<Key, Index>>(
            request, stream, in, outKeys, outIds, dir, k, stream);
}

template <class Key, class Index>
void runPair(
        Replacement& replacement,
        Matrix<Key, Index>& inKeys,
        Matrix<Index, Index>& inIds,
        Matrix<Key, Index>& outKeys,
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
    replacement.call<SelectPairFunction<Key, Index>>(
            request, stream, inKeys, inIds, outKeys, outIds, dir, k, stream);
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
    replacement.call<L2SelectFunction<Index>>(
            request, stream, product, centroid, outKeys, outIds, k, stream);
}

} // namespace

const std::vector<Function>& functions() {
    static const auto& all = *new std::vector<Function>{
            describeBlock<float, int>(),
            describeBlock<float, int64_t>(),
            describePair<float, int>(),
            describePair<float, int64_t>(),
            describeWarp<float, int>(),
            describeWarp<float, int64_t>(),
            describeL2<int>(),
            describeL2<int64_t>(),
            describeBlock<__half, int>(),
            describeBlock<__half, int64_t>(),
            describePair<__half, int>(),
            describePair<__half, int64_t>(),
            describeWarp<__half, int>(),
            describeWarp<__half, int64_t>()};
    return all;
}

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
    static auto& own = *new Replacement(describeBlock<float, int>());
    runBlock(own, in, outKeys, outIndices, dir, k, stream);
}

void runBlockSelect(
        Matrix<float, int64_t>& in,
        Matrix<float, int64_t>& outKeys,
        Matrix<int64_t, int64_t>& outIndices,
        bool dir,
        int k,
        cudaStream_t stream) {
    static auto& own = *new Replacement(describeBlock<float, int64_t>());
    runBlock(own, in, outKeys, outIndices, dir, k, stream);
}

void runBlockSelect(
        Matrix<__half, int>& in,
        Matrix<__half, int>& outKeys,
        Matrix<int, int>& outIndices,
        bool dir,
        int k,
        cudaStream_t stream) {
    static auto& own = *new Replacement(describeBlock<__half, int>());
    runBlock(own, in, outKeys, outIndices, dir, k, stream);
}

void runBlockSelect(
        Matrix<__half, int64_t>& in,
        Matrix<__half, int64_t>& outKeys,
        Matrix<int64_t, int64_t>& outIndices,
        bool dir,
        int k,
        cudaStream_t stream) {
    static auto& own = *new Replacement(describeBlock<__half, int64_t>());
    runBlock(own, in, outKeys, outIndices, dir, k, stream);
}

void runWarpSelect(
        Matrix<float, int>& in,
        Matrix<float, int>& outKeys,
        Matrix<int, int>& outIndices,
        bool dir,
        int k,
        cudaStream_t stream) {
    static auto& own = *new Replacement(describeWarp<float, int>());
    runWarp(own, in, outKeys, outIndices, dir, k, stream);
}

void runWarpSelect(
        Matrix<float, int64_t>& in,
        Matrix<float, int64_t>& outKeys,
        Matrix<int64_t, int64_t>& outIndices,
        bool dir,
        int k,
        cudaStream_t stream) {
    static auto& own = *new Replacement(describeWarp<float, int64_t>());
    runWarp(own, in, outKeys, outIndices, dir, k, stream);
}

void runWarpSelect(
        Matrix<__half, int>& in,
        Matrix<__half, int>& outKeys,
        Matrix<int, int>& outIndices,
        bool dir,
        int k,
        cudaStream_t stream) {
    static auto& own = *new Replacement(describeWarp<__half, int>());
    runWarp(own, in, outKeys, outIndices, dir, k, stream);
}

void runWarpSelect(
        Matrix<__half, int64_t>& in,
        Matrix<__half, int64_t>& outKeys,
        Matrix<int64_t, int64_t>& outIndices,
        bool dir,
        int k,
        cudaStream_t stream) {
    static auto& own = *new Replacement(describeWarp<__half, int64_t>());
    runWarp(own, in, outKeys, outIndices, dir, k, stream);
}

void runBlockSelectPair(
        Matrix<float, int>& inKeys,
        Matrix<int, int>& inIndices,
        Matrix<float, int>& outKeys,
        Matrix<int, int>& outIndices,
        bool dir,
        int k,
        cudaStream_t stream) {
    static auto& own = *new Replacement(describePair<float, int>());
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
    static auto& own = *new Replacement(describePair<float, int64_t>());
    runPair(own, inKeys, inIndices, outKeys, outIndices, dir, k, stream);
}

void runBlockSelectPair(
        Matrix<__half, int>& inKeys,
        Matrix<int, int>& inIndices,
        Matrix<__half, int>& outKeys,
        Matrix<int, int>& outIndices,
        bool dir,
        int k,
        cudaStream_t stream) {
    static auto& own = *new Replacement(describePair<__half, int>());
    runPair(own, inKeys, inIndices, outKeys, outIndices, dir, k, stream);
}

void runBlockSelectPair(
        Matrix<__half, int64_t>& inKeys,
        Matrix<int64_t, int64_t>& inIndices,
        Matrix<__half, int64_t>& outKeys,
        Matrix<int64_t, int64_t>& outIndices,
        bool dir,
        int k,
        cudaStream_t stream) {
    static auto& own = *new Replacement(describePair<__half, int64_t>());
    runPair(own, inKeys, inIndices, outKeys, outIndices, dir, k, stream);
}

void runL2SelectMin(
        Matrix<float, int>& productDistances,
        Vector<float, int>& centroidDistances,
        Matrix<float, int>& outDistances,
        Matrix<int, int>& outIndices,
        int k,
        cudaStream_t stream) {
    static auto& own = *new Replacement(describeL2<int>());
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
    static auto& own = *new Replacement(describeL2<int64_t>());
    runL2(own,
          productDistances,
          centroidDistances,
          outDistances,
          outIndices,
          k,
          stream);
}

} // namespace faiss::gpu
