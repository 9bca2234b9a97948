#pragma once

#include <cstdint>
#include <memory>

#include <faiss/Index.h>

#include "faiss_bits/common/FaissCompat.h"

namespace faiss_bits {

namespace detail {
struct MetricContents;
} // namespace detail
namespace gpu {
class GpuIndexBitsMetricSpace;
class GpuIndexBitsMetricSpaceShards;
} // namespace gpu

/// Exact search on the CPU by an index for metric spaces, which computes fewer
/// distances than brute force where the triangle inequality lets it: what
/// IndexListOfClusters and IndexSSS share.
///
/// Metrics  METRIC_L2 (squared), METRIC_L1, METRIC_Linf
/// Result   as of IndexFusedFlat, bit for bit: canonical distances
///          (docs/exact.md). Neighbours best first, equal distances by the
///          lower id; ranges by ascending id. A distance that is NaN is never
///          returned; fewer than k: id -1 with distance FLT_MAX
/// Values   vectors with NaN or infinities are stored and looked at by every
///          search, but are in no cluster and no table
/// Making   the index is made anew by the first search after vectors were
///          added, or by build(): it is for collections that stay
/// Filters  none: FaissException for SearchParameters::sel
/// Limits   k >= 1, above ntotal as well; at most 2^31 - 1 vectors
/// Threads  as many as OpenMP would use; a query is one thread's. Searches may
///          run at the same time
/// Memory   8 d bytes a vector, as they are kept by their ids and in the order
///          of the index
/// Errors   FaissException naming the argument and its value. The index then is
///          what it was before
/// Interrupts  build and searches ask faiss::InterruptCallback now and then
/// Files    write() and read(), a format of our own: FAISS's write_index does
///          not know the class
class IndexMetricSpace : public faiss::Index {
   public:
    ~IndexMetricSpace() override;

    /// Adds n vectors x [n, d]. All or none.
    void add(idx_t n, const float* x) override;

    /// Removes all vectors.
    void reset() override;

    /// Makes the index, unless it is made.
    void build();
    /// Whether it is.
    bool isBuilt() const;

    /// Finds the k nearest vectors of each of n queries.
    ///
    /// x          [n, d]
    /// distances  [n, k]
    /// labels     [n, k]
    /// params     null, or a SearchParameters without a selector
    void search(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Finds all vectors with distance < radius, of every query by ascending
    /// id. result->nq must be n. radius: not NaN; 0 and less give nothing
    void range_search(
            idx_t n,
            const float* x,
            float radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Vector `key`, 0 <= key < ntotal, to recons [d].
    void reconstruct(idx_t key, float* recons) const override;

    /// Vectors i0 to i0 + ni - 1 to recons [ni, d].
    void reconstruct_n(idx_t i0, idx_t ni, float* recons) const override;

    /// Distances that searches computed since the index was made, or since
    /// resetDistances(): those to centers and pivots included.
    uint64_t numDistances() const;
    /// numDistances() begins at zero again.
    void resetDistances();

    /// Writes vectors, options and, where it is made, the index.
    void write(const char* fname) const;
    /// Replaces everything, metric and dimensions too, by what is in a file of
    /// this class.
    void read(const char* fname);

   private:
    friend class IndexListOfClusters;
    friend class IndexSSS;
    friend class gpu::GpuIndexBitsMetricSpace;
    friend class gpu::GpuIndexBitsMetricSpaceShards;

    explicit IndexMetricSpace(detail::MetricContents contents);
    const detail::MetricContents& contents_() const;
    void setContents_(detail::MetricContents contents);

    struct State;
    void build_() const;

    std::unique_ptr<State> state_;
};

} // namespace faiss_bits
