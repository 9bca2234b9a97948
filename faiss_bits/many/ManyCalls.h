#pragma once

#include <algorithm>

#include "faiss_bits/common/PagePlan.h"
#include "faiss_bits/flat/GpuIndexBitsFlat.h"

/// Not part of the API.
namespace faiss_bits::gpu::detail {

/// Work of one query of an index on several devices, for PagePlan.h: that of
/// the device that has most.
inline double manyWork(idx_t ntotal, int d, idx_t k, size_t devices) {
    return searchWork(
            (ntotal + idx_t(devices) - 1) / idx_t(devices),
            d,
            int(std::min<idx_t>(k, kMaxK)));
}

} // namespace faiss_bits::gpu::detail
