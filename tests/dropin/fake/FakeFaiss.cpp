/// A libfaiss.so for tests without a GPU: FAISS's functions that we replace,
/// which only mark that they were called, and others that call them as an index
/// of FAISS would, through the symbol table.
///
/// FAKE_INDEX          int or int64_t, the type of tensor indexes
/// FAKE_UNKNOWN        leaves a function out, as a version would that we do not
///                     know
/// FAKE_UNKNOWN_LISTS  likewise a scan of inverted lists
/// FAKE_UNKNOWN_PRODUCTS  likewise one of product codes

#include "fake/FakeFaiss.h"

#include "faiss_bits/dropin/FaissFunctions.h"

namespace faiss::gpu {

using Index = FAKE_INDEX;

void runBlockSelect(
        Matrix<float, Index>&,
        Matrix<float, Index>& outKeys,
        Matrix<Index, Index>&,
        bool,
        int,
        cudaStream_t) {
    outKeys.data_[0] = kFakeAnswer;
}

#ifndef FAKE_UNKNOWN
void runBlockSelectPair(
        Matrix<float, Index>&,
        Matrix<Index, Index>&,
        Matrix<float, Index>& outKeys,
        Matrix<Index, Index>&,
        bool,
        int,
        cudaStream_t) {
    outKeys.data_[0] = kFakeAnswer;
}
#endif

void runL2SelectMin(
        Matrix<float, Index>&,
        Vector<float, Index>&,
        Matrix<float, Index>& outKeys,
        Matrix<Index, Index>&,
        int,
        cudaStream_t) {
    outKeys.data_[0] = kFakeAnswer;
}

void runL2Distance(
        GpuResources*,
        cudaStream_t,
        Matrix<float, Index>&,
        bool,
        Vector<float, Index>*,
        Matrix<float, Index>&,
        bool,
        int,
        Matrix<float, Index>& outDistances,
        Matrix<Index, Index>&,
        bool) {
    outDistances.data_[0] = kFakeAnswer;
}

void runIPDistance(
        GpuResources*,
        cudaStream_t,
        Matrix<float, Index>&,
        bool,
        Matrix<float, Index>&,
        bool,
        int,
        Matrix<float, Index>& outDistances,
        Matrix<Index, Index>&) {
    outDistances.data_[0] = kFakeAnswer;
}

void runIVFInterleavedScan(
        Matrix<float, Index>&,
        Matrix<int64_t, Index>&,
        DeviceVector<void*>&,
        DeviceVector<void*>&,
        IndicesOptions,
        DeviceVector<Index>&,
        int,
        MetricType,
        bool,
        Cube<float, Index>&,
        GpuScalarQuantizer*,
        Matrix<float, Index>& outDistances,
        Matrix<int64_t, Index>&,
        GpuResources*) {
    outDistances.data_[0] = kFakeAnswer;
}

#ifndef FAKE_UNKNOWN_LISTS
void runIVFFlatScan(
        Matrix<float, Index>&,
        Matrix<int64_t, Index>&,
        DeviceVector<void*>&,
        DeviceVector<void*>&,
        IndicesOptions,
        DeviceVector<Index>&,
        Index,
        int,
        MetricType,
        bool,
        Cube<float, Index>&,
        GpuScalarQuantizer*,
        Matrix<float, Index>& outDistances,
        Matrix<int64_t, Index>&,
        GpuResources*) {
    outDistances.data_[0] = kFakeAnswer;
}
#endif

#ifndef FAKE_UNKNOWN_PRODUCTS
template <>
void runPQScanMultiPassNoPrecomputed<float>(
        Matrix<float, Index>&,
        Matrix<float, Index>&,
        Cube<float, Index>&,
        Matrix<float, Index>&,
        Matrix<int64_t, Index>&,
        bool,
        bool,
        bool,
        int,
        int,
        int,
        DeviceVector<void*>&,
        DeviceVector<void*>&,
        IndicesOptions,
        DeviceVector<Index>&,
        Index,
        int,
        MetricType,
        Matrix<float, Index>& outDistances,
        Matrix<int64_t, Index>&,
        GpuResources*) {
    outDistances.data_[0] = kFakeAnswer;
}

void scanFakeProducts(
        IVFPQ* index,
        Matrix<float, Index>& queries,
        Matrix<float, Index>& listDistances,
        Matrix<int64_t, Index>& listIds,
        int k,
        Matrix<float, Index>& outDistances,
        Matrix<int64_t, Index>& outIndices);

void IVFPQ::runPQNoPrecomputedCodes_(
        Matrix<float, Index>& queries,
        Matrix<float, Index>& listDistances,
        Matrix<int64_t, Index>& listIds,
        int k,
        Matrix<float, Index>& outDistances,
        Matrix<int64_t, Index>& outIndices) {
    scanFakeProducts(
            this, queries, listDistances, listIds, k, outDistances, outIndices);
}
#endif

void IVFPQ::runPQPrecomputedCodes_(
        Matrix<float, Index>&,
        Matrix<float, Index>&,
        Matrix<int64_t, Index>&,
        int,
        Matrix<float, Index>& outDistances,
        Matrix<int64_t, Index>&) {
    outDistances.data_[0] = kFakeAnswer;
}

class __attribute__((visibility("default"))) GpuResources {
   public:
    cudaStream_t getDefaultStreamCurrentDevice();
};
cudaStream_t GpuResources::getDefaultStreamCurrentDevice() {
    return nullptr;
}

/// What tells a FAISS with a GPU part.
class __attribute__((visibility("default"))) StandardGpuResources {
   public:
    StandardGpuResources();
};
StandardGpuResources::StandardGpuResources() = default;

} // namespace faiss::gpu

