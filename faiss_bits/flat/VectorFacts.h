#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/common/Waiting.h"
#include "kernels/knn/FlatKnn.h"
#include "kernels/knn/RowFacts.h"
#include "kernels/range/boxes/RangeBoxes.h"

namespace faiss_bits::gpu::detail {

/// What a search does about an image that is kept.
enum class ImageUse {
    None,
    NotYet, ///< searches of few queries: another of a few that go without
    Make,   ///< made by this search, and used
    Kept,   ///< there, and used
};

/// What searches by some metrics must know of every vector (RowFacts, and
/// RowMaxima), kept from one search to the next: to find it is two reads of all
/// vectors, where the search of a query may be one.
///
/// The owner says when the vectors change: forget().
///
/// And, if `keepsImages`, the copy of 16 bits that searches on tensor cores
/// make of the vectors (SearchImage), and the boxes of range searches
/// (RangeBoxes).
///
/// Threads  searches on the index's resources and on others may use it at the
///          same time. What is made by one, once, is waited for by the streams
///          of the others. forget() comes alone, as what changes the vectors
class VectorFacts {
   public:
    /// resources: of the index; null: whatever a search is on.
    explicit VectorFacts(
            bool keepsImages,
            const faiss::gpu::GpuResources* resources = nullptr)
            : keepsImages_(keepsImages), resources_(resources) {}

    /// True for a search on the index's resources.
    bool isOwn(const GpuContext& context) const {
        return !resources_ || context.resources == resources_;
    }

    /// Gives the problem what its metric wants, found now if it is not there.
    /// While the stream is being captured into a graph nothing is found: no
    /// memory can be taken then, and the search finds it for itself. A search
    /// on other resources than the index's finds nothing anew where something
    /// of another metric is there, as that may be released on the index's
    /// alone.
    ///
    /// A search that needs an image in the vectors' order (imageInOrder) gets
    /// one beside that of the others, as these may be reading it. Others take
    /// whichever is there.
    ///
    /// Memory   4 n bytes of the device, if the metric has RowFacts; for an
    ///          image of either order n (2.1 d + 38), by L2 of 257 to 1,024
    ///          dimensions n d more if there is room, or none where that is
    ///          more than there is: the search then makes one for itself, or
    ///          goes without. From the index's resources, or CUDA itself for a
    ///          search on others
    /// Result   what was done about an image
    /// Errors   FaissException when memory is short for the facts
    ImageUse giveTo(FlatKnnProblem& problem, const GpuContext& context);

    /// What giveTo would do about an image now, if there is memory for one and
    /// the stream is not being captured. Host only, no CUDA call. isOwn: as
    /// isOwn() of the search's context.
    ImageUse imageUse(const FlatKnnProblem& problem, bool isOwn = true) const;

    /// Sets in the problem what giveTo would, for a plan: addresses that must
    /// not be read. Returns imageUse(problem, isOwn).
    ImageUse expectFor(FlatKnnProblem& problem, bool isOwn = true) const;

    /// The boxes for a range search of the problem, made now if so many queries
    /// have come since the vectors changed that they pay; or none: the search
    /// then goes without.
    ///
    /// Memory   17 n bytes of the device that stay, as an image's (21 n for d =
    ///          4), and 25 n of temporary memory; none where that is more than
    ///          there is
    std::optional<RangeBoxes> giveBoxes(
            const FlatKnnProblem& problem,
            const GpuContext& context);

    void forget();

    /// To be set on the stream where the vectors have changed.
    WorkMark& changes() {
        return changes_;
    }

    /// Before a search reads the vectors: on other resources than the index's
    /// it comes after their changes. If these are not known (FAISS made them),
    /// this waits for the device, save where the stream is being captured.
    void awaitChanges(const GpuContext& context, bool areKnown);

   private:
    /// Memory of the device, and when it is filled.
    struct Kept {
        std::shared_ptr<void> memory;
        WorkMark isMade;
        bool hasBytes = false; // FlatKnnProblem::imageHasBytes: an image
    };

    void forget_();
    void giveFacts_(FlatKnnProblem& problem, const GpuContext& context);
    ImageUse giveImage_(FlatKnnProblem& problem, const GpuContext& context);
    bool mayUseImage_(const FlatKnnProblem& problem) const;
    std::optional<bool> imageFor_(const FlatKnnProblem& problem) const;
    bool hasImage_() const {
        return images_[0].memory || images_[1].memory;
    }
    ImageUse imageUse_(const FlatKnnProblem& problem, bool isOwn) const;
    void makeBoxes_(
            const RangeBoxesShape& shape,
            const FlatKnnProblem& problem,
            const GpuContext& context);
    std::shared_ptr<void> allocate_(const GpuContext& context, size_t bytes)
            const;

    const bool keepsImages_;
    const faiss::gpu::GpuResources* const resources_;
    WorkMark changes_;
    mutable std::mutex mutex_; // of all below
    RowFacts kind_ = RowFacts::None;
    Kept facts_; // [n], then RowMaxima
    Metric imageMetric_ = Metric::L2;
    bool imageIsShort_[2] = {}; // of memory: not asked for again
    /// Of few queries, since the vectors changed. To make an image takes what
    /// it saves in 4 searches of 16 queries, or in 9 to 20 of one (H200, n =
    /// 2^20, d = 768 and 128: 3.3 and 0.8 ms).
    int smallSearches_ = 0;
    static constexpr int kWorthAnImage = 5;
    Kept images_[2]; // spread, and in the vectors' order
    std::optional<RangeBoxes> boxes_;
    Kept boxMemory_;
    bool boxesAreShort_ = false; // of memory: not asked for again
    idx_t rangeQueries_ = 0;     // since the vectors changed
};

} // namespace faiss_bits::gpu::detail
