#pragma once

#include "faiss_bits/dropin/FaissFunctions.h"
#include "tests/common/DeviceBuffer.h"

namespace faiss::gpu {

/// As far as the library asks it. No FAISS is loaded: the library finds the
/// symbol in this program.
class __attribute__((visibility("default"))) GpuResources {
   public:
    cudaStream_t stream = nullptr;
    cudaStream_t getDefaultStreamCurrentDevice();
};

} // namespace faiss::gpu

/// What FAISS's scans of inverted lists are called with.
namespace faiss_bits::test {

template <class Index, class T>
faiss::gpu::Matrix<T, Index> matrixOf(T* data, int64_t rows, int64_t cols) {
    // The last stride of such a tensor is never read.
    return {data, {Index(cols), Index(77)}, {Index(rows), Index(cols)}};
}

/// Of the buffer's first elements: FAISS's arrays have room for more.
template <class T>
faiss::gpu::DeviceVector<T> arrayOf(
        DeviceBuffer<T>& buffer,
        size_t used,
        faiss::gpu::GpuResources& resources) {
    faiss::gpu::DeviceVector<T> array = {};
    array.alloc_ = {
            &resources, 0, nullptr, buffer.data(), buffer.size() * sizeof(T)};
    array.num_ = used;
    array.capacity_ = buffer.size();
    array.res_ = &resources;
    return array;
}

} // namespace faiss_bits::test
