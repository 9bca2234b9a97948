/// A libfaiss.so for tests without a GPU: FAISS's selection functions, which
/// only mark that they were called, and one function that calls them as an
/// index of FAISS would, through the symbol table.
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
    }
    return out[0];
}
