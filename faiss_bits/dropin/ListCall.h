/// What FAISS's scans of inverted lists are called with, of every kind.
#pragma once

#include <string>

#include "faiss_bits/dropin/Functions.h"
#include "faiss_bits/dropin/ListSearch.h"

namespace faiss_bits::dropin {

/// The stream of FAISS's index, from FAISS's own code: how its resources are
/// laid out differs between versions. Throws Error where there is none.
cudaStream_t streamOf(
        const Original& original,
        faiss::gpu::GpuResources* resources);

/// Whether what we read of an array is what FAISS means by it, as far as it
/// tells by itself.
template <class T>
bool isAsKnown(
        const faiss::gpu::DeviceVector<T>& array,
        const faiss::gpu::GpuResources* resources) {
    const auto& memory = array.alloc_;
    return array.res_ == resources && array.num_ <= array.capacity_ &&
            (array.num_ == 0 ||
             (memory.res == resources && memory.data &&
              memory.device == array.allocInfo_.device &&
              memory.size / sizeof(T) >= array.num_));
}

/// Whether nothing lies between the rows of a tensor.
template <class Index, int kDim>
bool isDense(const Index (&sizes)[kDim], const Index (&strides)[kDim]) {
    Index stride = sizes[kDim - 1];
    for (int i = kDim - 2; i >= 0; --i) {
        // The stride of a single row may be anything.
        if (sizes[i] > 1 && strides[i] != stride) {
            return false;
        }
        stride *= sizes[i];
    }
    return true;
}

template <class Index>
struct ListCall {
    faiss::gpu::Matrix<float, Index>& queries;
    faiss::gpu::Matrix<int64_t, Index>& listIds;
    faiss::gpu::DeviceVector<void*>& listData;
    faiss::gpu::DeviceVector<void*>& listIndices;
    faiss::gpu::IndicesOptions indicesOptions;
    faiss::gpu::DeviceVector<Index>& listLengths;
    int k;
    faiss::MetricType metric;
    faiss::gpu::Matrix<float, Index>& outDistances;
    faiss::gpu::Matrix<int64_t, Index>& outIndices;
    faiss::gpu::GpuResources* resources;
};

/// What FAISS's functions assert, or take for granted; empty if all is so.
template <class Index>
std::string mismatchOf(const ListCall<Index>& call);

/// Without what decodes the lists; `left` and `mismatch` are set.
template <class Index>
ListRequest makeRequest(const ListCall<Index>& call, ListLayout layout);

} // namespace faiss_bits::dropin
