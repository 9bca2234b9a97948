#include "faiss_bits/ivf/IdsOfLists.h"

#include "faiss_bits/ivf/ListStorage.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

IdsOfLists::IdsOfLists(
        const GpuContext& context,
        const IvfLists& lists,
        const faiss::gpu::IVFBase& index)
        : context_(context),
          index_(index),
          lists_(lists),
          onHost_(hostIdsOf(index)) {
    lists_.wordsOfList = ivfWordsOfList(lists, longestOf(index));
    if (lists_.wordsOfList == 0) {
        firstWords_ = allocTemporary(
                context, (size_t(lists.numLists) + 1) * sizeof(uint32_t));
        auto* firstWords = static_cast<uint32_t*>(firstWords_.get());
        runIvfFirstWords(lists, firstWords, context.stream);
        lists_.firstWords = firstWords;
    }
}

IvfSlots IdsOfLists::allSlots() const {
    IvfSlots slots;
    slots.lists = lists_;
    slots.numWords = numWords();
    return slots;
}

const std::vector<idx_t>& IdsOfLists::begins_() {
    if (firstOfLists_.empty()) {
        lengths_ = lengthsOf(index_);
        firstOfLists_.resize(lengths_.size() + 1);
        for (size_t l = 0; l < lengths_.size(); ++l) {
            const idx_t needed = (lengths_[l] + kIdsOfWord - 1) / kIdsOfWord;
            firstOfLists_[l + 1] = firstOfLists_[l] +
                    (lists_.wordsOfList > 0 ? idx_t(lists_.wordsOfList)
                                            : needed);
        }
    }
    return firstOfLists_;
}

idx_t IdsOfLists::idOf_(idx_t list, idx_t place) const {
    return onHost_ ? (*onHost_)[list][place] : list << 32 | place;
}

void IdsOfLists::send_(const IvfSlots& slots, void* staged) {
    sent_.assign(size_t(slots.numWords) * kIdsOfWord, 0);
    forPlaces_(slots, [&](idx_t number, idx_t list, idx_t place) {
        sent_[number - slots.firstWord * kIdsOfWord] = idOf_(list, place);
    });
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            staged,
            sent_.data(),
            sent_.size() * sizeof(idx_t),
            cudaMemcpyHostToDevice,
            context_.stream));
}

void IdsOfLists::bring_(const IvfSlots& slots, idx_t* staged, idx_t* ids) {
    runIvfGatherIds(slots, staged, context_.stream);
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            ids,
            staged,
            size_t(slots.numWords) * kIdsOfWord * sizeof(idx_t),
            cudaMemcpyDeviceToHost,
            context_.stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(context_.stream));
}

} // namespace faiss_bits::gpu::detail
