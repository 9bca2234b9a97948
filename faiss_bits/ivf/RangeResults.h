#pragma once

#include <vector>

#include <faiss/Index.h>

#include "faiss_bits/common/GpuStaging.h"
#include "kernels/ivf/IvfRange.h"

namespace faiss {
struct RangeSearchResult;
}

namespace faiss_bits::gpu::detail {

/// Throws FaissException unless `result` can take that of n queries.
void requireRangeResult(const faiss::RangeSearchResult* result, idx_t n);

/// Results of a range search on the host, part by part. Not part of the API.
class RangeResults {
   public:
    explicit RangeResults(idx_t n) {
        counts_.reserve(size_t(n));
    }

    /// The next queries. Waits for the stream.
    void add(const GpuContext& context, const IvfRangePart& part);

    idx_t* ids() {
        return ids_.data();
    }
    idx_t size() const {
        return idx_t(ids_.size());
    }

    /// Of all queries, to FAISS's.
    void moveTo(faiss::RangeSearchResult& result) const;

   private:
    std::vector<idx_t> counts_;
    std::vector<float> distances_;
    std::vector<idx_t> ids_;
};

} // namespace faiss_bits::gpu::detail
