#pragma once

#include "faiss_bits/common/GpuStaging.h"
#include "kernels/knn/FlatKnn.h"
#include "kernels/knn/RowFacts.h"

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
/// make of the vectors (SearchImage).
class VectorFacts {
   public:
    explicit VectorFacts(bool keepsImages) : keepsImages_(keepsImages) {}

    /// Gives the problem what its metric wants, found now if it is not there.
    /// While the stream is being captured into a graph nothing is found: no
    /// memory can be taken then, and the search finds it for itself.
    ///
    /// Memory   4 n bytes of the device, if the metric has RowFacts; for an
    ///          image n (2.1 d + 38), or none where that is more than there is:
    ///          the search then makes one for itself, or goes without
    /// Result   what was done about an image
    /// Errors   FaissException when memory is short for the facts
    ImageUse giveTo(FlatKnnProblem& problem, const GpuContext& context);

    /// What giveTo would do about an image now, if there is memory for one and
    /// the stream is not being captured. Host only, no CUDA call.
    ImageUse imageUse(const FlatKnnProblem& problem) const;

    /// Sets in the problem what giveTo would, for a plan: addresses that must
    /// not be read. Returns imageUse(problem).
    ImageUse expectFor(FlatKnnProblem& problem) const;

    void forget();

   private:
    ImageUse giveImage(FlatKnnProblem& problem, const GpuContext& context);
    bool mayUseImage(const FlatKnnProblem& problem) const;

    const bool keepsImages_;
    RowFacts kind_ = RowFacts::None;
    faiss::gpu::GpuMemoryReservation memory_; // [n], then RowMaxima
    bool hasImage_ = false;
    Metric imageMetric_ = Metric::L2;
    bool imageIsShort_ = false; // of memory: not asked for again
    /// Of few queries, since the vectors changed. To make an image takes what
    /// it saves in 4 searches of 16 queries, or in 9 to 20 of one (H200, n =
    /// 2^20, d = 768 and 128: 3.3 and 0.8 ms).
    int smallSearches_ = 0;
    static constexpr int kWorthAnImage = 5;
    faiss::gpu::GpuMemoryReservation image_;
};

} // namespace faiss_bits::gpu::detail
