// Vectors of GpuIndexBitsIVFFlat by their ids: reading and removing them.

#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/common/PagedCall.h"
#include "faiss_bits/ivf/GpuIndexBitsIVFFlat.h"
#include "faiss_bits/ivf/IdsOfLists.h"
#include "faiss_bits/ivf/ListRemoval.h"
#include "faiss_bits/ivf/ListStorage.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/ivf/IvfFind.h"

namespace faiss_bits::gpu {

using detail::allocTemporary;
using detail::GpuContext;
using detail::IdsOfLists;
using detail::Page;
using detail::PagedCall;
using detail::PageLimits;
using detail::requireNotNull;
using detail::withFaissErrors;
using faiss::gpu::DeviceScope;

namespace {

/// Ids that are looked for at a time: 48 bytes of scratch each at most.
constexpr idx_t kKeysAtOnce = idx_t(1) << 20;

} // namespace

void GpuIndexBitsIVFFlat::reconstruct(idx_t key, float* out) const {
    take_(1, nullptr, key, out, "key");
}

void GpuIndexBitsIVFFlat::reconstruct_n(idx_t i0, idx_t n, float* out) const {
    take_(n, nullptr, i0, out, "i0 + number");
}

void GpuIndexBitsIVFFlat::reconstruct_batch(
        idx_t n,
        const idx_t* keys,
        float* out) const {
    if (n > 0) {
        requireNotNull(keys, "keys");
    }
    take_(n, keys, 0, out, "keys");
}

void GpuIndexBitsIVFFlat::take_(
        idx_t n,
        const idx_t* keys,
        idx_t first,
        float* out,
        const char* name) const {
    FAISS_THROW_IF_NOT_FMT(n >= 0, "n = %lld is negative", (long long)n);
    FAISS_THROW_IF_NOT_MSG(is_trained && index_, "the index is not trained");
    if (n == 0) {
        return;
    }
    requireNotNull(out, "out");
    DeviceScope scope(config_.device);
    const GpuContext context = detail::contextOf(*resources_, config_.device);
    withFaissErrors([&] {
        FAISS_THROW_IF_NOT_MSG(
                !detail::isCaptured(context.stream),
                "vectors are looked for by their ids, which waits for the "
                "device: a capture of its stream forbids that");
        IdsOfLists ids(context, lists_(), *baseIndex_);
        auto memory = allocTemporary(context, sizeof(uint64_t));
        auto* missing = static_cast<uint64_t*>(memory.get());
        BITS_CUDA_CHECK(cudaMemsetAsync(
                missing, 0xFF, sizeof(uint64_t), context.stream));
        PagedCall call(context);
        const int keyRows = keys ? call.input("keys", keys, sizeof(idx_t)) : -1;
        const int rows = call.output("out", out, sizeof(float) * d);
        PageLimits limits;
        limits.rows = n;
        limits.pageBytes = minPagedSize_;
        call.run(limits, [&](const Page& page) {
            for (idx_t at = 0; at < page.rows; at += kKeysAtOnce) {
                IvfKeys some;
                some.keys = keys ? page.as<const idx_t>(keyRows) + at : nullptr;
                some.first = first + page.first + at;
                some.count = std::min(kKeysAtOnce, page.rows - at);
                const size_t bytes = ivfFindWorkspaceBytes(some.count);
                auto scratch = allocTemporary(context, bytes);
                const Workspace workspace{scratch.get(), bytes};
                runIvfBeginFind(some, workspace, context.stream);
                ids.forSlots([&](const IvfSlots& slots) {
                    runIvfFind(slots, some, workspace, context.stream);
                });
                runIvfTakeFound(
                        ids.lists(),
                        some,
                        workspace,
                        page.first + at,
                        missing,
                        page.as<float>(rows) + at * d,
                        context.stream);
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
            BITS_CUDA_CHECK(cudaMemcpy(
                    &id, keys + number, sizeof(id), cudaMemcpyDefault));
        }
        FAISS_THROW_FMT(
                "%s = %lld (number %llu of %lld) is in no list",
                name,
                (long long)id,
                (unsigned long long)number,
                (long long)n);
    });
}

size_t GpuIndexBitsIVFFlat::remove_ids(const faiss::IDSelector& sel) {
    if (ntotal == 0 || !index_) {
        return 0;
    }
    DeviceScope scope(config_.device);
    const GpuContext context = detail::contextOf(*resources_, config_.device);
    idx_t removed = 0;
    withFaissErrors([&] {
        FAISS_THROW_IF_NOT_MSG(
                !detail::isCaptured(context.stream),
                "remove_ids waits for the device, which a capture of its "
                "stream forbids");
        removed = detail::removeFromLists(context, sel, lists_(), *baseIndex_);
    });
    ntotal -= removed;
    return size_t(removed);
}

} // namespace faiss_bits::gpu
