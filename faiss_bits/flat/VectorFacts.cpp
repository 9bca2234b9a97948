#include "faiss_bits/flat/VectorFacts.h"

#include <algorithm>
#include <cstdint>

#include <faiss/gpu/GpuResources.h>
#include <faiss/impl/FaissException.h>

#include "faiss_bits/common/LastPlans.h"
#include "faiss_bits/flat/FlatLastPlan.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/knn/all_pairs/AllPairsKnn.h"
#include "kernels/knn/direct/DirectKnn.h"
#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/fused/tensor/SearchImage.h"
#include "kernels/knn/nearest/FewDimsKnn.h"
#include "kernels/knn/nearest/FewDimsTopKnn.h"
#include "kernels/knn/nearest/NearestKnn.h"
#include "kernels/knn/parts/PartsKnn.h"

namespace faiss_bits::gpu::detail {

namespace {

/// Boxes pay from so many vectors on, and when so many queries have come.
constexpr idx_t kLeastBoxed = 1 << 16;
constexpr idx_t kWorthBoxes = 1024;

/// Of what a plan only asks whether it is there.
const float* nowhere() {
    return reinterpret_cast<const float*>(
            uintptr_t(WorkspaceSlices::kAlignment));
}

} // namespace

std::shared_ptr<void> VectorFacts::allocate_(
        const GpuContext& context,
        size_t bytes) const {
    if (!isOwn(context)) {
        // Other threads use the index's resources, and these may go before it.
        return allocateOnDevice(bytes);
    }
    using faiss::gpu::GpuMemoryReservation;
    auto held = std::make_shared<GpuMemoryReservation>(
            context.resources->allocMemoryHandle(faiss::gpu::AllocRequest(
                    faiss::gpu::AllocInfo(
                            faiss::gpu::AllocType::FlatData,
                            context.device,
                            faiss::gpu::MemorySpace::Device,
                            context.stream),
                    bytes)));
    return {held, held->get()};
}

ImageUse VectorFacts::giveTo(FlatKnnProblem& p, const GpuContext& context) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const ImageUse image = giveImage_(p, context);
    giveFacts_(p, context);
    return image;
}

void VectorFacts::giveFacts_(FlatKnnProblem& p, const GpuContext& context) {
    const RowFacts kind = rowFactsOf(p.metric);
    if (kind == RowFacts::None || p.numVectors == 0) {
        return;
    }
    const auto give = [&](void* memory) {
        auto* facts = static_cast<float*>(memory);
        p.vectorFacts = facts;
        p.rowMaxima = reinterpret_cast<RowMaxima*>(facts + p.numVectors);
    };
    if (kind == kind_) {
        facts_.isMade.holdUp(context.stream);
        give(facts_.memory.get());
        return;
    }
    const bool isEmpty = !facts_.memory && !hasImage_();
    if (isCaptured(context.stream) || !(isEmpty || isOwn(context))) {
        return;
    }
    forget_();
    const auto memory = allocate_(
            context, sizeof(float) * p.numVectors + sizeof(RowMaxima));
    auto* facts = static_cast<float*>(memory.get());
    runRowMaxima(
            p.vectors,
            p.dataType,
            p.vectorsRowMajor,
            p.numVectors,
            p.d,
            reinterpret_cast<RowMaxima*>(facts + p.numVectors),
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
    facts_.isMade.set(context.stream);
    facts_.memory = memory;
    kind_ = kind;
    give(facts);
}

bool VectorFacts::mayUseImage_(const FlatKnnProblem& p) const {
    // Cosine is no metric of FAISS's indexes.
    // One that is there serves, whatever memory there was for another.
    return keepsImages_ && (!imageIsShort_[p.imageInOrder] || imageFor_(p)) &&
            !needsParts(p) && p.metric != Metric::Cosine &&
            canUseSearchImage(p) && p.mode != SearchMode::Plain;
}

/// Whether the image that the problem takes of those that are kept is the one
/// in the vectors' order; nothing: there is none for it.
std::optional<bool> VectorFacts::imageFor_(const FlatKnnProblem& p) const {
    if (imageMetric_ == p.metric) {
        for (const bool inOrder : {p.imageInOrder, true}) {
            if (images_[inOrder].memory) {
                return inOrder;
            }
        }
    }
    return std::nullopt;
}

ImageUse VectorFacts::imageUse(const FlatKnnProblem& p, bool isOwn) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return imageUse_(p, isOwn);
}

