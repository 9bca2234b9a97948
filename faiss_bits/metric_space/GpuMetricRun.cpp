#include "faiss_bits/metric_space/GpuMetricRun.h"

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/range/RangeMoves.h"
#include "faiss_bits/range/RangeResults.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/common/DeviceTraits.h"

namespace faiss_bits::gpu::detail {

using namespace metric_space;

namespace {

constexpr size_t kMostScratch = size_t(1) << 30;

/// Scratch of a plan, for one run.
struct Scratch {
    Scratch(const GpuContext& context, size_t bytes)
            : memory(allocTemporary(context, bytes)), bytes(bytes) {}

    Workspace workspace() {
        return {memory.get(), bytes};
    }

    TemporaryMemory memory;
    size_t bytes;
};

template <class T, class Memory>
void copyBack(
        const GpuContext& context,
        std::vector<T, Memory>& to,
        const T* from,
        size_t count) {
    const size_t before = to.size();
    to.resize(before + count);
    touchPages(to.data() + before, count * sizeof(T));
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            to.data() + before,
            from,
            count * sizeof(T),
            cudaMemcpyDeviceToHost,
            context.stream));
}

/// Of so many more elements, to be written to.
template <class T, class Memory>
T* appended(std::vector<T, Memory>& to, size_t count) {
    const size_t before = to.size();
    to.resize(before + count);
    wantLargePages(to.data() + before, count * sizeof(T));
    return to.data() + before;
}

/// [rows + 1], complete when the stream has been waited for.
std::vector<idx_t> limitsOf(
        const GpuContext& context,
        const MetricRangePart& part) {
    std::vector<idx_t> limits;
    if (part.hostLimits) {
        limits.assign(part.hostLimits, part.hostLimits + part.rows + 1);
    } else {
        copyBack(context, limits, part.limits, size_t(part.rows) + 1);
    }
    return limits;
}

void appendPart(
        const GpuContext& context,
        const MetricRangePart& part,
        FoundRanges& found) {
    const std::vector<idx_t> limits = limitsOf(context, part);
    const size_t total = size_t(part.total);
    if (isLargeRange(total)) {
        waitFor(context.stream); // they are complete then
        RangeMoves moves;
        moves.blocks = {{part.distances, part.ids, total, &context}};
        moves.limits = {0, total};
        moves.places = {0};
        moveRanges(
                {moves},
                appended(found.distances, total),
                appended(found.ids, total));
    } else {
        copyBack(context, found.distances, part.distances, total);
        copyBack(context, found.ids, part.ids, total);
        waitFor(context.stream);
    }
    const size_t before = found.limits.back();
    for (idx_t i = 1; i <= part.rows; ++i) {
        found.limits.push_back(before + size_t(limits[i]));
    }
    throwIfInterrupted();
}

/// Leaves the results of a search on the device, up to a limit.
class DeviceParts {
   public:
    /// first: query that parts call 0.
    DeviceParts(
            const GpuContext& context,
            idx_t first,
            GpuRangeResult& result,
            MetricRangeLimit& limit)
            : context_(context),
              first_(first),
              result_(result),
              limit_(limit) {}

    RangeRoom room(const MetricRangePart& part) {
        if (!limit_.takes(part.total)) {
            return {};
        }
        const GpuRangeResult::Part memory = result_.allocate(part.total);
        result_.parts.push_back(memory);
        return {memory.distances, memory.labels};
    }

    void take(const MetricRangePart& part) {
        const std::vector<idx_t> limits = limitsOf(context_, part);
        if (part.total > 0 && !part.isInRoom) {
            const RangeRoom to = room(part);
            if (to.distances) {
                const size_t total = size_t(part.total);
                copy_(to.distances, part.distances, total * sizeof(float));
                copy_(to.ids, part.ids, total * sizeof(idx_t));
            }
        }
        waitFor(context_.stream);
        for (idx_t i = 0; i < part.rows; ++i) {
            result_.lims[size_t(first_ + part.first + i) + 1] =
                    limits[i + 1] - limits[i];
        }
        throwIfInterrupted();
    }

   private:
    void copy_(void* to, const void* from, size_t bytes) {
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                to, from, bytes, cudaMemcpyDeviceToDevice, context_.stream));
    }

    const GpuContext& context_;
    idx_t first_;
    GpuRangeResult& result_;
    MetricRangeLimit& limit_;
};

} // namespace

