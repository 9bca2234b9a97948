#pragma once

#include <memory>
#include <vector>

#include <faiss/Clustering.h>
#include <faiss/gpu/GpuResources.h>

#include "faiss_bits/common/FaissCompat.h"
#include "kernels/common/SearchMode.h"

namespace faiss_bits::gpu {

/// k-means on one GPU: faiss::Clustering with an exact flat index, run on the
/// device. The assignment is our search with k = 1; sums, centroids and the
/// objective are made on the device; the vectors stay there for all iterations.
///
/// Options  those of faiss::ClusteringParameters. spherical clusters by inner
///          product, as faiss.Kmeans does, else by L2. update_index retrains
///          the index after an iteration: a flat one has nothing to train.
///          Refused, with an exception: decode_block_size other than its
///          default (there are no codes to decode here), init_method other
///          than RANDOM, use_super_kmeans
/// Start    initial centroids, samples (max_points_per_centroid) and the
///          clusters that are split where one got no vector are drawn as FAISS
///          draws them: the same for the same seed
/// Result   the same bits every run, on every device, wherever the vectors lie.
///          FAISS adds up in float32 and we in float64, so its centroids differ
///          from ours in their last digits
/// Vectors  that have no nearest centroid (NaN, where
///          check_input_data_for_NaNs is off) take no part
/// Pointers x and x_weights each on the host or on the device
/// Memory   vectors on the host are copied to the device once, or, where they
///          do not fit, block by block (512 MiB) in every iteration. Beside
///          them: 12 k d + 20 k bytes, 28 + 0.13 d (few rows: 0.5 d) bytes a
///          row of a block, and what the search takes (GpuIndexBitsFlat)
/// Stream   work is ordered on the resources' default stream; train() waits
/// Threads  one call at a time per GpuResources, as in FAISS
/// Errors   FaissException naming the argument and its value; "computation
///          interrupted" within a second when faiss::InterruptCallback wants
///          it; centroids and iteration_stats are then as they were
/// Cost     an iteration is a search of n queries among k vectors, and one more
///          read of the vectors (0.12 ms for 2^20 x 128 on an H200)
/// Source   Lloyd 1982, as FAISS has it
class GpuBitsClustering : public faiss::ClusteringParameters {
   public:
    /// d, k >= 1; device -1: the current one.
    GpuBitsClustering(
            faiss::gpu::GpuResourcesProvider* provider,
            int d,
            int k,
            const faiss::ClusteringParameters& cp =
                    faiss::ClusteringParameters(),
            int device = -1);

    const int d; ///< dimensions of the vectors
    const int k; ///< clusters

    /// [k, d], as faiss::Clustering: what is there when train() is called are
    /// the first centroids, and the rest is drawn.
    std::vector<float> centroids;

    /// Of every iteration of every call, as faiss::Clustering.
    std::vector<faiss::ClusteringIterationStats> iteration_stats;

    /// Of the assignment. Certified (default): exact; or Plain.
    SearchMode search_mode = SearchMode::Certified;

    /// Most bytes of the device for a copy of the vectors; 0: what is free,
    /// less 2 GiB. Changes no bit of the result.
    size_t most_device_bytes = 0;

    /// Clusters n vectors x [n, d], n >= k, weighted by x_weights [n] unless
    /// that is nullptr.
    void train(idx_t n, const float* x, const float* x_weights = nullptr);

   private:
    std::shared_ptr<faiss::gpu::GpuResources> resources_;
    int device_;
};

} // namespace faiss_bits::gpu
