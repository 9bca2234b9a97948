#pragma once

/// Written to the first output key by a function of the fake FAISS.
constexpr float kFakeAnswer = 42;

enum class FakeFunction { BlockSelect, BlockSelectPair, L2SelectMin };

/// Calls the function with tensors in host memory: 1 x 4 keys, outputs for
/// k = 2. Returns the first output key.
extern "C" __attribute__((visibility("default"))) float fakeSearch(
        FakeFunction function,
        int k);
