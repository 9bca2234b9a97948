#include "faiss_bits/flat/VectorFacts.h"

#include <faiss/gpu/GpuResources.h>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

namespace {

bool isCaptured(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    BITS_CUDA_CHECK(cudaStreamIsCapturing(stream, &status));
    return status != cudaStreamCaptureStatusNone;
}

} // namespace

void VectorFacts::giveTo(FlatKnnProblem& p, const GpuContext& context) {
    const RowFacts kind = rowFactsOf(p.metric);
    if (kind == RowFacts::None || p.numVectors == 0) {
        return;
    }
    if (kind != kind_) {
        if (isCaptured(context.stream)) {
            return;
        }
        forget();
        memory_ = context.resources->allocMemoryHandle(faiss::gpu::AllocRequest(
                faiss::gpu::AllocInfo(
                        faiss::gpu::AllocType::FlatData,
                        context.device,
                        faiss::gpu::MemorySpace::Device,
                        context.stream),
                sizeof(float) * p.numVectors + sizeof(RowMaxima)));
    }
    auto* facts = static_cast<float*>(memory_.get());
    auto* maxima = reinterpret_cast<RowMaxima*>(facts + p.numVectors);
    if (kind != kind_) {
        runRowMaxima(
                p.vectors,
                p.dataType,
                p.vectorsRowMajor,
                p.numVectors,
                p.d,
                maxima,
                context.stream);
        runRowFacts(
                kind,
                p.vectors,
                p.dataType,
                p.vectorsRowMajor,
                p.numVectors,
                p.d,
                facts,
                context.stream);
        kind_ = kind;
    }
    p.vectorFacts = facts;
    p.rowMaxima = maxima;
}

void VectorFacts::forget() {
    kind_ = RowFacts::None;
    memory_.release();
}

} // namespace faiss_bits::gpu::detail
