#include "faiss_bits/select/GpuBitsSelect.h"

#include <algorithm>
#include <limits>

#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/common/PagedCall.h"
#include "faiss_bits/common/PlanLog.h"
#include "faiss_bits/common/PlanText.h"
#include "kernels/select/SelectCost.h"

namespace faiss_bits::gpu {

using detail::requireCount;
using detail::requireNotNull;
using detail::requirePositive;

namespace {

/// Elements from row to row.
idx_t keyStride(const GpuSelectParams& params) {
    return params.rowStride ? params.rowStride : params.cols;
}
idx_t idStride(const GpuSelectParams& params) {
    return params.idStride ? params.idStride : params.cols;
}

void requireStride(const char* name, idx_t stride, idx_t cols) {
    FAISS_THROW_IF_NOT_FMT(
            stride == 0 || stride >= cols,
            "%s = %lld is less than cols = %lld",
            name,
            (long long)stride,
            (long long)cols);
}

/// Rows with gaps are not copied: what is behind the last may be anybody's.
void requireNear(bool onHost, const char* name, idx_t stride, idx_t cols) {
    FAISS_THROW_IF_NOT_FMT(
            !onHost || stride == 0 || stride == cols,
            "%s = %lld: on the host it must be cols = %lld",
            name,
            (long long)stride,
            (long long)cols);
}

void requireArguments(const GpuSelectParams& params) {
    requireCount(params.rows, "rows");
    requireCount(params.cols, "cols");
    requireStride("rowStride", params.rowStride, params.cols);
    requireStride("idStride", params.idStride, params.cols);
    requirePositive(params.k, "k");
    FAISS_THROW_IF_NOT_FMT(
            params.keyType == DataType::Float32 ||
                    params.keyType == DataType::Float16 ||
                    params.keyType == DataType::BFloat16,
            "keyType = %d is not supported: Float32 (%d), Float16 (%d) and "
            "BFloat16 (%d) are",
            int(params.keyType),
            int(DataType::Float32),
            int(DataType::Float16),
            int(DataType::BFloat16));
    FAISS_THROW_IF_NOT_FMT(
            params.idType == IdType::Int32 || params.idType == IdType::Int64,
            "idType = %d is not supported: Int32 (%d) and Int64 (%d) are",
            int(params.idType),
            int(IdType::Int32),
            int(IdType::Int64));
}

void requirePointers(const GpuSelectParams& params) {
    if (params.rows > 0) {
        if (params.cols > 0) {
            requireNotNull(params.keys, "keys");
        }
        requireNotNull(params.outKeys, "outKeys");
        requireNotNull(params.outIds, "outIds");
    }
}

/// The plan of as many rows as the batch has, or of fewer, at least one, so
/// that its scratch stays within the budget; sets batch.rows.
SelectPlan planBatch(SelectProblem& batch, size_t budget) {
    SelectPlan plan = planSelection(batch);
    while (plan.workspaceBytes() > budget && batch.rows > 1) {
        batch.rows = (batch.rows + 1) / 2;
        plan = planSelection(batch);
    }
    return plan;
}

/// A call's problem, but for its pointers; of all rows, or as many as a plan
/// takes.
SelectProblem problemOf(
        const GpuSelectParams& params,
        const DeviceTraits& device) {
    SelectProblem problem;
    problem.rows =
            std::min<idx_t>(params.rows, std::numeric_limits<int>::max());
    problem.cols = params.cols;
    problem.k = params.k;
    problem.keyType = params.keyType;
    problem.largest = params.largest;
    problem.sorted = params.sorted;
    problem.algorithm = params.algorithm;
    problem.idType = params.idType;
    problem.idsGiven = params.ids && params.cols > 0;
    problem.rowStride = keyStride(params);
    problem.idStride = idStride(params);
    problem.device = device;
    // One algorithm for all pages and batches: it decides the order of an
    // unsorted result.
    problem.algorithm = chosenAlgorithm(problem);
    return problem;
}

detail::PageLimits limitsOf(const GpuSelectParams& params) {
    detail::PageLimits limits;
    limits.rows = params.rows;
    limits.workPerRow = detail::searchWork(params.cols, 1, params.k);
    return limits;
}

/// Of the plan of a batch.
GpuSelectPlan reportOf(
        const GpuSelectParams& params,
        const SelectPlan& plan,
        const SelectProblem& batch,
        const detail::PagePlan& pages,
        const DeviceSpeed& speed) {
    GpuSelectPlan report;
    report.algorithm = nameOf(plan.algorithm());
    report.pages = pages.pages;
    report.rowsPerPage = pages.rowsPerPage;
    report.rowsPerBatch = batch.rows;
    report.scratchBytes = plan.workspaceBytes();
    report.expectedMs = selectMicroseconds(plan, batch, speed) / 1e3 *
            double(params.rows) / double(std::max<idx_t>(batch.rows, 1));
    report.details = plan.toString();
    return report;
}

/// For a page of the call, whose staging the memory is without.
GpuSelectPlan planCall(
        const detail::GpuContext& context,
        detail::ExpectedMemory memory,
        const GpuSelectParams& params,
        bool hostArrays,
        const DeviceTraits& device,
        const DeviceSpeed& speed) {
    SelectProblem batch = problemOf(params, device);
    const size_t keyBytes = sizeOf(params.keyType);
    const size_t idBytes = sizeOf(params.idType);
    const detail::Place place{hostArrays, hostArrays};
    detail::PagedCall call(context);
    if (params.cols > 0) {
        requireNear(hostArrays, "rowStride", params.rowStride, params.cols);
        call.expectInput(place, keyBytes * keyStride(params));
        if (params.ids) {
            requireNear(hostArrays, "idStride", params.idStride, params.cols);
            call.expectInput(place, idBytes * idStride(params));
        }
    }
    call.expectOutput(place, keyBytes * params.k);
    call.expectOutput(place, idBytes * params.k);
    const detail::PagePlan pages = call.plan(limitsOf(params));
    memory.take(call.stagingBytes());
    batch.rows = pages.rowsPerPage;
    const SelectPlan plan = planBatch(batch, memory.scratchBudget());
    return reportOf(params, plan, batch, pages, speed);
}

void logSelection(
        const GpuSelectParams& params,
        const SelectPlan& plan,
        const SelectProblem& batch,
        const detail::PagePlan& pages,
        int device) {
    const auto shape = [&] {
        return formatMessage(
                "selectK, %lld x %lld, k = %d, %s, %s%s%s, algorithm = %s",
                (long long)params.rows,
                (long long)params.cols,
                params.k,
                faiss_bits::detail::textOf(params.keyType),
                params.largest ? "largest" : "smallest",
                params.sorted ? "" : ", unsorted",
                params.ids ? ", with ids" : "",
                nameOf(params.algorithm));
    };
    faiss_bits::detail::logPlan(shape, [&] {
        return reportOf(params, plan, batch, pages, deviceSpeed(device))
                .toString();
    });
}

/// The selection over rows on the device, in batches whose scratch stays
/// within the budget: as many rows as fit, at least one. `planned` is called
/// with the plan of the first.
template <class Planned>
void runBatches(
        const detail::GpuContext& context,
        const SelectProblem& page,
        const Planned& planned) {
    const size_t budget = detail::scratchBudget(context);
    const size_t keyBytes = sizeOf(page.keyType);
    const size_t idBytes = sizeOf(page.idType);
    const auto at = [](const void* data, idx_t place, size_t bytes) {
        return data ? static_cast<const char*>(data) + size_t(place) * bytes
                    : nullptr;
    };
    SelectProblem batch = page;
    idx_t rows = page.rows;
    for (idx_t first = 0; first < page.rows; first += rows) {
        batch.rows = std::min(rows, page.rows - first);
        const SelectPlan plan = planBatch(batch, budget);
        rows = batch.rows;
        if (first == 0) {
            planned(plan, batch);
        }
        const size_t bytes = plan.workspaceBytes();
        batch.keys = at(page.keys, first * page.rowStride, keyBytes);
        batch.ids = at(page.ids, first * page.idStride, idBytes);
        batch.outKeys =
                const_cast<char*>(at(page.outKeys, first * page.k, keyBytes));
        batch.outIds =
                const_cast<char*>(at(page.outIds, first * page.k, idBytes));
        auto scratch = detail::allocTemporary(context, bytes);
        runSelect(plan, batch, Workspace{scratch.get(), bytes}, context.stream);
    }
}

void runPages(
        const detail::GpuContext& context,
        const GpuSelectParams& params) {
    const size_t keyBytes = sizeOf(params.keyType);
    const size_t idBytes = sizeOf(params.idType);

    detail::PagedCall call(context);
    int keys = -1;
    int ids = -1;
    if (params.cols > 0) {
        keys = call.input("keys", params.keys, keyBytes * keyStride(params));
        requireNear(
                call.isOnHost(keys),
                "rowStride",
                params.rowStride,
                params.cols);
        if (params.ids) {
            ids = call.input("ids", params.ids, idBytes * idStride(params));
            requireNear(
                    call.isOnHost(ids),
                    "idStride",
                    params.idStride,
                    params.cols);
        }
    }
    const int outKeys =
            call.output("outKeys", params.outKeys, keyBytes * params.k);
    const int outIds = call.output("outIds", params.outIds, idBytes * params.k);

    SelectProblem problem = problemOf(params, deviceTraits(context.device));
    call.run(limitsOf(params), [&](const detail::Page& page) {
        problem.rows = page.rows;
        problem.keys = keys < 0 ? nullptr : page.as<const void>(keys);
        problem.ids = ids < 0 ? nullptr : page.as<const void>(ids);
        problem.outKeys = page.as<void>(outKeys);
        problem.outIds = page.as<void>(outIds);
        runBatches(
                context,
                problem,
                [&](const SelectPlan& plan, const SelectProblem& batch) {
                    if (page.first == 0) {
                        logSelection(
                                params,
                                plan,
                                batch,
                                call.plan(),
                                context.device);
                    }
                });
    });
}

} // namespace

std::string GpuSelectPlan::toString() const {
    const std::string text = formatMessage(
            "%s, %lld page%s of %lld rows, %lld rows at a time, scratch %.1f "
            "MB, expected %.3g ms",
            algorithm.c_str(),
            (long long)pages,
            pages == 1 ? "" : "s",
            (long long)rowsPerPage,
            (long long)rowsPerBatch,
            double(scratchBytes) / 1e6,
            expectedMs);
    return details.empty() ? text : text + " (" + details + ")";
}

GpuSelectPlan planSelectK(
        faiss::gpu::GpuResourcesProvider* provider,
        const GpuSelectParams& params,
        bool hostArrays) {
    requireArguments(params);
    if (params.rows == 0) {
        return {};
    }
    return detail::withFaissErrors([&] {
        const detail::OwnedContext owned(provider, params.device);
        faiss::gpu::DeviceScope scope(owned.context.device);
        return planCall(
                owned.context,
                detail::ExpectedMemory(owned.context),
                params,
                hostArrays,
                deviceTraits(owned.context.device),
                deviceSpeed(owned.context.device));
    });
}

GpuSelectPlan planSelectKForH200(
        const GpuSelectParams& params,
        bool hostArrays) {
    // Of StandardGpuResources on a GPU of more than 8 GiB.
    constexpr size_t kTemporaryBytes = size_t(1536) << 20;
    requireArguments(params);
    if (params.rows == 0) {
        return {};
    }
    return detail::withFaissErrors([&] {
        return planCall(
                {},
                detail::ExpectedMemory(kTemporaryBytes),
                params,
                hostArrays,
                {},
                {});
    });
}

void selectK(
        faiss::gpu::GpuResourcesProvider* provider,
        const GpuSelectParams& params) {
    requireArguments(params);
    requirePointers(params);
    if (params.rows == 0) {
        return;
    }
    detail::withFaissErrors([&] {
        const detail::OwnedContext owned(provider, params.device);
        faiss::gpu::DeviceScope scope(owned.context.device);
        runPages(owned.context, params);
    });
}

} // namespace faiss_bits::gpu
