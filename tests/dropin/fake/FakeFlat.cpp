/// The fake FAISS's functions of tensors: selections, and searches of all
/// vectors. FAKE_UNKNOWN leaves out runBlockSelectPair.

#include "fake/FakeFaiss.h"
#include "fake/FakeMemory.h"

namespace faiss::gpu {

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

} // namespace faiss::gpu

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