ImageUse VectorFacts::imageUse_(const FlatKnnProblem& p, bool isOwn) const {
    if (!mayUseImage_(p) || directPays(p, true) || fewDimsPays(p) ||
        fewDimsTopPays(p)) {
        return ImageUse::None;
    }
    // Plans take the host some time: none where an image is kept, of more
    // vectors than distances of all pairs are for; and once for problems that
    // are alike.
    const auto goesByStrips = [&] {
        FlatKnnProblem kept = p;
        kept.searchImage = nowhere();
        const auto strips = planFusedByStrips(kept, SIZE_MAX);
        return strips && stripsPay(*strips, kept);
    };
    static thread_local LastPlans<FlatKnnProblem, bool> known;
    const bool goesByPairs =
            known.get(p, 0, planAlike, [&](const FlatKnnProblem&, size_t) {
                return allPairsPays(p) && !goesByStrips();
            });
    if (goesByPairs) {
        return ImageUse::None;
    }
    if (imageFor_(p)) {
        return ImageUse::Kept;
    }
    if (hasImage_() && imageMetric_ != p.metric && !isOwn) {
        return ImageUse::None;
    }
    const bool isSmall = batchOf(p) <= kFewQueries;
    const bool helps = searchImageHelps(p);
    if (isSmall && !helps) {
        return ImageUse::None;
    }
    if (!planNearest(p, SIZE_MAX) && !(helps && planFused(p, SIZE_MAX)) &&
        !goesByStrips()) {
        return ImageUse::None;
    }
    return isSmall && smallSearches_ + 1 < kWorthAnImage ? ImageUse::NotYet
                                                         : ImageUse::Make;
}

ImageUse VectorFacts::expectFor(FlatKnnProblem& p, bool isOwn) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const ImageUse use = imageUse_(p, isOwn);
    if (use == ImageUse::Make || use == ImageUse::Kept) {
        const std::optional<bool> inOrder = imageFor_(p);
        p.searchImage = nowhere();
        p.imageHasBytes = inOrder ? images_[*inOrder].hasBytes : true;
    }
    const RowFacts kind = rowFactsOf(p.metric);
    const bool isEmpty = !facts_.memory && !hasImage_();
    if (kind != RowFacts::None && p.numVectors > 0 &&
        (isOwn || isEmpty || kind == kind_)) {
        p.vectorFacts = nowhere();
        p.rowMaxima = reinterpret_cast<const RowMaxima*>(nowhere());
    }
    return use;
}

