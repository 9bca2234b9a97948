#include "faiss_bits/ivf/ListRemoval.h"

#include <utility>

#include <faiss/impl/FaissAssert.h>

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

ListRemoval::ListRemoval(
        const GpuContext& context,
        ListFilter& filter,
        faiss::gpu::IVFBase& index)
        : context_(context), lists_(filter.lists()), index_(index) {
    FAISS_THROW_IF_NOT_FMT(
            lists_.numVectors < idx_t(1) << 32,
            "ntotal = %lld: vectors are removed from indexes of fewer than "
            "2^32",
            (long long)lists_.numVectors);
    WorkspaceSlices measured;
    IvfSelectedCount(lists_, measured);
    countBytes_ = measured.used();
    counts_ = allocTemporary(context, countBytes_);
    const IvfSelectedCount count = count_();
    runIvfCountSelected(lists_, count, context.stream);
    const auto before =
            toHost(context, count.beforeLists, size_t(lists_.numLists) + 1);
    numRemoved_ = before.back();
    if (numRemoved_ == 0) {
        return;
    }
    lengths_ = lengthsOf(index);
    for (size_t l = 0; l < lengths_.size(); ++l) {
        lengths_[l] -= idx_t(before[l + 1]) - idx_t(before[l]);
    }
    if (filter.ids().areOnHost()) {
        hostIds_ = idsThatStay(context, filter);
    }
    scratchBytes_ = ivfRemovalWorkspaceBytes(numRemoved_);
    scratch_ = allocTemporary(context, scratchBytes_);
}

IvfSelectedCount ListRemoval::count_() {
    WorkspaceSlices slices(Workspace{counts_.get(), countBytes_});
    return IvfSelectedCount(lists_, slices);
}

void ListRemoval::run() {
    if (numRemoved_ == 0) {
        return;
    }
    runIvfRemoval(
            lists_,
            count_(),
            Workspace{scratch_.get(), scratchBytes_},
            context_.stream);
    shrinkLists(index_, lists_, lengths_, std::move(hostIds_), context_.stream);
}

} // namespace faiss_bits::gpu::detail
