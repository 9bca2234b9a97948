#pragma once

#include <memory>
#include <vector>

#include "kernels/cpu/ivf/IvfFinisher.h"
#include "kernels/cpu/ivf/IvfKnn.h"

namespace faiss_bits::cpu {

/// How much there is to do.
struct IvfSize {
    idx_t largestTotal = 0; ///< vectors that a query meets, at most
    double numPairs = 0;    ///< of a query and a vector
    double numProbes = 0;   ///< of a query and a list with such vectors
};

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
    /// Are queries to meet the vectors of all their lists in one scan?
    bool gathers(idx_t rows) const;
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
