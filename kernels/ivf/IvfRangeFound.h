#pragma once

#include <optional>
#include <vector>

#include "kernels/ivf/IvfFoundParams.h"
#include "kernels/ivf/IvfRange.h"
#include "kernels/ivf/IvfScratch.h"

/// Range searches of many queries, of which few vectors are in range: bounds by
/// tensor cores leave out what is farther than the radius, and the rest get
/// canonical distances.
namespace faiss_bits {

/// The plan whose scratch takes at most maxBytes. None where that is too little
/// for 64 queries, lists have no vectors, or a query has more than 4,096 lists
/// or too many vectors for 32 bits. Host only. Of the problem k is 1.
std::optional<IvfFoundPlan> planIvfFound(
        const IvfKnnProblem& problem,
        size_t maxBytes);

/// Such a search, in scratch that it does not own.
class IvfFoundSearch {
   public:
    /// slices: measures, or hands out plan.bytes.
    IvfFoundSearch(
            const IvfFoundPlan& plan,
            const IvfKnnProblem& problem,
            WorkspaceSlices& slices);

    /// Hands the results of some queries on, as runIvfRange. False: so many
    /// pairs may be in range that all distances take less time, and nothing was
    /// handed on.
    bool run(
            idx_t first,
            idx_t rows,
            float radius,
            RangeSink& sink,
            cudaStream_t stream) const;

   private:
    IvfParams beginRows(
            idx_t first,
            idx_t rows,
            float radius,
            cudaStream_t stream) const;
    void find(IvfParams& search, cudaStream_t stream) const;
    void handOn(
            IvfRescoreParams taken,
            uint32_t mostFound,
            idx_t first,
            float radius,
            RangeSink& sink,
            cudaStream_t stream) const;

    const IvfFoundPlan& plan_;
    const IvfKnnProblem& p_;
    IvfScratch scratch_;
    IvfFoundParams params_;
    idx_t* firsts_ = nullptr;        // [rowsAtATime]: of results
    uint32_t* firstFound_ = nullptr; // [rowsAtATime]
};

} // namespace faiss_bits
