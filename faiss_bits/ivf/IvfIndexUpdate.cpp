// New vectors for ids that are in inverted lists. They are added, which can
// fail and be undone, and then the old ones are removed, which cannot fail any
// more once it has begun.

#include <algorithm>
#include <numeric>
#include <unordered_set>
#include <vector>

#include <faiss/gpu/GpuIndexIVF.h>
#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/FaissAssert.h>
#include <faiss/impl/IDSelector.h>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/ivf/IvfIndexVectors.h"
#include "faiss_bits/ivf/ListFilter.h"
#include "faiss_bits/ivf/ListRemoval.h"
#include "faiss_bits/ivf/ListsBefore.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/ivf/IvfRemoval.h"

namespace faiss_bits::gpu::detail {

namespace {

/// Of an array that lies anywhere.
template <class T>
std::vector<T> toHost(const GpuContext& context, const T* data, size_t count) {
    std::vector<T> values(count);
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            values.data(),
            data,
            count * sizeof(T),
            cudaMemcpyDefault,
            context.stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(context.stream));
    return values;
}

/// That each is an id, and comes once.
void requireDifferent(const std::vector<idx_t>& ids) {
    std::vector<idx_t> order(ids.size());
    std::iota(order.begin(), order.end(), idx_t(0));
    std::stable_sort(order.begin(), order.end(), [&](idx_t a, idx_t b) {
        return ids[a] < ids[b];
    });
    for (size_t i = 0; i < order.size(); ++i) {
        const idx_t id = ids[order[i]];
        FAISS_THROW_IF_NOT_FMT(
                id != -1,
                "ids = -1 (number %lld) is no id of a vector",
                (long long)order[i]);
        FAISS_THROW_IF_NOT_FMT(
                i == 0 || id != ids[order[i - 1]],
                "ids = %lld is there twice (numbers %lld and %lld)",
                (long long)id,
                (long long)order[i - 1],
                (long long)order[i]);
    }
}

/// Throws for a vector that got no list, of those that were to be added.
void throwOfNoList(
        const GpuContext& context,
        const faiss::gpu::GpuIndexIVF& index,
        const std::vector<idx_t>& ids,
        const float* x,
        idx_t numAdded) {
    const auto vectors = toHost(context, x, ids.size() * index.d);
    std::vector<idx_t> lists(ids.size());
    index.quantizer->assign(idx_t(ids.size()), vectors.data(), lists.data());
    for (size_t i = 0; i < ids.size(); ++i) {
        FAISS_THROW_IF_NOT_FMT(
                lists[i] >= 0,
                "x[%zu] (ids = %lld) is nearest to no list",
                i,
                (long long)ids[i]);
    }
    FAISS_THROW_FMT(
            "%lld of n = %zu vectors of x are nearest to a list",
            (long long)numAdded,
            ids.size());
}

/// Of a filter's bits those of the vectors that were there.
void keepOld(
        const GpuContext& context,
        const ListsBefore& before,
        ListFilter& filter) {
    const size_t bytes = before.lengths().size() * sizeof(idx_t);
    auto lengths = allocTemporary(context, bytes);
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            lengths.get(),
            before.lengths().data(),
            bytes,
            cudaMemcpyHostToDevice,
            context.stream));
    runIvfDropBehind(
            filter.lists(),
            static_cast<const idx_t*>(lengths.get()),
            filter.bits(),
            context.stream);
}

/// Throws for an id that two of the vectors had.
void throwOfTwoVectors(
        const ListsBefore& before,
        IdsOfLists& lists,
        const std::vector<idx_t>& ids) {
    const std::unordered_set<idx_t> isWanted(ids.begin(), ids.end());
    std::unordered_set<idx_t> seen;
    lists.forEach([&](idx_t, idx_t list, idx_t place, idx_t id) {
        FAISS_THROW_IF_NOT_FMT(
                !before.had(list, place) || !isWanted.count(id) ||
                        seen.insert(id).second,
                "ids = %lld is the id of more than one vector",
                (long long)id);
    });
    FAISS_THROW_MSG("ids are not those of as many vectors");
}

void update(
        const GpuContext& context,
        faiss::gpu::GpuIndexIVF& index,
        faiss::gpu::IVFBase& base,
        const std::function<IvfIndex()>& view,
        const std::vector<idx_t>& ids,
        const float* x) {
    const ListsBefore before(index);
    const idx_t ntotal = index.ntotal;
    bool hasBegun = false;
    try {
        index.add_with_ids(idx_t(ids.size()), x, ids.data());
        const idx_t numAdded = before.numAdded();
        if (numAdded != idx_t(ids.size())) {
            throwOfNoList(context, index, ids, x, numAdded);
        }
        const faiss::IDSelectorArray selector(ids.size(), ids.data());
        ListFilter filter(context, selector, view().lists, base);
        keepOld(context, before, filter);
        ListRemoval removal(context, filter, base);
        if (removal.numRemoved() != idx_t(ids.size())) {
            throwOfTwoVectors(before, filter.ids(), ids);
        }
        hasBegun = true;
        removal.run();
        index.ntotal = ntotal;
    } catch (...) {
        if (!hasBegun) {
            before.restore(context.stream);
        }
        throw;
    }
}

} // namespace

void updateIvf(
        faiss::gpu::GpuIndexIVF& index,
        faiss::gpu::IVFBase* base,
        const std::function<IvfIndex()>& view,
        idx_t n,
        const idx_t* ids,
        const float* x) {
    requireCount(n, "n");
    const IvfIndex before = view();
    FAISS_THROW_IF_NOT_MSG(before.base && base, "the index is not trained");
    FAISS_THROW_IF_NOT_MSG(
            before.indices != faiss::gpu::INDICES_IVF,
            "config.indicesOptions = INDICES_IVF: the index keeps no ids");
    if (n == 0) {
        return;
    }
    requireNotNull(ids, "ids");
    requireNotNull(x, "x");
    faiss::gpu::DeviceScope scope(before.device);
    const GpuContext context = contextOf(*before.resources, before.device);
    withFaissErrors([&] {
        requireNoCapture(context.stream, "update_vectors");
        const auto onHost = toHost(context, ids, size_t(n));
        requireDifferent(onHost);
        requireInLists(before, context, n, onHost.data(), "ids");
        update(context, index, *base, view, onHost, x);
    });
}

} // namespace faiss_bits::gpu::detail
