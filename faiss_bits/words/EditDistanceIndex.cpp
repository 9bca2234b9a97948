#include "faiss_bits/words/EditDistanceIndex.h"

#include <optional>

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/FaissErrors.h"
#include "kernels/words/WordIndex.h"

#ifdef FAISS_BITS_GPU_PART
#include "faiss_bits/words/WordsOnGpu.h"
#endif

namespace faiss_bits {

using words::Method;
using words::WordOptions;
using words::WordRange;

namespace {

words::Utf8Words wordsOf(
        idx_t n,
        const uint8_t* bytes,
        const idx_t* offsets,
        const char* name) {
    words::Utf8Words out;
    out.count = n;
    out.bytes = reinterpret_cast<const char*>(bytes);
    out.offsets = offsets;
    out.name = name;
    return out;
}

WordOptions optionsOf(const std::string& method) {
    WordOptions options;
    options.method = words::methodOf(method);
    options.interrupt = [] {
        // For calls from several threads at once, where check() is not.
        if (faiss::InterruptCallback::is_interrupted()) {
            FAISS_THROW_MSG("computation interrupted");
        }
    };
    return options;
}

} // namespace

struct EditDistanceIndex::Parts {
    explicit Parts(const words::Utf8Words& words) : index(words) {}

    words::WordIndex index;
    bool mustBeGpu = false;
#ifdef FAISS_BITS_GPU_PART
    std::optional<detail::WordsOnGpu> gpu;
#endif
};

EditDistanceIndex::EditDistanceIndex(
        idx_t n,
        const uint8_t* words,
        const idx_t* offsets,
        const std::string& device) {
    FAISS_THROW_IF_NOT_FMT(
            device == "auto" || device == "cpu" || device == "gpu",
            "device = '%s' is none of auto, cpu, gpu",
            device.c_str());
    parts_ = detail::withFaissErrors([&] {
        return std::make_unique<Parts>(wordsOf(n, words, offsets, "words"));
    });
    parts_->mustBeGpu = device == "gpu";
    if (device == "cpu") {
        return;
    }
#ifdef FAISS_BITS_GPU_PART
    const std::string problem = detail::WordsOnGpu::problem();
    FAISS_THROW_IF_NOT_FMT(
            !parts_->mustBeGpu || problem.empty(),
            "device = 'gpu': %s",
            problem.c_str());
    if (problem.empty()) {
        detail::withFaissErrors([&] { parts_->gpu.emplace(parts_->index); });
    }
#else
    FAISS_THROW_IF_NOT_MSG(
            !parts_->mustBeGpu,
            "device = 'gpu': this build of faiss_bits holds the CPU part only");
#endif
}

EditDistanceIndex::~EditDistanceIndex() = default;

idx_t EditDistanceIndex::ntotal() const {
    return parts_->index.dictionary().size();
}

bool EditDistanceIndex::onGpu() const {
#ifdef FAISS_BITS_GPU_PART
    return parts_->gpu.has_value();
#else
    return false;
#endif
}

int EditDistanceIndex::getDevice() const {
#ifdef FAISS_BITS_GPU_PART
    return parts_->gpu ? parts_->gpu->device() : -1;
#else
    return -1;
#endif
}

WordRange EditDistanceIndex::rangeSearch(
        idx_t n,
        const uint8_t* queries,
        const idx_t* offsets,
        idx_t maxDistance,
        const std::string& method) const {
    return detail::withFaissErrors([&] {
        const WordOptions options = optionsOf(method);
        const auto texts = wordsOf(n, queries, offsets, "queries");
#ifdef FAISS_BITS_GPU_PART
        if (parts_->gpu) {
            const uint32_t most = words::requireMaxDistance(maxDistance);
            const auto letters = parts_->index.dictionary().encode(texts);
            if (parts_->gpu->takes(letters, most, options, parts_->mustBeGpu)) {
                return parts_->gpu->range(letters, most, options);
            }
        }
#endif
        return parts_->index.range(texts, maxDistance, options);
    });
}

void EditDistanceIndex::rangeSearchOnDevice(
        [[maybe_unused]] idx_t n,
        [[maybe_unused]] const uint8_t* queries,
        [[maybe_unused]] const idx_t* offsets,
        [[maybe_unused]] idx_t maxDistance,
        DeviceWordRange& result,
        [[maybe_unused]] const std::string& method) const {
    result.lims.clear();
    result.parts.clear();
    FAISS_THROW_IF_NOT_MSG(
            onGpu(),
            "results on the device are wanted, but this index is on the CPU");
#ifdef FAISS_BITS_GPU_PART
    detail::withFaissErrors([&] {
        const WordOptions options = optionsOf(method);
        const uint32_t most = words::requireMaxDistance(maxDistance);
        const auto letters = parts_->index.dictionary().encode(
                wordsOf(n, queries, offsets, "queries"));
        if (parts_->gpu->takes(letters, most, options, parts_->mustBeGpu)) {
            parts_->gpu->rangeOnDevice(letters, most, options, result);
        } else {
            parts_->gpu->copyOf(
                    parts_->index.range(letters, most, options), result);
        }
    });
#endif
}

void EditDistanceIndex::search(
        idx_t n,
        const uint8_t* queries,
        const idx_t* offsets,
        idx_t k,
        int32_t* distances,
        idx_t* labels,
        const std::string& method) const {
    detail::withFaissErrors([&] {
        const WordOptions options = optionsOf(method);
        const auto texts = wordsOf(n, queries, offsets, "queries");
        words::RangeOf rangeOf;
#ifdef FAISS_BITS_GPU_PART
        if (parts_->gpu) {
            // Of what is farther the GPU has no trie.
            rangeOf = [&](const words::LetterWords& letters, uint32_t most) {
                return parts_->gpu->takes(
                               letters, most, options, parts_->mustBeGpu)
                        ? parts_->gpu->range(letters, most, options)
                        : parts_->index.range(letters, most, options);
            };
        }
#endif
        parts_->index.knn(texts, k, distances, labels, options, rangeOf);
    });
}

std::string EditDistanceIndex::plan(
        idx_t n,
        idx_t queryLength,
        idx_t maxDistance,
        const std::string& method) const {
    return detail::withFaissErrors([&] {
        const WordOptions options = optionsOf(method);
        const std::string onCpu =
                parts_->index.plan(n, queryLength, maxDistance, options);
#ifdef FAISS_BITS_GPU_PART
        if (parts_->gpu) {
            return parts_->gpu->plan(
                    parts_->index, queryLength, maxDistance, options, onCpu);
        }
#endif
        return onCpu;
    });
}

} // namespace faiss_bits
