/// The fake FAISS's scans of inverted lists of vectors and scalar codes.
/// FAKE_UNKNOWN_LISTS leaves out runIVFFlatScan.

#include "fake/FakeFaiss.h"
#include "fake/FakeMemory.h"

namespace faiss::gpu {

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

} // namespace faiss::gpu

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
