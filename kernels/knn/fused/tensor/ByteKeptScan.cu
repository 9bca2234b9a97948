#include "kernels/knn/fused/tensor/ByteKeptScan.cuh"

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/knn/fused/tensor/ByteScan.h"
#include "kernels/knn/fused/tensor/PassedProducts.cuh"
#include "kernels/knn/fused/tensor/TensorScanPlan.h"

namespace faiss_bits {

namespace {

template <class Buffer, int kLastSteps>
__global__ void __launch_bounds__(kByteKeptThreads, 1)
        byteKeptScanKernel(const __grid_constant__ ByteKeptParams params) {
    extern __shared__ __align__(1024) uint8_t shared[];
    ByteKeptBody<Buffer, kLastSteps>{
            params,
            ByteKeptLayout(params.scan.slabs, params.scan.stages),
            shared}
            .run();
}

template <class Buffer>
auto kernelFor(int lastSteps) {
    return lastSteps == 1    ? byteKeptScanKernel<Buffer, 1>
            : lastSteps == 2 ? byteKeptScanKernel<Buffer, 2>
            : lastSteps == 3 ? byteKeptScanKernel<Buffer, 3>
                             : byteKeptScanKernel<Buffer, 4>;
}

} // namespace

void launchByteKeptScan(
        TensorScanParams scan,
        const int32_t* norms,
        int multiprocessors,
        size_t sharedBytes,
        cudaStream_t stream) {
    scan.stages = stagesThatFit<ByteKeptLayout>(scan.slabs, sharedBytes);
    const ByteKeptLayout layout(scan.slabs, scan.stages);
    planChunks(
            scan,
            {kByteKeptQueries, kByteKeptWidth, scan.slabs * 128},
            multiprocessors);
    const ByteKeptParams params{scan, norms, layout.slots};
    const auto kernel = scan.passed.products
            ? kernelFor<PassedProducts>(scan.lastSteps)
            : kernelFor<PassedBuffer>(scan.lastSteps);
    launchAfterPrevious(
            kernel,
            std::min<unsigned>(scan.items, multiprocessors),
            kByteKeptThreads,
            allowSharedBytes(kernel, layout.bytes),
            stream,
            params);
}

} // namespace faiss_bits
