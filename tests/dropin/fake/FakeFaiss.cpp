/// A libfaiss.so for tests without a GPU: FAISS's functions that we replace,
/// which only mark that they were called, and others that call them as an index
/// of FAISS would, through the symbol table.
///
/// FAKE_INDEX    int or int64_t, the type of tensor indexes
/// FAKE_UNKNOWN  leaves a function out, as a version would that we do not know

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

/// What tells a FAISS with a GPU part.
class __attribute__((visibility("default"))) StandardGpuResources {
   public:
    StandardGpuResources();
};
StandardGpuResources::StandardGpuResources() = default;

} // namespace faiss::gpu

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
    }
    return out[0];
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
