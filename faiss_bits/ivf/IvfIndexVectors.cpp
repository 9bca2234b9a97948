// Vectors of inverted lists by their ids: reading and removing them.

#include "faiss_bits/ivf/IvfIndexVectors.h"

#include <algorithm>

#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/common/PagedCall.h"
#include "faiss_bits/ivf/IdsOfLists.h"
#include "faiss_bits/ivf/ListFilter.h"
#include "faiss_bits/ivf/ListRemoval.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/ivf/IvfFind.h"

namespace faiss_bits::gpu::detail {

using faiss::gpu::DeviceScope;

namespace {

/// Ids that are looked for at a time: 48 bytes of scratch each at most.
constexpr idx_t kKeysAtOnce = idx_t(1) << 20;

/// Looks for keys [n], or for `first` and on, and throws if one is in no list.
/// Vectors go to out [n, d], if that is not null.
void find(
        const IvfIndex& index,
        const GpuContext& context,
        idx_t n,
        const idx_t* keys,
        idx_t first,
        float* out,
        const char* name) {
    IdsOfLists ids(context, index.lists, *index.base);
    auto memory = allocTemporary(context, sizeof(uint64_t));
    auto* missing = static_cast<uint64_t*>(memory.get());
    BITS_CUDA_CHECK(
            cudaMemsetAsync(missing, 0xFF, sizeof(uint64_t), context.stream));
    PagedCall call(context);
    const int keyRows = keys ? call.input(name, keys, sizeof(idx_t)) : -1;
    const int rows =
            out ? call.output("out", out, sizeof(float) * index.d) : -1;
    PageLimits limits;
    limits.rows = n;
    limits.pageBytes = index.minPagedSize;
    call.run(limits, [&](const Page& page) {
        for (idx_t at = 0; at < page.rows; at += kKeysAtOnce) {
            IvfKeys some;
            some.keys = keys ? page.as<const idx_t>(keyRows) + at : nullptr;
            some.first = first + page.first + at;
            some.count = std::min(kKeysAtOnce, page.rows - at);
            const size_t bytes = ivfFindWorkspaceBytes(ids.lists(), some.count);
            auto scratch = allocTemporary(context, bytes);
            const Workspace workspace{scratch.get(), bytes};
            runIvfBeginFind(some, workspace, context.stream);
            ids.forSlots([&](const IvfSlots& slots) {
                runIvfFind(slots, some, workspace, context.stream);
            });
            runIvfMissing(
                    some, workspace, page.first + at, missing, context.stream);
            if (out) {
                runIvfTakeFound(
                        ids.lists(),
                        some,
                        workspace,
                        page.as<float>(rows) + at * index.d,
                        context.stream);
            }
        }
    });
    uint64_t number = 0;
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            &number,
            missing,
            sizeof(number),
            cudaMemcpyDeviceToHost,
            context.stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(context.stream));
    if (number == ~uint64_t(0)) {
        return;
    }
    idx_t id = first + idx_t(number);
    if (keys) {
        BITS_CUDA_CHECK(
                cudaMemcpy(&id, keys + number, sizeof(id), cudaMemcpyDefault));
    }
    FAISS_THROW_FMT(
            "%s = %lld (number %llu of %lld) is in no list",
            name,
            (long long)id,
            (unsigned long long)number,
            (long long)n);
}

/// The vectors of keys; without them of the ids from `first` on.
void reconstruct(
        const IvfIndex& index,
        idx_t n,
        const idx_t* keys,
        idx_t first,
        float* out,
        const char* name) {
    requireCount(n, "n");
    FAISS_THROW_IF_NOT_MSG(index.base, "the index is not trained");
    if (n == 0) {
        return;
    }
    requireNotNull(out, "out");
    DeviceScope scope(index.device);
    const GpuContext context = contextOf(*index.resources, index.device);
    withFaissErrors([&] {
        requireNoCapture(context.stream, "a look for vectors by their ids");
        find(index, context, n, keys, first, out, name);
    });
}

} // namespace

void reconstructIvf(
        const IvfIndex& index,
        idx_t n,
        idx_t first,
        float* out,
        const char* name) {
    reconstruct(index, n, nullptr, first, out, name);
}

void reconstructBatchIvf(
        const IvfIndex& index,
        idx_t n,
        const idx_t* keys,
        float* out) {
    if (n > 0) {
        requireNotNull(keys, "keys");
    }
    reconstruct(index, n, keys, 0, out, "keys");
}

void searchAndReconstructIvf(
        const IvfIndex& index,
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        float* recons,
        const faiss::SearchParameters* params) {
    if (n > 0) {
        requireNotNull(recons, "recons");
    }
    searchIvf(index, n, x, k, distances, labels, params);
    reconstruct(index, n * k, labels, 0, recons, "labels");
}

void requireInLists(
        const IvfIndex& index,
        const GpuContext& context,
        idx_t n,
        const idx_t* keys,
        const char* name) {
    find(index, context, n, keys, 0, nullptr, name);
}

idx_t removeIvf(
        const IvfIndex& index,
        faiss::gpu::IVFBase* base,
        const faiss::IDSelector& selector) {
    if (index.ntotal == 0 || !base) {
        return 0;
    }
    DeviceScope scope(index.device);
    const GpuContext context = contextOf(*index.resources, index.device);
    idx_t removed = 0;
    withFaissErrors([&] {
        requireNoCapture(context.stream, "remove_ids");
        ListFilter filter(context, selector, index.lists, *base);
        ListRemoval removal(context, filter, *base);
        removal.run();
        removed = removal.numRemoved();
    });
    return removed;
}

} // namespace faiss_bits::gpu::detail
