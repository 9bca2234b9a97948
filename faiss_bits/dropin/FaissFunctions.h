/// FAISS's own declarations of the functions that this library replaces, in
/// our words: no FAISS is needed to build it, and one library serves every
/// version. FAISS 1.7.3 indexes tensors by int and returns int ids, 1.15 uses
/// idx_t for both, which makes two sets of symbols. Only what FAISS itself
/// calls is here: its headers also declare runWarpSelect and functions for half
/// keys, which no index of these versions uses. Searches of half and bfloat16
/// vectors stay FAISS's. tests/dropin holds what is written here against the
/// headers of a FAISS where there is one, and against what FAISS's libraries
/// import.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

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

/// runBlockSelect: the k best keys of every row and their columns. `dir` true:
/// the largest.
template <class Index>
using SelectFunction =
        void(Matrix<float, Index>& in,
             Matrix<float, Index>& outKeys,
             Matrix<Index, Index>& outIndices,
             bool dir,
             int k,
             cudaStream_t stream);

/// runBlockSelectPair: as above, but the ids are given.
template <class Index>
using SelectPairFunction =
        void(Matrix<float, Index>& inKeys,
             Matrix<Index, Index>& inIndices,
             Matrix<float, Index>& outKeys,
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

class GpuResources;

/// runL2Distance: the k nearest of all vectors, by squared L2 distance.
/// vectors [n, d] or, if they are not row-major, [d, n]; queries likewise.
/// vectorNorms: nullptr, or their squared norms. ignoreOutDistances: the
/// distances need not be right.
template <class Index>
using L2DistanceFunction =
        void(GpuResources* resources,
             cudaStream_t stream,
             Matrix<float, Index>& vectors,
             bool vectorsRowMajor,
             Vector<float, Index>* vectorNorms,
             Matrix<float, Index>& queries,
             bool queriesRowMajor,
             int k,
             Matrix<float, Index>& outDistances,
             Matrix<Index, Index>& outIndices,
             bool ignoreOutDistances);

/// runIPDistance: the k largest inner products.
template <class Index>
using IPDistanceFunction =
        void(GpuResources* resources,
             cudaStream_t stream,
             Matrix<float, Index>& vectors,
             bool vectorsRowMajor,
             Matrix<float, Index>& queries,
             bool queriesRowMajor,
             int k,
             Matrix<float, Index>& outDistances,
             Matrix<Index, Index>& outIndices);

#pragma GCC visibility push(default)

extern SelectFunction<int> runBlockSelect;
extern SelectFunction<int64_t> runBlockSelect;

extern SelectPairFunction<int> runBlockSelectPair;
extern SelectPairFunction<int64_t> runBlockSelectPair;

extern L2SelectFunction<int> runL2SelectMin;
extern L2SelectFunction<int64_t> runL2SelectMin;

extern L2DistanceFunction<int> runL2Distance;
extern L2DistanceFunction<int64_t> runL2Distance;

extern IPDistanceFunction<int> runIPDistance;
extern IPDistanceFunction<int64_t> runIPDistance;

#pragma GCC visibility pop

} // namespace faiss::gpu