namespace {

using faiss::gpu::Index;

/// An array of three, of which two are used.
template <class T>
faiss::gpu::DeviceVector<T> arrayOf(
        T* data,
        faiss::gpu::GpuResources* resources) {
    faiss::gpu::DeviceVector<T> array = {};
    array.alloc_ = {resources, 0, nullptr, data, 3 * sizeof(T)};
    array.num_ = 2;
    array.capacity_ = 3;
    array.res_ = resources;
    return array;
}

} // namespace

float fakeSearch(FakeFunction function, int k) {
    using namespace faiss::gpu;
    float keys[4] = {4, 3, 2, 1};
    float norms[4] = {};
    float out[4] = {};
    Index ids[4] = {};
    Matrix<float, Index> in{keys, {4, 1}, {1, 4}};
    [[maybe_unused]] Matrix<Index, Index> inIds{ids, {4, 1}, {1, 4}};
    Vector<float, Index> bias{norms, {1}, {4}};
    Matrix<float, Index> vectors{keys, {2, 1}, {2, 2}};
    Matrix<float, Index> query{norms, {2, 1}, {1, 2}};
    Matrix<float, Index> outKeys{out, {2, 1}, {1, 2}};
    Matrix<Index, Index> outIds{ids, {2, 1}, {1, 2}};
    switch (function) {
        case FakeFunction::BlockSelect:
            runBlockSelect(in, outKeys, outIds, false, k, nullptr);
            break;
        case FakeFunction::BlockSelectPair:
#ifndef FAKE_UNKNOWN
            runBlockSelectPair(in, inIds, outKeys, outIds, false, k, nullptr);
#else
            out[0] = kFakeAnswer;
#endif
            break;
        case FakeFunction::L2SelectMin:
            runL2SelectMin(in, bias, outKeys, outIds, k, nullptr);
            break;
        case FakeFunction::L2Distance:
            runL2Distance(
                    nullptr,
                    nullptr,
                    vectors,
                    true,
                    nullptr,
                    query,
                    true,
                    k,
                    outKeys,
                    outIds,
                    false);
            break;
        case FakeFunction::IPDistance:
            runIPDistance(
                    nullptr,
                    nullptr,
                    vectors,
                    true,
                    query,
                    true,
                    k,
                    outKeys,
                    outIds);
            break;
        case FakeFunction::InterleavedScan:
            return fakeScan(FakeScan{}, k);
        case FakeFunction::FlatScan: {
            FakeScan scan;
            scan.interleaved = false;
            return fakeScan(scan, k);
        }
        case FakeFunction::ProductScan:
            return fakeProducts(0, 2, 8, 2, k);
        case FakeFunction::ProductSearch:
            return fakeProducts(1, 2, 8, 2, k);
    }
    return out[0];
}

