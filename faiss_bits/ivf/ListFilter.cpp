#include "faiss_bits/ivf/ListFilter.h"

#include <algorithm>

#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/flat/DeviceSelector.h"
#include "faiss_bits/ivf/ListStorage.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/knn/filter/FilterBits.h"

namespace faiss_bits::gpu::detail {

namespace {

/// Sent to the device at a time: ids, of which the table takes 8 to 16 MiB a
/// MiB; bytes of a bitmap; words of vectors, 32 ids each.
constexpr idx_t kIdsAtOnce = idx_t(1) << 22;
constexpr idx_t kBytesAtOnce = idx_t(1) << 25;
constexpr idx_t kWordsAtOnce = idx_t(1) << 16;
constexpr idx_t kWord = 32;

class ListEvaluation {
   public:
    ListEvaluation(
            const GpuContext& context,
            const IvfLists& lists,
            const faiss::gpu::IVFBase& index)
            : context_(context),
              lists_(lists),
              index_(index),
              isCaptured_(isCaptured(context.stream)),
              idsOnHost_(hostIdsOf(index) != nullptr) {}

    void write(const faiss::IDSelector* selector, uint32_t* bits) {
        if (auto* one = as<DeviceSelector>(selector)) {
            return writePrepared(*one, bits);
        }
        if (auto* one = as<faiss::IDSelectorRange>(selector)) {
            return forIds([&](const IvfSlots& slots) {
                runIvfRangeBits(
                        slots, one->imin, one->imax, bits, context_.stream);
            });
        }
        if (as<faiss::IDSelectorAll>(selector)) {
            return runIvfAllBits(allSlots(), true, bits, context_.stream);
        }
        if (auto* one = as<faiss::IDSelectorArray>(selector)) {
            if (one->n > 0) {
                requireNotNull(one->ids, "ids of an IDSelectorArray");
            }
            return writeIds(one->ids, idx_t(one->n), bits);
        }
        if (auto* one = as<faiss::IDSelectorBatch>(selector)) {
            const std::vector<idx_t> ids(one->set.begin(), one->set.end());
            return writeIds(ids.data(), idx_t(ids.size()), bits);
        }
        if (auto* one = as<faiss::IDSelectorBitmap>(selector)) {
            if (one->n > 0) {
                requireNotNull(one->bitmap, "bitmap of an IDSelectorBitmap");
            }
            return writeBytes(one->bitmap, idx_t(one->n), bits);
        }
        if (auto* one = as<faiss::IDSelectorNot>(selector)) {
            requireNotNull(one->sel, "sel of an IDSelectorNot");
            write(one->sel, bits);
            return runIvfInvertBits(allSlots(), bits, context_.stream);
        }
#if FAISS_BITS_FAISS_HAS_LOGICAL_SELECTORS
        if (auto* one = as<faiss::IDSelectorAnd>(selector)) {
            return writePair(BitOperation::And, *one, "IDSelectorAnd", bits);
        }
        if (auto* one = as<faiss::IDSelectorOr>(selector)) {
            return writePair(BitOperation::Or, *one, "IDSelectorOr", bits);
        }
        if (auto* one = as<faiss::IDSelectorXOr>(selector)) {
            return writePair(BitOperation::Xor, *one, "IDSelectorXOr", bits);
        }
#endif
        writeMembers(*selector, bits);
    }

    /// Until no host memory is read any more.
    void finish() {
        if (readsOn_) {
            BITS_CUDA_CHECK(cudaStreamSynchronize(context_.stream));
        }
    }

   private:
    template <class Selector>
    static const Selector* as(const faiss::IDSelector* selector) {
        return dynamic_cast<const Selector*>(selector);
    }

    idx_t numWords() const {
        return ivfFilterWords(lists_);
    }

    IvfSlots allSlots() const {
        IvfSlots slots;
        slots.lists = lists_;
        slots.numWords = numWords();
        return slots;
    }

    void requireNoCapture(const char* what) const {
        FAISS_THROW_IF_NOT_FMT(
                !isCaptured_,
                "params->sel: %s on the host cannot be read while the stream "
                "is being captured; a DeviceSelector, a range or ids on the "
                "device can",
                what);
    }

    void copy(void* to, const void* from, size_t bytes) {
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                to, from, bytes, cudaMemcpyDefault, context_.stream));
    }

    const ListsOnHost& onHost() {
        if (!onHost_) {
            onHost_ = std::make_unique<ListsOnHost>(index_, lists_.wordsOfList);
        }
        return *onHost_;
    }

