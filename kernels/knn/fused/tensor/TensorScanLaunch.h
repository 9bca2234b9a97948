#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/DeviceTraits.h"
#include "kernels/knn/fused/tensor/TensorScanParams.h"

namespace faiss_bits {

/// A function that enqueues a kernel of the scan. params are complete but for
/// stages and queryBuffers; image is that of the vectors and of the queries.
using TensorScanLaunch =
        void(const TensorScanParams& params,
             const TensorImageLayout& image,
             bool isL2,
             const DeviceTraits& device,
             cudaStream_t stream);

} // namespace faiss_bits
