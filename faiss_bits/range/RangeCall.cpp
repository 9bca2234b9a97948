#include "faiss_bits/range/RangeCall.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/Waiting.h"
#include "kernels/range/FlatRangePlan.h"

namespace faiss_bits::gpu::detail {

namespace {

/// Queries that are copied to the device at a time.
constexpr size_t kQueryBytes = size_t(64) << 20;

} // namespace

void requireRange(float radius, idx_t maxResults) {
    FAISS_THROW_IF_NOT_MSG(!std::isnan(radius), "radius is NaN");
    FAISS_THROW_IF_NOT_FMT(
            maxResults >= 0,
            "max_results = %lld is negative; 0 is no limit",
            (long long)maxResults);
}

void forQueryPages(
        const GpuContext& context,
        const char* name,
        idx_t n,
        const void* x,
        size_t rowBytes,
        const std::function<void(idx_t, idx_t, const void*)>& run) {
    if (n == 0) {
        return;
    }
    const idx_t most = placeOf(context, name, x).onHost
            ? std::clamp<idx_t>(idx_t(kQueryBytes / rowBytes), 1, n)
            : n;
    for (idx_t q = 0; q < n; q += most) {
        const idx_t count = std::min(most, n - q);
        const DeviceArray page(
                context,
                name,
                static_cast<const char*>(x) + size_t(q) * rowBytes,
                size_t(count) * rowBytes);
        run(q, count, page.data());
        waitFor(context.stream); // for queries that are on the host
    }
}

void runRangeCall(
        const GpuContext& context,
        const FlatKnnProblem& problem,
        float radius,
        size_t mostScratch,
        RangeSink& sink) {
    const FlatRangePlan plan = planFlatRange(
            problem, std::min(scratchBudget(context), mostScratch));
    auto scratch = allocTemporary(context, plan.bytes);
    runFlatRange(
            plan,
            problem,
            radius,
            Workspace{scratch.get(), plan.bytes},
            context.stream,
            sink);
}

void runBoxCall(
        const GpuContext& context,
        const RangeBoxes& boxes,
        const FlatKnnProblem& problem,
        float radius,
        size_t mostScratch,
        RangeSink& sink) {
    BoxRangePlan plan = planBoxRange(
            boxes,
            problem.numQueries,
            std::min(scratchBudget(context), mostScratch));
    if (mostScratch == SIZE_MAX) {
        plan.mostResults = INT64_MAX; // the sink brings the memory
    }
    auto scratch = allocTemporary(context, plan.bytes);
    runBoxRange(
            plan,
            boxes,
            problem.numQueries,
            static_cast<const float*>(problem.queries),
            problem.allowedBits,
            radius,
            problem.device.multiprocessors,
            Workspace{scratch.get(), plan.bytes},
            context.stream,
            sink);
}

} // namespace faiss_bits::gpu::detail
