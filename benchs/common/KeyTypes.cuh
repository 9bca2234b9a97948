/// Keys on the device by their type. Header only.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/common/Types.h"

namespace faiss_bits::bench {

/// Calls `use` with `keys` as what `type` says.
template <class Use>
void withType(void* keys, DataType type, Use&& use) {
    switch (type) {
        case DataType::Float32:
            return use(static_cast<float*>(keys));
        case DataType::Float16:
            return use(static_cast<__half*>(keys));
        case DataType::BFloat16:
            return use(static_cast<__nv_bfloat16*>(keys));
    }
}

template <class Use>
void withType(const void* keys, DataType type, Use&& use) {
    withType(const_cast<void*>(keys), type, [&]<class T>(T* typed) {
        use(static_cast<const T*>(typed));
    });
}

} // namespace faiss_bits::bench
