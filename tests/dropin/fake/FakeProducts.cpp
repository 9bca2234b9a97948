/// The fake FAISS's scan of product codes, and the functions of its index.
/// FAKE_UNKNOWN_PRODUCTS leaves out all but the one with tables.

#include "fake/FakeFaiss.h"
#include "fake/FakeMemory.h"

namespace faiss::gpu {

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

} // namespace faiss::gpu

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
