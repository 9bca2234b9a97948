#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <faiss/Index.h>
#include <faiss/IndexFlat.h>

#include "faiss_bits/common/FaissCompat.h"
#include "faiss_bits/many/DeviceList.h"
#include "kernels/common/SearchMode.h"

namespace faiss::gpu {
class GpuIndex;
}

namespace faiss_bits::gpu {

namespace detail {
struct GpuContext;
struct PartSet;
} // namespace detail

/// What GpuIndexBitsShards and GpuIndexBitsReplicas have in common: parts on
/// several GPUs that answer as one exact index does.
class GpuIndexBitsMany : public faiss::Index {
   public:
    /// Of flat parts, as of GpuIndexBitsFlat; inverted lists are always
    /// certified. Fast: of each shard's own search, merged by the distances.
    SearchMode search_mode = SearchMode::Certified;

    ~GpuIndexBitsMany() override;

    /// Number of parts.
    int count() const;
    /// The first device of the list, where arrays may lie.
    int getDevice() const;
    /// The first resources of the list, whose stream orders the calls.
    std::shared_ptr<faiss::gpu::GpuResources> getResources() const;
    /// Part 0 <= part < count(); it stays ours. Throws after a reset() that has
    /// failed half-way.
    const faiss::Index* at(int part) const;

    /// Adds n vectors x [n, d], on the host or on the first device. All or
    /// none, whichever device fails. Inverted lists give them the ids ntotal,
    /// ntotal + 1, and so on.
    ///
    /// Errors  FaissException; inverted lists of FAISS's own classes, which
    ///         could not take an addition back, take none
    void add(idx_t n, const float* x) override;

    /// As add, with the ids [n] of the vectors in inverted lists, on the host
    /// or on the first device; they may come several times. Of flat parts it
    /// must be null.
    void add_with_ids(idx_t n, const float* x, const idx_t* ids) override;

    /// Trains inverted lists that are not trained yet, with vectors x [n, d] on
    /// the host or on the first device: the first part, as one index would be,
    /// and the others get its centroids and codebooks. All or none. Lists with
    /// INDICES_IVF, which FAISS cannot copy, are trained before they go to
    /// several devices.
    void train(idx_t n, const float* x) override;

    /// Removes all vectors.
    ///
    /// Errors  FaissException. Where a device has failed nothing has changed;
    ///         where memory for empty inverted lists is short the vectors are
    ///         gone, and other calls throw until a reset() has worked
    void reset() override;

    /// Finds the k nearest vectors of each of n queries.
    ///
    /// x [n, d], distances [n, k], labels [n, k]; params: those that the class
    /// takes (Filters)
    void search(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// search() without the distances; labels is [n, k].
    void assign(idx_t n, const float* x, idx_t* labels, idx_t k = 1)
            const override;

    /// Finds all vectors with distance < radius (similarities > radius) for
    /// each of n queries, by range_search of the parts, at the same time.
    ///
    /// x [n, d] on the host or on the first device; radius any number but NaN;
    /// result new, for n queries. Of every query in ascending order of ids; of
    /// inverted lists that are dealt out shard by shard
    ///
    /// Cost  as of the parts, and a copy of all results on the host
    void range_search(
            idx_t n,
            const float* x,
            float radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Replaces the CPU index's metric, dimensions and vectors by ours.
    void copyTo(faiss::IndexFlat* index) const;

   protected:
    /// Of empty flat parts.
    GpuIndexBitsMany(
            std::unique_ptr<detail::PartSet> set,
            int dims,
            faiss::MetricType metric);

    /// Of parts that are there already; ntotal is to be set.
    GpuIndexBitsMany(
            std::unique_ptr<detail::PartSet> set,
            std::vector<std::unique_ptr<faiss::gpu::GpuIndex>> parts);

    /// For constructors that copy a CPU index, which is not null: the metric's
    /// argument and the vectors.
    void copyFrom_(const faiss::IndexFlat& index);

    void requireFlat_(const char* what) const;

    /// Throws where a reset() has left parts that cannot be used.
    void requireParts_() const;

    detail::PartSet& parts_() const {
        return *set_;
    }

    /// What each part gets for the parameters of a search.
    using PartParameters_ =
            std::function<const faiss::SearchParameters*(int part)>;

   private:
    /// Throws where parameters would have to be ignored.
    virtual PartParameters_ parametersOf_(
            const faiss::SearchParameters* params) const = 0;

    /// Of n > 0 vectors, which are there; sets ntotal. ids: on the host, or
    /// null; onHost: where x is.
    virtual void addVectors_(
            idx_t n,
            const float* x,
            const idx_t* ids,
            bool onHost) = 0;

    /// All parts are empty.
    virtual void wasReset_() {}

    /// Of n > 0 queries; distances may be null. isFiltered: params were given.
    virtual void searchParts_(
            const detail::GpuContext& home,
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const PartParameters_& parameters,
            bool isFiltered) const = 0;

    /// Of n > 0 queries on the host.
    virtual void rangeSearchParts_(
            idx_t n,
            const float* x,
            float radius,
            faiss::RangeSearchResult* result,
            const PartParameters_& parameters) const = 0;

    void searchChecked_(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params) const;

    /// Fields that a user may have set go to the parts.
    void tellParts_() const;

    std::unique_ptr<detail::PartSet> set_;
    bool isHalfReset_ = false;
};

} // namespace faiss_bits::gpu
