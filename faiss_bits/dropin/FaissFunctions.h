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

namespace faiss {

/// FAISS has more, with numbers of their own.
enum MetricType : int { METRIC_INNER_PRODUCT = 0, METRIC_L2 = 1 };

} // namespace faiss

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
using Cube = Tensor<T, 3, true, Index, traits::DefaultPtrTraits>;
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

// ---- inverted lists --------------------------------------------------------

/// What the id of a vector of a list is: list << 32 | place for the first two.
enum IndicesOptions : int {
    INDICES_CPU = 0,
    INDICES_IVF = 1,
    INDICES_32_BIT = 2,
    INDICES_64_BIT = 3
};

struct GpuMemoryReservation {
    GpuResources* res;
    int device;
    cudaStream_t stream;
    void* data;
    size_t size; ///< in bytes
};

/// An array on the device, and where its memory comes from.
template <typename T>
class DeviceVector {
   public:
    GpuMemoryReservation alloc_;
    size_t num_;
    size_t capacity_;
    GpuResources* res_;
    struct {
        int type;
        int device;
        int space;
        cudaStream_t stream;
    } allocInfo_;
};

/// In memory a ScalarQuantizerMemory, then ScalarRangesMemory.
struct GpuScalarQuantizer;

/// Types that FAISS's GPU part has; others have numbers of their own.
enum ScalarType : int {
    SCALAR_8BIT = 0,
    SCALAR_4BIT = 1,
    SCALAR_8BIT_UNIFORM = 2,
    SCALAR_4BIT_UNIFORM = 3,
    SCALAR_FP16 = 4,
    SCALAR_8BIT_DIRECT = 5,
    SCALAR_6BIT = 6
};

/// How a GpuScalarQuantizer begins, as FAISS's quantizer of the CPU. FAISS 1.15
/// has more of that behind it (TurboQuant's).
struct ScalarQuantizerMemory {
    const void* virtualTable_;
    size_t d_;
    size_t codeSize_; ///< bytes of a vector
    int type_;        ///< a ScalarType
    int rangeStatistic_;
    float rangeArgument_;
    size_t bits_; ///< of a component
    const float* trainedBegin_;
    const float* trainedEnd_;
    const float* trainedCapacity_;
};

/// How it ends: its ranges on the device.
template <class Index>
struct ScalarRangesMemory {
    Vector<float, Index> gpuTrained_;
    GpuMemoryReservation gpuTrainedMemory_;
};

/// Where that is, in bytes: up to 1.14, in the wheel of 1.15.1, and in a source
/// of 1.15 with more of TurboQuant. 1.7.3 has the first.
constexpr size_t kScalarRangesAt[] = {72, 88, 160};
static_assert(sizeof(ScalarQuantizerMemory) == kScalarRangesAt[0]);

/// runIVFInterleavedScan: the k nearest in the lists of each query. queries
/// [n, d]; listIds [n, nprobe], -1: none; listData, listIndices, listLengths
/// [nlist]; residualBase [n, nprobe, d], what vectors are relative to if
/// useResidual; scalarQ: nullptr for float32 vectors.
template <class Index>
using InterleavedScanFunction =
        void(Matrix<float, Index>& queries,
             Matrix<int64_t, Index>& listIds,
             DeviceVector<void*>& listData,
             DeviceVector<void*>& listIndices,
             IndicesOptions indicesOptions,
             DeviceVector<Index>& listLengths,
             int k,
             MetricType metric,
             bool useResidual,
             Cube<float, Index>& residualBase,
             GpuScalarQuantizer* scalarQ,
             Matrix<float, Index>& outDistances,
             Matrix<int64_t, Index>& outIndices,
             GpuResources* resources);

/// runIVFFlatScan: likewise, of lists whose vectors lie one after another.
template <class Index>
using FlatScanFunction =
        void(Matrix<float, Index>& queries,
             Matrix<int64_t, Index>& listIds,
             DeviceVector<void*>& listData,
             DeviceVector<void*>& listIndices,
             IndicesOptions indicesOptions,
             DeviceVector<Index>& listLengths,
             Index maxListLength,
             int k,
             MetricType metric,
             bool useResidual,
             Cube<float, Index>& residualBase,
             GpuScalarQuantizer* scalarQ,
             Matrix<float, Index>& outDistances,
             Matrix<int64_t, Index>& outIndices,
             GpuResources* resources);