    /// body(vectors whose ids the device can read), until those were all.
    template <class Body>
    void forIds(const Body& body) {
        if (!idsOnHost_) {
            return body(allSlots());
        }
        requireNoCapture("ids of INDICES_CPU");
        const idx_t atOnce = std::min(numWords(), kWordsAtOnce);
        auto staged = allocTemporary(
                context_, size_t(atOnce) * kWord * sizeof(idx_t));
        std::vector<idx_t> ids;
        IvfSlots slots = allSlots();
        slots.givenIds = static_cast<const idx_t*>(staged.get());
        for (idx_t first = 0; first < numWords(); first += atOnce) {
            slots.firstWord = first;
            slots.numWords = std::min(atOnce, numWords() - first);
            ids.assign(size_t(slots.numWords) * kWord, 0);
            forPlaces(first, slots.numWords, [&](idx_t i, idx_t l, idx_t v) {
                ids[i] = onHost().idOf(l, v);
            });
            copy(staged.get(), ids.data(), ids.size() * sizeof(idx_t));
            body(slots);
        }
    }

    /// body(number, list, place) of the vectors of some words, numbered from
    /// the first word on.
    template <class Body>
    void forPlaces(idx_t first, idx_t count, const Body& body) {
        const ListsOnHost& lists = onHost();
        const auto& begins = lists.firstWords;
        idx_t l = std::upper_bound(begins.begin(), begins.end(), first) -
                begins.begin() - 1;
        for (; l < idx_t(lists.lengths.size()) && begins[l] < first + count;
             ++l) {
            const idx_t from = std::max(first - begins[l], idx_t(0)) * kWord;
            const idx_t end = std::min(
                    (first + count - begins[l]) * kWord, lists.lengths[l]);
            for (idx_t v = from; v < end; ++v) {
                body((begins[l] - first) * kWord + v, l, v);
            }
        }
    }

    void writePrepared(const DeviceSelector& prepared, uint32_t* bits) {
        FAISS_THROW_IF_NOT_FMT(
                prepared.device() == context_.device,
                "a DeviceSelector lies on device = %d, but the index on %d",
                prepared.device(),
                context_.device);
        forIds([&](const IvfSlots& slots) {
            runIvfByteBits(
                    slots,
                    reinterpret_cast<const uint8_t*>(prepared.bits()),
                    0,
                    (prepared.numVectors() + 7) / 8,
                    false,
                    bits,
                    context_.stream);
        });
    }

    Place placeOfArray(const char* name, const void* data) {
        const Place place = placeOf(context_, name, data);
        if (place.onHost) {
            requireNoCapture(name);
            readsOn_ = readsOn_ || !place.pageable;
        }
        return place;
    }

    void writeIds(const idx_t* ids, idx_t numIds, uint32_t* bits) {
        if (numIds == 0) {
            return runIvfAllBits(allSlots(), false, bits, context_.stream);
        }
        const bool onHost = placeOfArray("ids of a selector", ids).onHost;
        const idx_t atOnce = std::min(numIds, kIdsAtOnce);
        auto staged = allocTemporary(
                context_, onHost ? size_t(atOnce) * sizeof(idx_t) : 1);
        const size_t bytes = ivfIdBitsWorkspaceBytes(atOnce);
        auto table = allocTemporary(context_, bytes);
        for (idx_t at = 0; at < numIds; at += atOnce) {
            const idx_t count = std::min(atOnce, numIds - at);
            const idx_t* some = ids + at;
            if (onHost) {
                copy(staged.get(), some, size_t(count) * sizeof(idx_t));
                some = static_cast<const idx_t*>(staged.get());
            }
            forIds([&](const IvfSlots& slots) {
                runIvfIdBits(
                        slots,
                        some,
                        count,
                        at > 0,
                        Workspace{table.get(), bytes},
                        bits,
                        context_.stream);
            });
        }
    }

