#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <vector>

#include "faiss_bits/many/ManyMemory.h"
#include "faiss_bits/many/PartSet.h"
#include "faiss_bits/many/ReplicaSlices.h"

/// Not part of the API.
namespace faiss_bits::gpu::detail {

/// What another device can use of the caller's arrays, which takes its thread
/// some calls of the driver to find out.
struct GroupReach {
    std::optional<bool> readsQueries;
    std::optional<bool> writesResults;
};

/// One search of replicas. Each device has a slice of the queries, the larger
/// the more replicas it has; one replica searches them, or where arrays lie on
/// the host and are large two at a time, so that copies of one go along with
/// the other's work. Another device's results that are large go to the first
/// one in pieces, each while the next is searched.
class SlicedSearch {
   public:
    using Parameters = std::function<const faiss::SearchParameters*(int part)>;

    /// workPerRow  PagePlan.h
    /// secondsPerRow  of a query, about, where arrays lie on the device: those
    ///             for which others copy queries and results get fewer. 0: not
    ///             known
    /// isFiltered  selectors are asked by one thread a device
    SlicedSearch(
            const PartSet& set,
            const GpuContext& home,
            idx_t n,
            idx_t k,
            double workPerRow,
            double secondsPerRow,
            const CallArrays& arrays,
            const Parameters& parameters,
            bool isFiltered);

    /// With arrays on the device: enqueues, and the stream of `home` comes
    /// after all of it. Else waits.
    ///
    /// early  threads that are at work, which all arrays on the device need; or
    ///        null
    /// reach  of each group, once its thread is; empty: nothing is known
    void run(ManyDevices::Early* early, const std::vector<GroupReach>& reach);

   private:
    idx_t begin_(int group) const {
        return begins_[group];
    }
    idx_t rows_(int group) const {
        return begins_[group + 1] - begins_[group];
    }
    int lanesOf_(int group) const;
    GroupReach reachOf_(int group) const {
        return reach_->empty() ? GroupReach() : (*reach_)[group];
    }
    void searchLane_(int group, int lane, int lanes);
    GpuContext contextOf_(int part) const;
    void searchPiece_(
            int part,
            idx_t rows,
            const char* x,
            char* distances,
            char* labels);
    void searchAway_(int group, int part, idx_t first, idx_t rows);
    cudaStream_t homeStream_() const;
    void sendHome_(
            const CallArray& array,
            const char* here,
            int group,
            cudaStream_t stream,
            idx_t first,
            idx_t rows);

    const PartSet& set_;
    const GpuContext home_;
    const idx_t n_;
    const idx_t k_;
    const CallArrays arrays_;
    const Parameters& parameters_;
    const bool isFiltered_;
    const bool isOnHost_;
    const bool mayCut_;               // slices of other devices
    const idx_t most_;                // queries of a piece
    const bool isOnDevice_;           // all arrays
    const std::vector<idx_t> begins_; // of groups, and the end
    StreamMark start_;                // the queries are there
    const std::vector<GroupReach>* reach_ = nullptr;
    std::atomic<bool> stop_ = false;
    std::vector<MemoryStack> memory_; // of each group
    /// Where results of a group leave in pieces.
    std::vector<std::optional<cudaStream_t>> sending_;
    /// Where arrays are on the device: results of a group are at home.
    std::vector<StreamMark> done_;
};

} // namespace faiss_bits::gpu::detail
