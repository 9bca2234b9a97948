#pragma once

#include <cuda_runtime_api.h>

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

/// What our declaration of a DeviceVector reads from memory, and writes there.
struct OurArray {
    size_t bytes = 0;
    const void* resources = nullptr;
    size_t memoryBytes = 0; ///< of its memory's description, at its beginning
    const void* memoryResources = nullptr;
    int memoryDevice = 0;
    cudaStream_t memoryStream = nullptr;
    void* data = nullptr;
    size_t dataBytes = 0;
    size_t size = 0;
    size_t capacity = 0;
    int device = 0; ///< of the memory that it asks for
};

/// Of pointers, or of lengths of so many bytes; all three are laid out alike.
OurArray readOurPointers(const void* array);
OurArray readOurLengths(const void* array, size_t lengthBytes);

/// data, size and capacity of an array of pointers, or of lengths.
void writeOurArray(void* array, const OurArray& what);

/// Our numbers of FAISS's enumerations.
struct OurNumbers {
    int l2;
    int innerProduct;
    int indicesCpu;
    int indicesIvf;
    int indices32;
    int indices64;
};
OurNumbers ourNumbers();

/// What our declaration of a scalar quantizer says.
struct OurQuantizer {
    size_t d;
    size_t codeSize;
    int type;
    size_t bits;
    const float* trained;
    size_t numTrained;
};
OurQuantizer readOurQuantizer(const void* quantizer);
/// Whether ranges may lie so many bytes from its beginning.
bool areRangesKnownAt(size_t bytes);
/// Of the ranges, with their memory.
size_t bytesOfOurRanges(size_t indexBytes);

} // namespace faiss_bits::test