    void writeBytes(const uint8_t* bytes, idx_t numBytes, uint32_t* bits) {
        if (numBytes == 0) {
            return runIvfAllBits(allSlots(), false, bits, context_.stream);
        }
        const bool onHost =
                placeOfArray("bitmap of an IDSelectorBitmap", bytes).onHost;
        const idx_t atOnce =
                onHost ? std::min(numBytes, kBytesAtOnce) : numBytes;
        auto staged = allocTemporary(context_, onHost ? size_t(atOnce) : 1);
        for (idx_t at = 0; at < numBytes; at += atOnce) {
            const idx_t count = std::min(atOnce, numBytes - at);
            const uint8_t* some = bytes + at;
            if (onHost) {
                copy(staged.get(), some, size_t(count));
                some = static_cast<const uint8_t*>(staged.get());
            }
            forIds([&](const IvfSlots& slots) {
                runIvfByteBits(
                        slots, some, at, count, at > 0, bits, context_.stream);
            });
        }
    }

#if FAISS_BITS_FAISS_HAS_LOGICAL_SELECTORS
    template <class Selector>
    void writePair(
            BitOperation operation,
            const Selector& selector,
            const char* name,
            uint32_t* bits) {
        FAISS_THROW_IF_NOT_FMT(
                selector.lhs && selector.rhs,
                "an operand of an %s = nullptr",
                name);
        write(selector.lhs, bits);
        auto memory =
                allocTemporary(context_, size_t(numWords()) * sizeof(uint32_t));
        auto* other = static_cast<uint32_t*>(memory.get());
        write(selector.rhs, other);
        runCombineBits(
                operation, bits, other, numWords() * kWord, context_.stream);
    }
#endif

    /// Asks the selector for each id.
    void writeMembers(const faiss::IDSelector& selector, uint32_t* bits) {
        requireNoCapture("a selector of the caller's own");
        const bool isFromDevice =
                !idsOnHost_ && lists_.idKind != ListIds::Places;
        const idx_t atOnce = std::min(numWords(), kWordsAtOnce);
        const size_t idBytes = size_t(atOnce) * kWord * sizeof(idx_t);
        auto staged = allocTemporary(context_, isFromDevice ? idBytes : 1);
        std::vector<idx_t> ids(isFromDevice ? size_t(atOnce) * kWord : 0);
        std::vector<uint32_t> words(static_cast<size_t>(numWords()));
        for (idx_t first = 0; first < numWords(); first += atOnce) {
            IvfSlots slots = allSlots();
            slots.firstWord = first;
            slots.numWords = std::min(atOnce, numWords() - first);
            if (isFromDevice) {
                auto* gathered = static_cast<idx_t*>(staged.get());
                runIvfGatherIds(slots, gathered, context_.stream);
                copy(ids.data(),
                     gathered,
                     size_t(slots.numWords) * kWord * sizeof(idx_t));
                BITS_CUDA_CHECK(cudaStreamSynchronize(context_.stream));
            }
            forPlaces(first, slots.numWords, [&](idx_t i, idx_t l, idx_t v) {
                const idx_t id = isFromDevice ? ids[i] : onHost().idOf(l, v);
                const uint32_t is = selector.is_member(id);
                words[first + i / kWord] |= is << (i % kWord);
            });
        }
        copy(bits, words.data(), words.size() * sizeof(uint32_t));
    }

    const GpuContext& context_;
    const IvfLists& lists_;
    const faiss::gpu::IVFBase& index_;
    const bool isCaptured_;
    const bool idsOnHost_;
    std::unique_ptr<ListsOnHost> onHost_;
    bool readsOn_ = false;
};

} // namespace

ListsOnHost::ListsOnHost(const faiss::gpu::IVFBase& index, uint32_t wordsOfList)
        : lengths(lengthsOf(index)),
          firstWords(lengths.size() + 1),
          ids(hostIdsOf(index)) {
    for (size_t l = 0; l < lengths.size(); ++l) {
        const idx_t needed = (lengths[l] + kWord - 1) / kWord;
        firstWords[l + 1] =
                firstWords[l] + (wordsOfList > 0 ? wordsOfList : needed);
    }
}

ListFilter::ListFilter(
        const GpuContext& context,
        const faiss::IDSelector& selector,
        const IvfLists& lists,
        const faiss::gpu::IVFBase& index)
        : lists_(lists) {
    lists_.wordsOfList = ivfWordsOfList(lists, longestOf(index));
    if (lists_.wordsOfList == 0) {
        firstWords_ = allocTemporary(
                context, (size_t(lists.numLists) + 1) * sizeof(uint32_t));
        auto* firstWords = static_cast<uint32_t*>(firstWords_.get());
        runIvfFirstWords(lists, firstWords, context.stream);
        lists_.firstWords = firstWords;
    }
    bits_ = allocTemporary(
            context, size_t(ivfFilterWords(lists_)) * sizeof(uint32_t));
    auto* bits = static_cast<uint32_t*>(bits_.get());
    ListEvaluation evaluation(context, lists_, index);
    evaluation.write(&selector, bits);
    evaluation.finish();
    lists_.selectedBits = bits;
}

} // namespace faiss_bits::gpu::detail
