#include "faiss_bits/select/GpuBitsSelect.h"

#include <algorithm>
#include <limits>
#include <optional>

#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/GpuStaging.h"
#include "kernels/select/Select.h"

namespace faiss_bits::gpu {

using detail::requireNotNull;
using detail::StagedInput;
using detail::StagedOutput;

namespace {

constexpr size_t kNoPageLimit = std::numeric_limits<size_t>::max();

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

void runPages(
        const detail::GpuContext& context,
        const GpuSelectParams& params) {
    const size_t keyBytes = sizeOf(params.keyType);
    const size_t idBytes = sizeOf(params.idType);

    std::optional<StagedInput> keys;
    std::optional<StagedInput> ids;
    if (params.cols > 0) {
        keys.emplace(context, "keys", params.keys, keyBytes * params.cols);
        if (params.ids) {
            ids.emplace(context, "ids", params.ids, idBytes * params.cols);
        }
    }
    StagedOutput outKeys(
            context, "outKeys", params.outKeys, keyBytes * params.k);
    StagedOutput outIds(context, "outIds", params.outIds, idBytes * params.k);

    const idx_t page = detail::rowsPerPage(
            context,
            params.rows,
            (keys ? keys->stagedRowBytes() : 0) +
                    (ids ? ids->stagedRowBytes() : 0) +
                    outKeys.stagedRowBytes() + outIds.stagedRowBytes(),
            kNoPageLimit);
    if (keys) {
        keys->allocate(page);
    }
    if (ids) {
        ids->allocate(page);
    }
    outKeys.allocate(page);
    outIds.allocate(page);

    SelectProblem problem;
    problem.cols = params.cols;
    problem.k = params.k;
    problem.keyType = params.keyType;
    problem.largest = params.largest;
    problem.sorted = params.sorted;
    problem.algorithm = params.algorithm;
    problem.idType = params.idType;
    problem.device = deviceTraits(context.device);
    for (idx_t first = 0; first < params.rows; first += page) {
        problem.rows = std::min(page, params.rows - first);
        problem.keys = keys ? keys->page(first, problem.rows) : nullptr;
        problem.ids = ids ? ids->page(first, problem.rows) : nullptr;
        problem.outKeys = outKeys.page(first);
        problem.outIds = outIds.page(first);
        const SelectPlan plan = planSelection(problem);
        const size_t bytes = plan.workspaceBytes();
        auto scratch = detail::allocTemporary(context, bytes);
        runSelect(
                plan, problem, Workspace{scratch.get(), bytes}, context.stream);
        outKeys.finish(first, problem.rows);
        outIds.finish(first, problem.rows);
    }
    if ((keys && keys->readsAfterReturn()) ||
        (ids && ids->readsAfterReturn()) || outKeys.isOnHost() ||
        outIds.isOnHost()) {
        detail::waitFor(context.stream);
    }
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
