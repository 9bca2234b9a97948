#include "faiss_bits/flat/VectorFacts.h"

#include <cstdint>

#include <faiss/gpu/GpuResources.h>
#include <faiss/impl/FaissException.h>

#include "faiss_bits/common/Waiting.h"
#include "kernels/knn/all_pairs/AllPairsKnn.h"
#include "kernels/knn/direct/DirectKnn.h"
#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/fused/tensor/SearchImage.h"
#include "kernels/knn/nearest/NearestKnn.h"

namespace faiss_bits::gpu::detail {

ImageUse VectorFacts::giveTo(FlatKnnProblem& p, const GpuContext& context) {
    const ImageUse image = giveImage(p, context);
    const RowFacts kind = rowFactsOf(p.metric);
    if (kind == RowFacts::None || p.numVectors == 0) {
        return image;
    }
    if (kind != kind_) {
        if (isCaptured(context.stream)) {
            return image;
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
    return image;
}

bool VectorFacts::mayUseImage(const FlatKnnProblem& p) const {
    // Cosine is no metric of FAISS's indexes.
    return keepsImages_ && !imageIsShort_ && p.metric != Metric::Cosine &&
            canUseSearchImage(p) && p.mode == SearchMode::Certified;
}

ImageUse VectorFacts::imageUse(const FlatKnnProblem& p) const {
    if (!mayUseImage(p) || directPays(p, true) || allPairsPays(p)) {
        return ImageUse::None;
    }
    if (hasImage_ && imageMetric_ == p.metric) {
        return ImageUse::Kept;
    }
    // A plan takes the host some time: last of what small searches ask.
    const bool isSmall = batchOf(p) <= kFewQueries;
    const bool helps = searchImageHelps(p);
    if (isSmall && !helps) {
        return ImageUse::None;
    }
    if (!planNearest(p, SIZE_MAX) && !(helps && planFused(p, SIZE_MAX))) {
        return ImageUse::None;
    }
    return isSmall && smallSearches_ + 1 < kWorthAnImage ? ImageUse::NotYet
                                                         : ImageUse::Make;
}

ImageUse VectorFacts::expectFor(FlatKnnProblem& p) const {
    const auto* nowhere = reinterpret_cast<const float*>(
            uintptr_t(WorkspaceSlices::kAlignment));
    const ImageUse use = imageUse(p);
    if (use == ImageUse::Make || use == ImageUse::Kept) {
        p.searchImage = nowhere;
    }
    if (rowFactsOf(p.metric) != RowFacts::None && p.numVectors > 0) {
        p.vectorFacts = nowhere;
        p.rowMaxima = reinterpret_cast<const RowMaxima*>(nowhere);
    }
    return use;
}

ImageUse VectorFacts::giveImage(FlatKnnProblem& p, const GpuContext& context) {
    if (mayUseImage(p) && hasImage_ && imageMetric_ != p.metric) {
        hasImage_ = false;
        image_.release();
    }
    const ImageUse use = imageUse(p);
    if (use == ImageUse::None) {
        return use;
    }
    if (!hasImage_) {
        smallSearches_ += batchOf(p) <= kFewQueries;
        if (use == ImageUse::NotYet) {
            return use;
        }
        if (isCaptured(context.stream)) {
            return ImageUse::None;
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
            return ImageUse::None;
        }
        WorkspaceSlices slices(Workspace{image_.get(), bytes});
        runSearchImage(p, SearchImage(p, slices), context.stream);
        hasImage_ = true;
        imageMetric_ = p.metric;
    }
    p.searchImage = image_.get();
    return use;
}

void VectorFacts::forget() {
    kind_ = RowFacts::None;
    memory_.release();
    hasImage_ = imageIsShort_ = false;
    smallSearches_ = 0;
    image_.release();
}

} // namespace faiss_bits::gpu::detail
