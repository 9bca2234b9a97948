#pragma once

#include <memory>
#include <vector>

#include <faiss/Clustering.h>

#include "faiss_bits/cluster/TrainingVectors.h"
#include "faiss_bits/common/GpuStaging.h"
#include "kernels/common/SearchMode.h"

namespace faiss_bits::gpu {
class GpuBitsClustering;
}

namespace faiss_bits::gpu::detail {

/// The iterations of one call of GpuBitsClustering::train, and the memory of
/// the device that they share. Not part of the API.
class ClusteringRun {
   public:
    /// Takes the first centroids from the clustering, which it only reads.
    ClusteringRun(
            const GpuContext& context,
            const GpuBitsClustering& clustering,
            const TrainingVectors& vectors,
            SearchMode mode);
    ~ClusteringRun();
    ClusteringRun(const ClusteringRun&) = delete;
    ClusteringRun& operator=(const ClusteringRun&) = delete;

    /// All iterations, `nredo` times. earlyStop: relative change of the
    /// objective that ends them; below 0: none does.
    void train(int64_t seed, double earlyStop);

    /// In place of train(): the first k vectors are the centroids.
    void copyVectors();

    /// [k, d] on the host. Waits.
    std::vector<float> centroids() const;

    const std::vector<faiss::ClusteringIterationStats>& stats() const {
        return stats_;
    }

   private:
    struct Totals; // what an iteration brings to the host
    class SearchTimer;

    void initialize_(int64_t seed, int redo);
    void finishCentroids_();
    void iterate_(int iteration);
    /// Assigns and adds up a block of vectors.
    void addBlock_(const TrainingBlock& block);
    void search_(const TrainingBlock& block);
    Totals totals_() const;
    int splitEmpty_(const Totals& totals);
    bool isConverged_(double earlyStop) const;

    const GpuContext& context_;
    const GpuBitsClustering& clustering_;
    const TrainingVectors& vectors_;
    const SearchMode mode_;
    const int d_;
    const idx_t k_;
    const idx_t given_;  ///< centroids that the caller brought
    const idx_t frozen_; ///< of these, those that stay

    // On the device, slices of memory_.
    TemporaryMemory memory_;
    float* centroids_ = nullptr;  ///< [k, d]
    float* norms_ = nullptr;      ///< [k], of L2
    double* sums_ = nullptr;      ///< [k, d]
    double* weights_ = nullptr;   ///< [k]; then counts and the objective
    uint64_t* counts_ = nullptr;  ///< [k]
    double* objective_ = nullptr; ///< [1]
    float* distances_ = nullptr;  ///< [rows of a block]
    idx_t* labels_ = nullptr;     ///< [rows of a block]

    std::vector<float> best_; ///< centroids of the best of some redos
    std::vector<faiss::ClusteringIterationStats> stats_;
    std::unique_ptr<SearchTimer> timer_;
    double start_ = 0;      ///< seconds, of the iterations
    double searchTime_ = 0; ///< seconds
};

} // namespace faiss_bits::gpu::detail
