#pragma once

#include <cstdint>

/// Written to the first output key by a function of the fake FAISS.
constexpr float kFakeAnswer = 42;

enum class FakeFunction {
    BlockSelect,
    BlockSelectPair,
    L2SelectMin,
    L2Distance,
    IPDistance
};
constexpr int kFakeFunctions = 5;

/// Calls the function with tensors in host memory: 1 x 4 keys, or two vectors
/// of two components and a query; outputs for k = 2. Returns the first output
/// key.
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
