#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

/// A word that one kernel writes late and the next one reads, whose code is of
/// two kinds.
namespace faiss_bits::test {

struct LateWord {
    uint32_t* word = nullptr;
    uint32_t* read = nullptr; // what the second kernel found
};

/// Copies the word, after the kernel before. Compiled to PTX of compute
/// capability 8.0 alone.
void launchOldReader(const LateWord& params, cudaStream_t stream);
bool oldReaderCanWait();

} // namespace faiss_bits::test
