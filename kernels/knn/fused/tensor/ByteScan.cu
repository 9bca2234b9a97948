#include "kernels/knn/fused/tensor/ByteScan.cuh"

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/knn/fused/tensor/PassedProducts.cuh"
#include "kernels/knn/fused/tensor/TensorScanPlan.h"

namespace faiss_bits {

namespace {

template <class Buffer>
__global__ void __launch_bounds__(128 * (kByteGroups + 1), 1)
        byteScanKernel(const __grid_constant__ ByteScanParams params) {
    extern __shared__ __align__(1024) uint8_t shared[];
    ByteScanBody<Buffer>{
            params,
            ByteSharedLayout(params.scan.slabs, params.scan.stages),
            shared}
            .run();
}

} // namespace

void launchByteScan(
        TensorScanParams scan,
        int multiprocessors,
        size_t sharedBytes,
        cudaStream_t stream) {
    scan.stages = stagesThatFit<ByteSharedLayout>(scan.slabs, sharedBytes);
    const ByteSharedLayout layout(scan.slabs, scan.stages);
    planChunks(
            scan,
            {kByteQueries, kByteWidth, scan.slabs * 128},
            multiprocessors);
    const ByteScanParams params{scan, layout.slots};
    const auto kernel = scan.passed.products ? byteScanKernel<PassedProducts>
                                             : byteScanKernel<PassedBuffer>;
    launchAfterPrevious(
            kernel,
            std::min<unsigned>(scan.items, multiprocessors),
            128 * (kByteGroups + 1),
            allowSharedBytes(kernel, layout.bytes),
            stream,
            params);
}

} // namespace faiss_bits