namespace {

/// What an index of product codes would hold.
struct FakeProducts {
    int numParts;
    int bits;
    int numCentroids;
};

} // namespace

#ifndef FAKE_UNKNOWN_PRODUCTS
void faiss::gpu::scanFakeProducts(
        IVFPQ* index,
        Matrix<float, Index>& queries,
        Matrix<float, Index>& listDistances,
        Matrix<int64_t, Index>& listIds,
        int k,
        Matrix<float, Index>& outDistances,
        Matrix<int64_t, Index>& outIndices) {
    const auto& products = *reinterpret_cast<const FakeProducts*>(index);
    static float values[1 << 12];
    void* lists[3] = {values, values + 2, nullptr};
    Index lengthOf[3] = {1, 1, 0};
    GpuResources resources;
    auto codes = arrayOf<void*>(lists, &resources);
    auto ids = arrayOf<void*>(lists, &resources);
    auto lengths = arrayOf<Index>(lengthOf, &resources);
    Matrix<float, Index> centroids{
            values, {2, 1}, {Index(products.numCentroids), 2}};
    const Index dims = 2 / products.numParts;
    const Index count = Index(1) << products.bits;
    Cube<float, Index> codebook{
            values,
            {dims * count, count, 1},
            {Index(products.numParts), dims, count}};
    runPQScanMultiPassNoPrecomputed<float>(
            queries,
            centroids,
            codebook,
            listDistances,
            listIds,
            false,
            false,
            false,
            products.bits,
            products.numParts,
            int(count),
            codes,
            ids,
            INDICES_64_BIT,
            lengths,
            Index(1),
            k,
            faiss::METRIC_L2,
            outDistances,
            outIndices,
            &resources);
}
#endif

float fakeProducts(
        int isSearch,
        int numParts,
        int bits,
        int numCentroids,
        int k) {
    using namespace faiss::gpu;
    float values[4] = {4, 3, 2, 1};
    float out[4] = {};
    int64_t outIds[4] = {};
    int64_t listOfQuery[1] = {0};
    Matrix<float, Index> query{values, {2, 1}, {1, 2}};
    Matrix<float, Index> listDistances{values, {1, 1}, {1, 1}};
    Matrix<int64_t, Index> listIds{listOfQuery, {1, 1}, {1, 1}};
    Matrix<float, Index> outKeys{out, {2, 1}, {1, 2}};
    Matrix<int64_t, Index> outIndices{outIds, {2, 1}, {1, 2}};
    FakeProducts products{numParts, bits, numCentroids};
    auto* index = reinterpret_cast<IVFPQ*>(&products);
    if (isSearch) {
        index->runPQPrecomputedCodes_(
                query, listDistances, listIds, k, outKeys, outIndices);
    } else {
#ifndef FAKE_UNKNOWN_PRODUCTS
        index->runPQNoPrecomputedCodes_(
                query, listDistances, listIds, k, outKeys, outIndices);
#else
        out[0] = kFakeAnswer;
#endif
    }
    return out[0];
}

