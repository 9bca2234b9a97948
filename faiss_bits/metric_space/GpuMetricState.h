#pragma once

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/metric_space/GpuIndexBitsMetricSpace.h"
#include "faiss_bits/metric_space/MetricContents.h"
#include "kernels/metric_space/GroupsMemory.h"

namespace faiss_bits::gpu {

/// What is behind a GpuIndexBitsMetricSpace. Not part of the API.
struct GpuIndexBitsMetricSpace::State {
    faiss_bits::detail::MetricContents contents; ///< without the vectors
    std::shared_ptr<void> vectors; ///< [capacity, d] on the device
    idx_t capacity = 0;
    metric_space::GroupsMemory groups;
    bool hasGroups = false; ///< of the contents, which are built then
    uint64_t distances = 0;

    float* data() const {
        return static_cast<float*>(vectors.get());
    }
    metric_space::MetricVectors view() const {
        return {contents.metric, contents.d, contents.n, data()};
    }
    void forgetIndex() {
        groups = {};
        hasGroups = false;
        contents.isBuilt = false;
        contents.list = {};
        contents.table = {};
    }
};

} // namespace faiss_bits::gpu
