#pragma once

#include <memory>
#include <vector>

#include "kernels/cpu/ivf/IvfFinisher.h"
#include "kernels/cpu/ivf/IvfKnn.h"
#include "kernels/cpu/ivf/IvfWays.h"

namespace faiss_bits::cpu {

/// A search: sweeps that are ever more exact, each for the queries that the
/// ones before left.
class IvfSearch {
   public:
    /// Of a problem that was checked.
    IvfSearch(const IvfKnnProblem& problem, IvfSize size, int64_t target);

    void run();

   private:
    /// For the queries in left_.
    IvfSetup setupFor(KernelMetric metric, Lengths<float>* lengths) const;
    /// Candidates by a metric of the plain kernels.
    void sweep(KernelMetric metric);
    void sweepByQueries(
            const IvfSetup& setup,
            idx_t blockRows,
            bool isGathered,
            IvfOutcomes& outcomes);
    void sweepByLists(
            const IvfSetup& setup,
            idx_t batchRows,
            IvfOutcomes& outcomes);
    /// Takes those that are done out of left_.
    void endSweep(const IvfOutcomes& outcomes);
    void searchExactly();

    const IvfKnnProblem& problem_;
    IvfSize size_;
    int64_t target_;
    KernelMetric metric_;
    int team_, threads_;
    std::vector<idx_t> left_; ///< queries without a result, ascending
    idx_t tied_ = 0;          ///< those of them that candidates do not help
    idx_t rescored_ = 0;
};

} // namespace faiss_bits::cpu
