#pragma once

#include "faiss_bits/dropin/FaissFunctions.h"

/// What the functions of a fake FAISS are given.
namespace faiss::gpu {

using Index = FAKE_INDEX;

class __attribute__((visibility("default"))) GpuResources {
   public:
    cudaStream_t getDefaultStreamCurrentDevice();
};

/// An array of three, of which two are used.
template <class T>
DeviceVector<T> arrayOf(T* data, GpuResources* resources) {
    DeviceVector<T> array = {};
    array.alloc_ = {resources, 0, nullptr, data, 3 * sizeof(T)};
    array.num_ = 2;
    array.capacity_ = 3;
    array.res_ = resources;
    return array;
}

} // namespace faiss::gpu