/// runPQScanMultiPassNoPrecomputed: the k nearest in lists of product codes.
/// centroids [nlist, d], what vectors are relative to; codebook [parts,
/// d / parts, codes of a part]; interleaved: codes of 32 vectors together, else
/// one byte a code; tables in half precision, or made by products: how FAISS
/// goes about it.
template <class Index>
using ProductScanFunction =
        void(Matrix<float, Index>& queries,
             Matrix<float, Index>& centroids,
             Cube<float, Index>& codebook,
             Matrix<float, Index>& listDistances,
             Matrix<int64_t, Index>& listIds,
             bool useFloat16Tables,
             bool useProducts,
             bool interleaved,
             int bitsOfPart,
             int numParts,
             int codesOfPart,
             DeviceVector<void*>& listCodes,
             DeviceVector<void*>& listIndices,
             IndicesOptions indicesOptions,
             DeviceVector<Index>& listLengths,
             Index maxListLength,
             int k,
             MetricType metric,
             Matrix<float, Index>& outDistances,
             Matrix<int64_t, Index>& outIndices,
             GpuResources* resources);

class __attribute__((visibility("default"))) IVFPQ;

/// IVFPQ::runPQPrecomputedCodes_: likewise, from tables that were made before;
/// and IVFPQ::runPQNoPrecomputedCodes_, which passes it on to the function
/// above. As functions of the object.
template <class Index>
using ProductSearchFunction =
        void(IVFPQ* index,
             Matrix<float, Index>& queries,
             Matrix<float, Index>& listDistances,
             Matrix<int64_t, Index>& listIds,
             int k,
             Matrix<float, Index>& outDistances,
             Matrix<int64_t, Index>& outIndices);

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

extern InterleavedScanFunction<int> runIVFInterleavedScan;
extern InterleavedScanFunction<int64_t> runIVFInterleavedScan;

extern FlatScanFunction<int> runIVFFlatScan;
extern FlatScanFunction<int64_t> runIVFFlatScan;

template <class CentroidT>
void runPQScanMultiPassNoPrecomputed(
        Matrix<float, int>& queries,
        Matrix<CentroidT, int>& centroids,
        Cube<float, int>& codebook,
        Matrix<float, int>& listDistances,
        Matrix<int64_t, int>& listIds,
        bool useFloat16Tables,
        bool useProducts,
        bool interleaved,
        int bitsOfPart,
        int numParts,
        int codesOfPart,
        DeviceVector<void*>& listCodes,
        DeviceVector<void*>& listIndices,
        IndicesOptions indicesOptions,
        DeviceVector<int>& listLengths,
        int maxListLength,
        int k,
        MetricType metric,
        Matrix<float, int>& outDistances,
        Matrix<int64_t, int>& outIndices,
        GpuResources* resources);
template <>
__attribute__((visibility("default"))) ProductScanFunction<int>
        runPQScanMultiPassNoPrecomputed<float>;

template <class CentroidT>
void runPQScanMultiPassNoPrecomputed(
        Matrix<float, int64_t>& queries,
        Matrix<CentroidT, int64_t>& centroids,
        Cube<float, int64_t>& codebook,
        Matrix<float, int64_t>& listDistances,
        Matrix<int64_t, int64_t>& listIds,
        bool useFloat16Tables,
        bool useProducts,
        bool interleaved,
        int bitsOfPart,
        int numParts,
        int codesOfPart,
        DeviceVector<void*>& listCodes,
        DeviceVector<void*>& listIndices,
        IndicesOptions indicesOptions,
        DeviceVector<int64_t>& listLengths,
        int64_t maxListLength,
        int k,
        MetricType metric,
        Matrix<float, int64_t>& outDistances,
        Matrix<int64_t, int64_t>& outIndices,
        GpuResources* resources);
template <>
__attribute__((visibility("default"))) ProductScanFunction<int64_t>
        runPQScanMultiPassNoPrecomputed<float>;

/// Without its data, which differ between versions.
class IVFPQ {
   public:
    void runPQPrecomputedCodes_(
            Matrix<float, int>& queries,
            Matrix<float, int>& listDistances,
            Matrix<int64_t, int>& listIds,
            int k,
            Matrix<float, int>& outDistances,
            Matrix<int64_t, int>& outIndices);
    void runPQPrecomputedCodes_(
            Matrix<float, int64_t>& queries,
            Matrix<float, int64_t>& listDistances,
            Matrix<int64_t, int64_t>& listIds,
            int k,
            Matrix<float, int64_t>& outDistances,
            Matrix<int64_t, int64_t>& outIndices);
    // Not defined here.
    void runPQNoPrecomputedCodes_(
            Matrix<float, int>& queries,
            Matrix<float, int>& listDistances,
            Matrix<int64_t, int>& listIds,
            int k,
            Matrix<float, int>& outDistances,
            Matrix<int64_t, int>& outIndices);
    void runPQNoPrecomputedCodes_(
            Matrix<float, int64_t>& queries,
            Matrix<float, int64_t>& listDistances,
            Matrix<int64_t, int64_t>& listIds,
            int k,
            Matrix<float, int64_t>& outDistances,
            Matrix<int64_t, int64_t>& outIndices);
};

#pragma GCC visibility pop

} // namespace faiss::gpu
