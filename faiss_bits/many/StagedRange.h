#pragma once

#include <vector>

#include "faiss_bits/many/ManyMemory.h"
#include "faiss_bits/many/MetricShardSet.h"

/// Not part of the API.
namespace faiss_bits::gpu::detail {

/// One range search over several devices.
class StagedRange {
   public:
    /// x [n, d] on the host. In more than one stage the shards have their
    /// bounds.
    StagedRange(
            const MetricShardSet& set,
            RangeStages stages,
            const float* x,
            float radius);

    /// Searches for queries first to first + rows - 1, behind those before.
    void runPage(idx_t first, idx_t rows);

    /// Everything, query by query in ascending ids.
    void moveTo(faiss::RangeSearchResult* result);

    /// Queries of a page, at most.
    idx_t pageRows(idx_t n) const;

   private:
    /// Of one page: which queries look at which groups.
    struct Page {
        idx_t first = 0;
        idx_t rows = 0;
        idx_t sliceRows = 0; ///< of a device's slice in two stages
        /// Of each group of devices, let go of in reverse order.
        std::vector<MemoryStack> memory;
        /// Of each slice: [groups, words], part after part.
        std::vector<uint32_t*> bits;
        std::vector<FoundRanges> centers; ///< of each slice

        idx_t sliceFirst(int slice) const;
        idx_t sliceSize(int slice) const;
        uint32_t sliceWords(int slice) const;
    };

    void oneStage_(const Page& page, int part);
    void oneAndAHalfStages_(const Page& page, int part);
    void firstOfTwo_(Page& page, int part);
    void secondOfTwo_(const Page& page, int part);
    uint32_t numGroups_() const;

    const MetricShardSet& set_;
    RangeStages stages_;
    const float* x_;
    float radius_;
    std::vector<FoundRanges> found_;   ///< of each part
    std::vector<FoundRanges> centers_; ///< of first stages
};

} // namespace faiss_bits::gpu::detail
