#pragma once

#include <optional>

#include <faiss/gpu/GpuDistance.h>

#include "faiss_bits/common/GpuStaging.h"
#include "kernels/knn/FlatKnn.h"

/// What calls without an index make of FAISS's arguments. Not part of the API.
namespace faiss_bits::gpu::detail {

/// The problem of the shapes, types and layouts, which are checked; metric goes
/// before args.metric. Looks at no memory.
FlatKnnProblem shapeOf(
        const faiss::gpu::GpuDistanceParams& args,
        Metric metric);

/// The vectors and, for L2, their norms, as long as the call needs them.
struct VectorsOnDevice {
    VectorsOnDevice(
            const GpuContext& context,
            const faiss::gpu::GpuDistanceParams& args,
            FlatKnnProblem& problem);

    /// Host memory may still be read.
    bool readsOn() const {
        return (vectors && vectors->readsOn()) || (norms && norms->readsOn());
    }

    std::optional<DeviceArray> vectors;
    std::optional<DeviceArray> norms;
};

} // namespace faiss_bits::gpu::detail
