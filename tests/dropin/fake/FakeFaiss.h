#pragma once

#include <cstdint>

/// Written to the first output key by a function of the fake FAISS.
constexpr float kFakeAnswer = 42;

enum class FakeFunction {
    BlockSelect,
    BlockSelectPair,
    L2SelectMin,
    L2Distance,
    IPDistance,
    InterleavedScan,
    FlatScan,
    ProductScan,
    ProductSearch,
    IndexSearch
};
constexpr int kFakeFunctions = 10;

/// What of the lists' arrays is not as in a FAISS that we know.
enum class FakeWrong { Nothing, Resources, Memory, Capacity, Bytes, Lists };

/// A scan of two lists of one vector of two components each.
struct FakeScan {
    bool interleaved = true;
    FakeWrong wrong = FakeWrong::Nothing;
    int scalarType = -1; ///< of the quantizer; none below 0
    bool residual = false;
    int64_t queries = 1;
    int64_t gap = 0; ///< elements between queries
    int nprobe = 1;
    int metric = 1;         ///< L2
    int indicesOptions = 3; ///< 64 bits
};

/// Calls the function with tensors in host memory: 1 x 4 keys, or two vectors
/// of two components and a query, or two lists; outputs for k = 2. Returns the
/// first output key.
extern "C" __attribute__((visibility("default"))) float fakeSearch(
        FakeFunction function,
        int k);

/// Calls runL2Distance with tensors of these shapes and no vectors behind them;
/// gap: elements between rows of vectors. Returns the first output key.
extern "C" __attribute__((visibility("default"))) float fakeSearchOf(
        int64_t n,
        int64_t d,
        int64_t queries,
        int k,
        bool vectorsRowMajor,
        int64_t gap);

/// Calls a scan of inverted lists in host memory, with outputs for k = 2.
/// Returns the first output distance.
float fakeScan(FakeScan scan, int k);

/// Calls a scan of product codes in host memory, or with isSearch the function
/// of the index that has tables. numParts: of two dimensions; bits: of a code.
/// Returns the first output distance.
extern "C" __attribute__((visibility("default"))) float fakeProducts(
        int isSearch,
        int numParts,
        int bits,
        int numCentroids,
        int k);

/// The same with runIVFInterleavedScan, for Python.
extern "C" __attribute__((visibility("default"))) float fakeScanOf(
        int wrong,
        int scalarType,
        int residual,
        int64_t queries,
        int64_t gap,
        int nprobe,
        int metric,
        int indicesOptions,
        int k);

/// Calls GpuIndex::search with arrays of the host that have room for four
/// results. Returns the first distance.
extern "C" __attribute__((visibility("default"))) float fakeIndexSearch(
        int64_t n,
        int k);
