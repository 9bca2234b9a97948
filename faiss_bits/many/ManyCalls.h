#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include <faiss/gpu/GpuIndex.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/common/PagePlan.h"
#include "faiss_bits/flat/GpuIndexBitsFlat.h"
#include "faiss_bits/many/DeviceList.h"

/// What GpuIndexBitsShards and GpuIndexBitsReplicas have in common. Not part of
/// the API.
namespace faiss_bits::gpu::detail {

using faiss_bits::detail::requireCount;

/// Checks the arguments of a search but for its pointers.
inline void requireManySearch(const GpuContext& home, idx_t n, idx_t k) {
    requireCount(n, "n");
    FAISS_THROW_IF_NOT_FMT(
            k >= 1 && k <= kMaxK,
            "k = %lld is outside 1..%d",
            (long long)k,
            kMaxK);
    FAISS_THROW_IF_NOT_MSG(
            !isCaptured(home.stream),
            "the stream is being captured into a CUDA graph: an index on "
            "several devices cannot be");
}

inline void requireDims(int dims) {
    FAISS_THROW_IF_NOT_FMT(dims >= 1, "dims = %d, at least 1 is needed", dims);
}

inline int requireManyConfig(const GpuIndexBitsManyConfig& config) {
    FAISS_THROW_IF_NOT_FMT(
            config.leastPiece >= 1,
            "config.leastPiece = %d, at least 1 is needed",
            config.leastPiece);
    return config.leastPiece;
}

/// Of the flat index of one part.
inline GpuIndexBitsFlatConfig flatConfigOf(
        const GpuIndexBitsManyConfig& config,
        int device) {
    GpuIndexBitsFlatConfig flat;
    flat.device = device;
    flat.useFloat16 = config.useFloat16;
    flat.useBFloat16 = config.useBFloat16;
    flat.keepSearchImage = config.keepSearchImage;
    return flat;
}

/// Indexes that are there already, on the devices of the list.
inline void requireParts(
        const DeviceList& devices,
        const std::vector<std::unique_ptr<faiss::gpu::GpuIndex>>& parts) {
    FAISS_THROW_IF_NOT_FMT(
            parts.size() == devices.size(),
            "parts has %zu entries, and devices %zu",
            parts.size(),
            devices.size());
    for (size_t i = 0; i < parts.size(); ++i) {
        FAISS_THROW_IF_NOT_FMT(parts[i], "parts[%zu] is a null pointer", i);
        FAISS_THROW_IF_NOT_FMT(
                parts[i]->d == parts[0]->d &&
                        parts[i]->metric_type == parts[0]->metric_type,
                "parts[%zu] has d = %d and metric = %d, parts[0] %d and %d",
                i,
                int(parts[i]->d),
                int(parts[i]->metric_type),
                int(parts[0]->d),
                int(parts[0]->metric_type));
        FAISS_THROW_IF_NOT_FMT(
                parts[i]->getDevice() == devices[i].device,
                "parts[%zu] is on device %d, and devices[%zu] is %d",
                i,
                parts[i]->getDevice(),
                i,
                devices[i].device);
        FAISS_THROW_IF_NOT_FMT(
                parts[i]->is_trained, "parts[%zu] is not trained", i);
    }
}

/// Work of one query, for PagePlan.h: that of the device that has most.
inline double manyWork(idx_t ntotal, int d, idx_t k, size_t devices) {
    return searchWork(
            (ntotal + idx_t(devices) - 1) / idx_t(devices),
            d,
            int(std::min<idx_t>(k, kMaxK)));
}

} // namespace faiss_bits::gpu::detail
