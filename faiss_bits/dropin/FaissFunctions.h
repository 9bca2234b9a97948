/// FAISS's own declarations of the functions that this library replaces, in
/// our words: no FAISS is needed to build it, and one library serves every
/// version. FAISS 1.7.3 indexes tensors by int and returns int ids, 1.15 uses
/// idx_t for both, which makes two sets of symbols. tests/dropin holds what is
/// written here against the headers of a FAISS where there is one.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

struct __half;

namespace faiss::gpu {

namespace traits {

template <typename T>
struct DefaultPtrTraits {
    typedef T* PtrType;
};

} // namespace traits

/// Strides and sizes count elements. InnerContig: the last stride is 1,
/// whatever stride_ says.
template <
        typename T,
        int Dim,
        bool InnerContig,
        typename IndexT,
        template <typename U>
        class PtrTraits>
class Tensor {
   public:
    typename PtrTraits<T>::PtrType data_;
    IndexT stride_[Dim];
    IndexT size_[Dim];
};

template <class T, class Index>
using Matrix = Tensor<T, 2, true, Index, traits::DefaultPtrTraits>;
template <class T, class Index>
using Vector = Tensor<T, 1, true, Index, traits::DefaultPtrTraits>;

/// runBlockSelect and runWarpSelect: the k best keys of every row and their
/// columns. `dir` true: the largest.
template <class Key, class Index>
using SelectFunction =
        void(Matrix<Key, Index>& in,
             Matrix<Key, Index>& outKeys,
             Matrix<Index, Index>& outIndices,
             bool dir,
             int k,
             cudaStream_t stream);

/// runBlockSelectPair: as above, but the ids are given.
template <class Key, class Index>
using SelectPairFunction =
        void(Matrix<Key, Index>& inKeys,
             Matrix<Index, Index>& inIndices,
             Matrix<Key, Index>& outKeys,
             Matrix<Index, Index>& outIndices,
             bool dir,
             int k,
             cudaStream_t stream);

/// runL2SelectMin: the k smallest of product[r][c] + centroid[c].
template <class Index>
using L2SelectFunction =
        void(Matrix<float, Index>& productDistances,
             Vector<float, Index>& centroidDistances,
             Matrix<float, Index>& outDistances,
             Matrix<Index, Index>& outIndices,
             int k,
             cudaStream_t stream);

#pragma GCC visibility push(default)

extern SelectFunction<float, int> runBlockSelect;
extern SelectFunction<float, int64_t> runBlockSelect;
extern SelectFunction<__half, int> runBlockSelect;
extern SelectFunction<__half, int64_t> runBlockSelect;

extern SelectFunction<float, int> runWarpSelect;
extern SelectFunction<float, int64_t> runWarpSelect;
extern SelectFunction<__half, int> runWarpSelect;
extern SelectFunction<__half, int64_t> runWarpSelect;

extern SelectPairFunction<float, int> runBlockSelectPair;
extern SelectPairFunction<float, int64_t> runBlockSelectPair;
extern SelectPairFunction<__half, int> runBlockSelectPair;
extern SelectPairFunction<__half, int64_t> runBlockSelectPair;

extern L2SelectFunction<int> runL2SelectMin;
extern L2SelectFunction<int64_t> runL2SelectMin;

#pragma GCC visibility pop

} // namespace faiss::gpu
