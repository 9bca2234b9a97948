#pragma once

#include "kernels/common/Types.h"
#include "kernels/device/Entry.cuh"

namespace faiss_bits {

/// Number i of an array of them: the vectors, or the queries, of one dimension.
__device__ __forceinline__ float numberAt(
        const void* data,
        DataType type,
        int64_t i) {
    switch (type) {
        case DataType::Float32:
            return static_cast<const float*>(data)[i];
        case DataType::Float16:
            return toFloat(static_cast<const __half*>(data)[i]);
        default:
            return toFloat(static_cast<const __nv_bfloat16*>(data)[i]);
    }
}

} // namespace faiss_bits
