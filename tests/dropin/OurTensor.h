#pragma once

#include <cstddef>
#include <cstdint>

namespace faiss_bits::test {

/// What our declaration of a tensor reads from memory.
struct OurTensor {
    size_t bytes = 0;
    const void* data = nullptr;
    int64_t sizes[2] = {};
    int64_t strides[2] = {};
};

/// `indexBytes`: 4 or 8.
OurTensor readOurMatrix(const void* tensor, size_t indexBytes);
OurTensor readOurVector(const void* tensor, size_t indexBytes);

} // namespace faiss_bits::test
