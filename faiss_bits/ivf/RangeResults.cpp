#include "faiss_bits/ivf/RangeResults.h"

#include <algorithm>

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/FaissAssert.h>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

void requireRangeResult(const faiss::RangeSearchResult* result, idx_t n) {
    requireNotNull(result, "result");
    FAISS_THROW_IF_NOT_FMT(
            idx_t(result->nq) == n,
            "result->nq = %lld, but n = %lld",
            (long long)result->nq,
            (long long)n);
    requireNotNull(result->lims, "result->lims");
    FAISS_THROW_IF_NOT_MSG(
            !result->labels && !result->distances,
            "result holds the result of another search");
}

void RangeResults::add(const GpuContext& context, const IvfRangePart& part) {
    counts_.insert(counts_.end(), part.counts.begin(), part.counts.end());
    const size_t first = ids_.size();
    const size_t total = size_t(part.total);
    distances_.resize(first + total);
    ids_.resize(first + total);
    if (total == 0) {
        return;
    }
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            distances_.data() + first,
            part.distances,
            total * sizeof(float),
            cudaMemcpyDeviceToHost,
            context.stream));
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            ids_.data() + first,
            part.ids,
            total * sizeof(idx_t),
            cudaMemcpyDeviceToHost,
            context.stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(context.stream));
}

void RangeResults::moveTo(faiss::RangeSearchResult& result) const {
    std::copy(counts_.begin(), counts_.end(), result.lims);
    result.do_allocation(); // makes limits of the counts
    std::copy(distances_.begin(), distances_.end(), result.distances);
    std::copy(ids_.begin(), ids_.end(), result.labels);
}

} // namespace faiss_bits::gpu::detail
