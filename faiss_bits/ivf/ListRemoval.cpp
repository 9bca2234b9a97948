#include "faiss_bits/ivf/ListRemoval.h"

#include <algorithm>
#include <vector>

#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/ivf/ListFilter.h"
#include "faiss_bits/ivf/ListStorage.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/ivf/IvfRemoval.h"

namespace faiss_bits::gpu::detail {

namespace {

template <class T>
std::vector<T> toHost(const GpuContext& context, const T* data, size_t count) {
    std::vector<T> values(count);
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            values.data(),
            data,
            count * sizeof(T),
            cudaMemcpyDeviceToHost,
            context.stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(context.stream));
    return values;
}

/// INDICES_CPU: the ids that stay, of all lists, where their vectors will be.
std::vector<std::vector<idx_t>> idsThatStay(
        const GpuContext& context,
        ListFilter& filter) {
    const auto words =
            toHost(context,
                   filter.lists().selectedBits,
                   size_t(ivfFilterWords(filter.lists())));
    std::vector<std::vector<idx_t>> ids(size_t(filter.lists().numLists));
    std::vector<std::vector<uint8_t>> leave(ids.size());
    filter.ids().forEach([&](idx_t number, idx_t list, idx_t, idx_t id) {
        ids[list].push_back(id);
        leave[list].push_back(
                words[number / kIdsOfWord] >> (number % kIdsOfWord) & 1);
    });
    for (size_t l = 0; l < ids.size(); ++l) {
        size_t at = 0;
        size_t end = ids[l].size();
        while (at < end) {
            if (leave[l][at]) {
                --end;
                ids[l][at] = ids[l][end];
                leave[l][at] = leave[l][end];
            } else {
                ++at;
            }
        }
        ids[l].resize(end);
    }
    return ids;
}

} // namespace

idx_t removeFromLists(
        const GpuContext& context,
        const faiss::IDSelector& selector,
        const IvfLists& lists,
        faiss::gpu::IVFBase& index) {
    FAISS_THROW_IF_NOT_FMT(
            lists.numVectors < idx_t(1) << 32,
            "ntotal = %lld: vectors are removed from indexes of fewer than "
            "2^32",
            (long long)lists.numVectors);
    ListFilter filter(context, selector, lists, index);
    const IvfLists& selected = filter.lists();
    WorkspaceSlices measured;
    IvfSelectedCount(selected, measured);
    auto memory = allocTemporary(context, measured.used());
    WorkspaceSlices slices(Workspace{memory.get(), measured.used()});
    const IvfSelectedCount count(selected, slices);
    runIvfCountSelected(selected, count, context.stream);
    const auto before =
            toHost(context, count.beforeLists, size_t(lists.numLists) + 1);
    const idx_t removed = before.back();
    if (removed == 0) {
        return 0;
    }
    std::vector<idx_t> lengths = lengthsOf(index);
    for (size_t l = 0; l < lengths.size(); ++l) {
        lengths[l] -= idx_t(before[l + 1]) - idx_t(before[l]);
    }
    std::vector<std::vector<idx_t>> hostIds;
    if (filter.ids().areOnHost()) {
        hostIds = idsThatStay(context, filter);
    }
    const size_t bytes = ivfRemovalWorkspaceBytes(removed);
    auto scratch = allocTemporary(context, bytes);
    // From here on nothing throws but what leaves the device unusable.
    runIvfRemoval(
            selected, count, Workspace{scratch.get(), bytes}, context.stream);
    shrinkLists(index, lengths, std::move(hostIds), context.stream);
    return removed;
}

} // namespace faiss_bits::gpu::detail