void FoundRanges::append(const FoundRanges& more) {
    const size_t before = limits.back();
    for (size_t i = 1; i < more.limits.size(); ++i) {
        limits.push_back(before + more.limits[i]);
    }
    distances.insert(
            distances.end(), more.distances.begin(), more.distances.end());
    ids.insert(ids.end(), more.ids.begin(), more.ids.end());
}

void FoundRanges::copyTo(faiss::RangeSearchResult& result) const {
    for (size_t q = 0; q < numQueries(); ++q) {
        result.lims[q] = limits[q + 1] - limits[q];
    }
    allocateResults(result);
    copyHostBytes(
            result.distances,
            distances.data(),
            distances.size() * sizeof(float));
    copyHostBytes(result.labels, ids.data(), ids.size() * sizeof(idx_t));
}

void requireNoMetricCapture(const GpuContext& context) {
    requireNoCapture(context.stream, "a search in a metric space");
}

MetricRun::MetricRun(
        const GpuContext& context,
        const MetricGroups& groups,
        idx_t n,
        const float* queries,
        Mapping mapping,
        const float* vectors)
        : context_(context) {
    problem_.groups = groups;
    problem_.numQueries = n;
    problem_.queries = queries;
    problem_.mapping = mapping;
    problem_.vectors = vectors;
    problem_.multiprocessors = deviceTraits(context.device).multiprocessors;
}

size_t MetricRun::budget_() const {
    return std::min(scratchBudget(context_), kMostScratch);
}

uint64_t MetricRun::range_(
        float radius,
        const Take& take,
        const MetricRoom& room) {
    const MetricSearchPlan plan = planMetricSearch(problem_, 0, budget_());
    Scratch scratch(context_, plan.bytes);
    MetricCounters counters;
    runMetricRange(
            plan,
            problem_,
            radius,
            scratch.workspace(),
            context_.stream,
            take,
            &counters,
            room);
    return counters.distances;
}

void MetricRangeLimit::requireEnough() const {
    FAISS_THROW_IF_NOT_FMT(
            !isOver_(),
            "max_results = %lld, but %lld results are in range",
            (long long)most_,
            (long long)total_);
}

uint64_t MetricRun::range(float radius, FoundRanges& found) {
    MetricRangeLimit none;
    return range(radius, found, none);
}

uint64_t MetricRun::range(
        float radius,
        FoundRanges& found,
        MetricRangeLimit& limit) {
    return range_(radius, [&](const MetricRangePart& part) {
        if (limit.takes(part.total)) {
            appendPart(context_, part, found);
        } else {
            throwIfInterrupted();
        }
    });
}

uint64_t MetricRun::range(
        float radius,
        idx_t first,
        GpuRangeResult& result,
        MetricRangeLimit& limit) {
    DeviceParts parts(context_, first, result, limit);
    return range_(
            radius,
            [&](const MetricRangePart& part) { parts.take(part); },
            [&](const MetricRangePart& part) { return parts.room(part); });
}

uint64_t MetricRun::firstStage(
        float radius,
        uint32_t* groupBits,
        uint32_t stride,
        FoundRanges& found) {
    const MetricSearchPlan plan = planFirstStage(problem_, budget_());
    Scratch scratch(context_, plan.bytes);
    MetricCounters counters;
    runFirstStage(
            plan,
            problem_,
            radius,
            groupBits,
            stride,
            scratch.workspace(),
            context_.stream,
            [&](const MetricRangePart& part) {
                appendPart(context_, part, found);
            },
            &counters);
    return counters.distances;
}

uint64_t MetricRun::secondStage(
        float radius,
        const uint32_t* groupBits,
        uint32_t stride,
        FoundRanges& found) {
    problem_.groupBits = groupBits;
    problem_.groupBitsStride = stride;
    return range(radius, found);
}

uint64_t MetricRun::nearest(idx_t k, float* distances, idx_t* ids) {
    const MetricSearchPlan plan = planMetricSearch(problem_, k, budget_());
    Scratch scratch(context_, plan.bytes);
    MetricCounters counters;
    runMetricKnn(
            plan,
            problem_,
            k,
            distances,
            ids,
            scratch.workspace(),
            context_.stream,
            throwIfInterrupted,
            &counters);
    return counters.distances;
}

} // namespace faiss_bits::gpu::detail