float fakeScan(FakeScan scan, int k) {
    using namespace faiss::gpu;
    float vectors[4] = {4, 3, 2, 1};
    int64_t listOfQuery[1] = {0};
    int64_t outIds[4] = {};
    float out[4] = {};
    void* lists[3] = {vectors, vectors + 2, nullptr};
    Index lengthOf[3] = {1, 1, 0};
    GpuResources resources;
    GpuResources others;
    auto data = arrayOf<void*>(lists, &resources);
    auto ids = arrayOf<void*>(lists, &resources);
    auto lengths = arrayOf<Index>(lengthOf, &resources);
    switch (scan.wrong) {
        case FakeWrong::Nothing:
            break;
        case FakeWrong::Resources:
            ids.res_ = &others;
            break;
        case FakeWrong::Memory:
            lengths.alloc_.data = nullptr;
            break;
        case FakeWrong::Capacity:
            data.num_ = 4;
            break;
        case FakeWrong::Bytes:
            data.alloc_.size = 2 * sizeof(void*) - 1;
            break;
        case FakeWrong::Lists:
            lengths.num_ = 1;
            break;
    }
    const Index d = 2;
    Matrix<float, Index> query{
            vectors, {Index(d + scan.gap), 1}, {Index(scan.queries), d}};
    Matrix<int64_t, Index> listIds{
            listOfQuery, {1, 1}, {Index(scan.queries), Index(scan.nprobe)}};
    Cube<float, Index> residuals{
            vectors, {d, d, 1}, {Index(scan.queries), Index(scan.nprobe), d}};
    Matrix<float, Index> outKeys{out, {2, 1}, {Index(scan.queries), 2}};
    Matrix<int64_t, Index> outIndices{outIds, {2, 1}, {Index(scan.queries), 2}};
    struct {
        ScalarQuantizerMemory begin;
        ScalarRangesMemory<Index> end;
        char more[128]; // of what a look further back reads
    } scalars = {};
    scalars.begin.d_ = size_t(d);
    scalars.begin.codeSize_ = size_t(d) * 2;
    scalars.begin.bits_ = 16;
    scalars.begin.type_ = scan.scalarType;
    auto* quantizer = scan.scalarType >= 0
            ? reinterpret_cast<GpuScalarQuantizer*>(&scalars)
            : nullptr;
    if (scan.interleaved) {
        runIVFInterleavedScan(
                query,
                listIds,
                data,
                ids,
                IndicesOptions(scan.indicesOptions),
                lengths,
                k,
                faiss::MetricType(scan.metric),
                scan.residual,
                residuals,
                quantizer,
                outKeys,
                outIndices,
                &resources);
    } else {
#ifndef FAKE_UNKNOWN_LISTS
        runIVFFlatScan(
                query,
                listIds,
                data,
                ids,
                IndicesOptions(scan.indicesOptions),
                lengths,
                Index(1),
                k,
                faiss::MetricType(scan.metric),
                scan.residual,
                residuals,
                quantizer,
                outKeys,
                outIndices,
                &resources);
#else
        out[0] = kFakeAnswer;
#endif
    }
    return out[0];
}

float fakeScanOf(
        int wrong,
        int scalarType,
        int residual,
        int64_t queries,
        int64_t gap,
        int nprobe,
        int metric,
        int indicesOptions,
        int k) {
    FakeScan scan;
    scan.wrong = FakeWrong(wrong);
    scan.scalarType = scalarType;
    scan.residual = residual;
    scan.queries = queries;
    scan.gap = gap;
    scan.nprobe = nprobe;
    scan.metric = metric;
    scan.indicesOptions = indicesOptions;
    return fakeScan(scan, k);
}

float fakeSearchOf(
        int64_t n,
        int64_t d,
        int64_t queries,
        int k,
        bool vectorsRowMajor,
        int64_t gap) {
    using namespace faiss::gpu;
    float out[1] = {};
    const Index rows = Index(vectorsRowMajor ? n : d);
    const Index cols = Index(vectorsRowMajor ? d : n);
    Matrix<float, Index> vectors{nullptr, {Index(cols + gap), 1}, {rows, cols}};
    Matrix<float, Index> query{
            nullptr, {Index(d), 1}, {Index(queries), Index(d)}};
    Matrix<float, Index> outKeys{out, {k, 1}, {Index(queries), k}};
    Matrix<Index, Index> outIds{nullptr, {k, 1}, {Index(queries), k}};
    runL2Distance(
            nullptr,
            nullptr,
            vectors,
            vectorsRowMajor,
            nullptr,
            query,
            true,
            k,
            outKeys,
            outIds,
            false);
    return out[0];
}
