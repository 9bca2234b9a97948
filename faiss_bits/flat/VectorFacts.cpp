#include "faiss_bits/flat/VectorFacts.h"

#include <algorithm>

#include <faiss/gpu/GpuResources.h>
#include <faiss/impl/FaissException.h>

#include "kernels/common/CudaCheck.h"
#include "kernels/knn/all_pairs/AllPairsKnn.h"
#include "kernels/knn/direct/DirectKnn.h"
#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/fused/tensor/SearchImage.h"
#include "kernels/knn/nearest/NearestKnn.h"

namespace faiss_bits::gpu::detail {

namespace {

bool isCaptured(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    BITS_CUDA_CHECK(cudaStreamIsCapturing(stream, &status));
    return status != cudaStreamCaptureStatusNone;
}

} // namespace

void VectorFacts::giveTo(FlatKnnProblem& p, const GpuContext& context) {
    giveImage(p, context);
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

void VectorFacts::giveImage(FlatKnnProblem& p, const GpuContext& context) {
    // Cosine is no metric of FAISS's indexes.
    if (!keepsImages_ || imageIsShort_ || p.metric == Metric::Cosine ||
        !canUseSearchImage(p) || p.mode != SearchMode::Certified) {
        return;
    }
    if (hasImage_ && imageMetric_ != p.metric) {
        hasImage_ = false;
        image_.release();
    }
    if (directPays(p, true) || allPairsPays(p)) {
        return;
    }
    if (!hasImage_) {
        // A plan takes the host some time: last of what small searches ask.
        const bool isSmall = batchOf(p) <= kFewQueries;
        const bool helps = searchImageHelps(p);
        if (isSmall && !helps) {
            return;
        }
        if ((!planNearest(p, SIZE_MAX) && !(helps && planFused(p, SIZE_MAX))) ||
            (isSmall && ++smallSearches_ < kWorthAnImage)) {
            return;
        }
        if (isCaptured(context.stream)) {
            return;
        }
        const size_t bytes = searchImageBytes(p);
        try {
            image_ = context.resources->allocMemoryHandle(
                    faiss::gpu::AllocRequest(
                            faiss::gpu::AllocInfo(
                                    faiss::gpu::AllocType::FlatData,
                                    context.device,
                                    faiss::gpu::MemorySpace::Device,
                                    context.stream),
                            bytes));
        } catch (const faiss::FaissException&) {
            imageIsShort_ = true;
            return;
        }
        WorkspaceSlices slices(Workspace{image_.get(), bytes});
        runSearchImage(p, SearchImage(p, slices), context.stream);
        hasImage_ = true;
        imageMetric_ = p.metric;
    }
    p.searchImage = image_.get();
}

void VectorFacts::forget() {
    kind_ = RowFacts::None;
    memory_.release();
    hasImage_ = imageIsShort_ = false;
    smallSearches_ = 0;
    image_.release();
}

} // namespace faiss_bits::gpu::detail
