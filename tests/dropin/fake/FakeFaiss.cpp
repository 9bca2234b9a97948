/// A libfaiss.so for tests without a GPU: FAISS's functions that we replace,
/// which only mark that they were called, and others that call them as an index
/// of FAISS would, through the symbol table.
///
/// FAKE_INDEX          int or int64_t, the type of tensor indexes
/// FAKE_UNKNOWN        leaves a function out, as a version would that we do not
///                     know
/// FAKE_UNKNOWN_LISTS  likewise a scan of inverted lists
/// FAKE_UNKNOWN_PRODUCTS  likewise one of product codes
/// FAKE_UNKNOWN_RESULTS  likewise the search of an index

#include "fake/FakeFaiss.h"
#include "fake/FakeMemory.h"

namespace faiss::gpu {

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
        case FakeFunction::IndexSearch:
            return fakeIndexSearch(1, k);
    }
    return out[0];
}
