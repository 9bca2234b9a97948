#include "faiss_bits/ivf/ListFilter.h"

#include <algorithm>

#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/flat/DeviceSelector.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/knn/filter/FilterBits.h"

namespace faiss_bits::gpu::detail {

namespace {

/// Sent to the device at a time: ids, of which the table takes 8 to 16 MiB a
/// MiB; bytes of a bitmap.
constexpr idx_t kIdsAtOnce = idx_t(1) << 22;
constexpr idx_t kBytesAtOnce = idx_t(1) << 25;

template <class Selector>
const Selector* as(const faiss::IDSelector* selector) {
    return dynamic_cast<const Selector*>(selector);
}

void requireDevice(const GpuContext& context, const DeviceSelector& prepared) {
    FAISS_THROW_IF_NOT_FMT(
            prepared.device() == context.device,
            "a DeviceSelector lies on device = %d, but the index on %d",
            prepared.device(),
            context.device);
}

const uint8_t* bytesOf(const DeviceSelector& prepared) {
    return reinterpret_cast<const uint8_t*>(prepared.bits());
}

idx_t numBytesOf(const DeviceSelector& prepared) {
    return (prepared.numVectors() + 7) / 8;
}

class ListEvaluation {
   public:
    ListEvaluation(const GpuContext& context, IdsOfLists& ids)
            : context_(context),
              ids_(ids),
              isCaptured_(isCaptured(context.stream)) {}

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
            return runIvfAllBits(ids_.allSlots(), true, bits, context_.stream);
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
            return runIvfInvertBits(ids_.allSlots(), bits, context_.stream);
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

    /// body(vectors whose ids the device can read), until those were all.
    template <class Body>
    void forIds(const Body& body) {
        if (ids_.areOnHost()) {
            requireNoCapture("ids of INDICES_CPU");
        }
        ids_.forSlots(body);
    }

    void writePrepared(const DeviceSelector& prepared, uint32_t* bits) {
        requireDevice(context_, prepared);
        forIds([&](const IvfSlots& slots) {
            runIvfByteBits(
                    slots,
                    bytesOf(prepared),
                    0,
                    numBytesOf(prepared),
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
            return runIvfAllBits(ids_.allSlots(), false, bits, context_.stream);
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
            return runIvfAllBits(ids_.allSlots(), false, bits, context_.stream);
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
        auto memory = allocTemporary(
                context_, size_t(ids_.numWords()) * sizeof(uint32_t));
        auto* other = static_cast<uint32_t*>(memory.get());
        write(selector.rhs, other);
        runCombineBits(
                operation,
                bits,
                other,
                ids_.numWords() * kIdsOfWord,
                context_.stream);
    }
#endif

    /// Asks the selector for each id.
    void writeMembers(const faiss::IDSelector& selector, uint32_t* bits) {
        requireNoCapture("a selector of the caller's own");
        std::vector<uint32_t> words(static_cast<size_t>(ids_.numWords()));
        ids_.forEach([&](idx_t number, idx_t, idx_t, idx_t id) {
            const uint32_t is = selector.is_member(id);
            words[number / kIdsOfWord] |= is << (number % kIdsOfWord);
        });
        copy(bits, words.data(), words.size() * sizeof(uint32_t));
    }

    const GpuContext& context_;
    IdsOfLists& ids_;
    const bool isCaptured_;
    bool readsOn_ = false;
};

} // namespace

std::optional<ListIdTest> listIdTestOf(
        const GpuContext& context,
        const faiss::IDSelector& selector) {
    ListIdTest test;
    if (auto* one = as<DeviceSelector>(&selector)) {
        requireDevice(context, *one);
        test.kind = ListIdTest::Kind::Bits;
        test.bytes = bytesOf(*one);
        test.numBytes = numBytesOf(*one);
        return test;
    }
    if (auto* one = as<faiss::IDSelectorRange>(&selector)) {
        test.kind = ListIdTest::Kind::Range;
        test.first = one->imin;
        test.end = one->imax;
        return test;
    }
    if (as<faiss::IDSelectorAll>(&selector)) {
        test.kind = ListIdTest::Kind::Range; // all but none
        test.isInverted = true;
        return test;
    }
    if (auto* one = as<faiss::IDSelectorNot>(&selector)) {
        requireNotNull(one->sel, "sel of an IDSelectorNot");
        auto of = listIdTestOf(context, *one->sel);
        if (of) {
            of->isInverted = !of->isInverted;
        }
        return of;
    }
    return {};
}

ListFilter::ListFilter(
        const GpuContext& context,
        const faiss::IDSelector& selector,
        const IvfLists& lists,
        const faiss::gpu::IVFBase& index)
        : ids_(context, lists, index) {
    bits_ = allocTemporary(context, size_t(ids_.numWords()) * sizeof(uint32_t));
    auto* bits = static_cast<uint32_t*>(bits_.get());
    ListEvaluation evaluation(context, ids_);
    evaluation.write(&selector, bits);
    evaluation.finish();
    lists_ = ids_.lists();
    lists_.selectedBits = bits;
}

} // namespace faiss_bits::gpu::detail
