#pragma once

#include <memory>
#include <vector>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/many/ShardMap.h"
#include "faiss_bits/metric_space/FoundRanges.h"
#include "faiss_bits/range/RangePieces.h"

/// Range results of several parts, made one. Not part of the API.
namespace faiss_bits::gpu::detail {

/// Queries, at least, whose results a thread of the host puts together, where
/// lims has their places.
idx_t queriesOfAThread(const faiss::RangeSearchResult& result);

/// All that the shards have found for every query. With `map` numbers in a
/// shard become ids, and these ascend within a query; each shard's must ascend
/// before. Without: shard by shard as they are.
///
/// found   of each shard, null for nothing
/// Errors  what an allocation throws: `result` has no arrays then
void joinRanges(
        const std::vector<std::unique_ptr<RangePieces>>& found,
        const ShardMap* map,
        faiss::RangeSearchResult* result);

/// Queries begin to end - 1 of parts whose ids are those of the whole, each
/// once, to the places that result->lims has for them, by ascending id.
///
/// found  of all queries, by every part
void joinByIds(
        const std::vector<const FoundRanges*>& found,
        idx_t begin,
        idx_t end,
        faiss::RangeSearchResult* result);

/// What replicas have found for the slices of the queries (sliceBegin), in
/// order. Null: for none. Errors as above.
void joinSlices(
        const std::vector<std::unique_ptr<RangePieces>>& found,
        faiss::RangeSearchResult* result);

/// Vectors on the host: where they lie, or a copy.
class QueriesOnHost {
   public:
    QueriesOnHost(const GpuContext& home, const float* x, size_t count);

    const float* data() const {
        return data_;
    }

   private:
    std::vector<float> copy_;
    const float* data_;
};

} // namespace faiss_bits::gpu::detail