ImageUse VectorFacts::giveImage_(FlatKnnProblem& p, const GpuContext& context) {
    if (mayUseImage_(p) && hasImage_() && imageMetric_ != p.metric &&
        isOwn(context)) {
        for (Kept& image : images_) {
            image.memory.reset();
        }
        imageIsShort_[0] = imageIsShort_[1] = false;
    }
    const ImageUse use = imageUse_(p, isOwn(context));
    if (use == ImageUse::None) {
        return use;
    }
    if (const std::optional<bool> inOrder = imageFor_(p)) {
        p.imageInOrder = *inOrder;
        images_[p.imageInOrder].isMade.holdUp(context.stream);
    } else {
        smallSearches_ += batchOf(p) <= kFewQueries;
        if (use == ImageUse::NotYet) {
            return use;
        }
        if (isCaptured(context.stream)) {
            return ImageUse::None;
        }
        // Without that of 8 bits where memory is short.
        std::shared_ptr<void> memory;
        size_t bytes = 0;
        for (const bool hasBytes : {true, false}) {
            p.imageHasBytes = hasBytes;
            if (!hasBytes && searchImageBytes(p) == bytes) {
                break; // there was none
            }
            bytes = searchImageBytes(p);
            try {
                memory = allocate_(context, bytes);
                break;
            } catch (const faiss::FaissException&) {
            }
        }
        if (!memory) {
            imageIsShort_[p.imageInOrder] = true;
            return ImageUse::None;
        }
        WorkspaceSlices slices(Workspace{memory.get(), bytes});
        runSearchImage(p, SearchImage(p, slices), context.stream);
        Kept& made = images_[p.imageInOrder];
        made.isMade.set(context.stream);
        made.memory = memory;
        made.hasBytes = p.imageHasBytes;
        imageMetric_ = p.metric;
    }
    p.searchImage = images_[p.imageInOrder].memory.get();
    p.imageHasBytes = images_[p.imageInOrder].hasBytes;
    return use;
}

std::optional<RangeBoxes> VectorFacts::giveBoxes(
        const FlatKnnProblem& p,
        const GpuContext& context) {
    RangeBoxesShape shape;
    shape.metric = p.metric;
    shape.d = p.d;
    shape.n = p.numVectors;
    if (!keepsImages_ || p.dataType != DataType::Float32 ||
        !p.vectorsRowMajor || !canHaveBoxes(shape) ||
        p.numVectors < kLeastBoxed) {
        return std::nullopt;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    rangeQueries_ = std::min(rangeQueries_ + p.numQueries, kWorthBoxes);
    if (!boxes_) {
        if (rangeQueries_ < kWorthBoxes || boxesAreShort_) {
            return std::nullopt;
        }
        try {
            makeBoxes_(shape, p, context);
        } catch (const faiss::FaissException&) {
            boxes_.reset();
            boxMemory_.memory.reset();
            boxesAreShort_ = true;
            return std::nullopt;
        }
    } else {
        boxMemory_.isMade.holdUp(context.stream);
    }
    // Where they lie is the same for every metric.
    RangeBoxes boxes = *boxes_;
    boxes.shape.metric = p.metric;
    boxes.rows = static_cast<const float*>(p.vectors);
    return boxes;
}

void VectorFacts::makeBoxes_(
        const RangeBoxesShape& shape,
        const FlatKnnProblem& p,
        const GpuContext& context) {
    const size_t bytes = rangeBoxesBytes(shape);
    boxMemory_.memory = allocate_(context, bytes);
    WorkspaceSlices slices(Workspace{boxMemory_.memory.get(), bytes});
    boxes_.emplace(shape, static_cast<const float*>(p.vectors), slices);
    const size_t scratchBytes = rangeBoxesScratchBytes(shape);
    auto scratch = allocTemporary(context, scratchBytes);
    runRangeBoxes(*boxes_, {scratch.get(), scratchBytes}, context.stream);
    boxMemory_.isMade.set(context.stream);
}

void VectorFacts::forget() {
    const std::lock_guard<std::mutex> lock(mutex_);
    forget_();
    boxes_.reset();
    boxMemory_.memory.reset();
    boxesAreShort_ = false;
    rangeQueries_ = 0;
}

void VectorFacts::forget_() {
    kind_ = RowFacts::None;
    facts_.memory.reset();
    imageIsShort_[0] = imageIsShort_[1] = false;
    smallSearches_ = 0;
    for (Kept& image : images_) {
        image.memory.reset();
    }
}

void VectorFacts::awaitChanges(const GpuContext& context, bool areKnown) {
    if (isOwn(context)) {
        return;
    }
    if (areKnown) {
        changes_.holdUp(context.stream);
    } else if (!isCaptured(context.stream)) {
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
    }
}

} // namespace faiss_bits::gpu::detail
