#pragma once

#include <algorithm>
#include <vector>

#include "faiss_bits/common/GpuStaging.h"
#include "kernels/ivf/IvfFilterBits.h"

namespace faiss::gpu {
class IVFBase;
} // namespace faiss::gpu

/// The ids of the vectors of inverted lists, wherever an index keeps them. Not
/// part of the API.
namespace faiss_bits::gpu::detail {

/// Words of 32 vectors whose ids are sent to the device or to the host at a
/// time: 16 MiB.
constexpr idx_t kWordsAtOnce = idx_t(1) << 16;
constexpr idx_t kIdsOfWord = 32;

class IdsOfLists {
   public:
    /// Takes temporary memory, 4 bytes a list, where lists are uneven.
    IdsOfLists(
            const GpuContext& context,
            const IvfLists& lists,
            const faiss::gpu::IVFBase& index);

    IdsOfLists(const IdsOfLists&) = delete;
    IdsOfLists& operator=(const IdsOfLists&) = delete;

    /// With firstWords or wordsOfList.
    const IvfLists& lists() const {
        return lists_;
    }

    idx_t numWords() const {
        return ivfFilterWords(lists_);
    }

    /// All vectors, by ids that the lists have; for what reads no ids too.
    IvfSlots allSlots() const;

    /// INDICES_CPU.
    bool areOnHost() const {
        return onHost_ != nullptr;
    }

    /// body(slots), of vectors whose ids the device can read, until those were
    /// all. Ids that are on the host are sent there.
    template <class Body>
    void forSlots(const Body& body) {
        if (!areOnHost()) {
            return body(allSlots());
        }
        const idx_t atOnce = std::min(numWords(), kWordsAtOnce);
        auto staged = allocTemporary(
                context_, size_t(atOnce) * kIdsOfWord * sizeof(idx_t));
        IvfSlots slots = allSlots();
        slots.givenIds = static_cast<const idx_t*>(staged.get());
        for (idx_t first = 0; first < numWords(); first += atOnce) {
            slots.firstWord = first;
            slots.numWords = std::min(atOnce, numWords() - first);
            send_(slots, staged.get());
            body(slots);
        }
    }

    /// body(number, list, place, id) of all vectors, on the host: number is 32
    /// times the word, and the place in it. Ids that are on the device are
    /// brought here, and the stream awaited.
    template <class Body>
    void forEach(const Body& body) {
        const idx_t atOnce = std::min(numWords(), kWordsAtOnce);
        const bool isFromDevice =
                !areOnHost() && lists_.idKind != ListIds::Places;
        auto staged = allocTemporary(
                context_,
                isFromDevice ? size_t(atOnce) * kIdsOfWord * sizeof(idx_t) : 1);
        std::vector<idx_t> ids;
        for (idx_t first = 0; first < numWords(); first += atOnce) {
            IvfSlots slots = allSlots();
            slots.firstWord = first;
            slots.numWords = std::min(atOnce, numWords() - first);
            if (isFromDevice) {
                ids.resize(size_t(slots.numWords) * kIdsOfWord);
                bring_(slots, static_cast<idx_t*>(staged.get()), ids.data());
            }
            forPlaces_(slots, [&](idx_t number, idx_t list, idx_t place) {
                const idx_t id = isFromDevice ? ids[number - first * kIdsOfWord]
                                              : idOf_(list, place);
                body(number, list, place, id);
            });
        }
    }

   private:
    /// body(number, list, place) of the vectors of some words.
    template <class Body>
    void forPlaces_(const IvfSlots& slots, const Body& body) {
        const idx_t first = slots.firstWord;
        const idx_t end = first + slots.numWords;
        const auto& begins = begins_();
        idx_t l = std::upper_bound(begins.begin(), begins.end(), first) -
                begins.begin() - 1;
        for (; l < idx_t(lengths_.size()) && begins[l] < end; ++l) {
            const idx_t from = std::max(first - begins[l], idx_t(0));
            const idx_t until =
                    std::min((end - begins[l]) * kIdsOfWord, lengths_[l]);
            for (idx_t v = from * kIdsOfWord; v < until; ++v) {
                body(begins[l] * kIdsOfWord + v, l, v);
            }
        }
    }

    /// The first words of the lists, and of none behind them.
    const std::vector<idx_t>& begins_();
    idx_t idOf_(idx_t list, idx_t place) const;
    void send_(const IvfSlots& slots, void* staged);
    void bring_(const IvfSlots& slots, idx_t* staged, idx_t* ids);

    const GpuContext context_;
    const faiss::gpu::IVFBase& index_;
    IvfLists lists_;
    const std::vector<std::vector<idx_t>>* onHost_;
    std::vector<idx_t> lengths_;
    std::vector<idx_t> firstOfLists_;
    std::vector<idx_t> sent_;
    TemporaryMemory firstWords_;
};

} // namespace faiss_bits::gpu::detail
