#include "faiss_bits/select/GpuBitsSelect.h"

#include <algorithm>
#include <limits>

#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/common/PagedCall.h"
#include "kernels/select/Select.h"

namespace faiss_bits::gpu {

using detail::requireNotNull;

namespace {

void requireArguments(const GpuSelectParams& params) {
    FAISS_THROW_IF_NOT_FMT(
            params.rows >= 0,
            "rows = %lld is negative",
            (long long)params.rows);
    FAISS_THROW_IF_NOT_FMT(
            params.cols >= 0,
            "cols = %lld is negative",
            (long long)params.cols);
    FAISS_THROW_IF_NOT_FMT(params.k >= 1, "k = %d is less than 1", params.k);
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
    if (params.rows > 0) {
        if (params.cols > 0) {
            requireNotNull(params.keys, "keys");
        }
        requireNotNull(params.outKeys, "outKeys");
        requireNotNull(params.outIds, "outIds");
    }
}

/// The selection over rows on the device, in batches whose scratch stays
/// within the budget: as many rows as fit, at least one.
void runBatches(const detail::GpuContext& context, const SelectProblem& page) {
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
        rows = std::min(rows, page.rows - first);
        batch.rows = rows;
        SelectPlan plan = planSelection(batch);
        while (plan.workspaceBytes() > budget && rows > 1) {
            rows = (rows + 1) / 2;
            batch.rows = rows;
            plan = planSelection(batch);
        }
        const size_t bytes = plan.workspaceBytes();
        batch.keys = at(page.keys, first * page.cols, keyBytes);
        batch.ids = at(page.ids, first * page.cols, idBytes);
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
        keys = call.input("keys", params.keys, keyBytes * params.cols);
        if (params.ids) {
            ids = call.input("ids", params.ids, idBytes * params.cols);
        }
    }
    const int outKeys =
            call.output("outKeys", params.outKeys, keyBytes * params.k);
    const int outIds = call.output("outIds", params.outIds, idBytes * params.k);

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
    problem.idsGiven = ids >= 0;
    problem.device = deviceTraits(context.device);
    // One algorithm for all pages and batches: it decides the order of an
    // unsorted result.
    problem.algorithm = chosenAlgorithm(problem);

    detail::PageLimits limits;
    limits.rows = params.rows;
    limits.workPerRow = detail::searchWork(params.cols, 1, params.k);
    call.run(limits, [&](const detail::Page& page) {
        problem.rows = page.rows;
        problem.keys = keys < 0 ? nullptr : page.as<const void>(keys);
        problem.ids = ids < 0 ? nullptr : page.as<const void>(ids);
        problem.outKeys = page.as<void>(outKeys);
        problem.outIds = page.as<void>(outIds);
        runBatches(context, problem);
    });
}

} // namespace

void selectK(
        faiss::gpu::GpuResourcesProvider* provider,
        const GpuSelectParams& params) {
    requireArguments(params);
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
