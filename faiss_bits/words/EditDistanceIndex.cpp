#include "faiss_bits/words/EditDistanceIndex.h"

#include <mutex>

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/FaissErrors.h"

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

words::WordIndex makeIndex(const words::Utf8Words& words) {
    return detail::withFaissErrors([&] { return words::WordIndex(words); });
}

} // namespace

#ifdef FAISS_BITS_GPU_PART
class EditDistanceIndex::Device : public detail::WordsOnGpu {
    using WordsOnGpu::WordsOnGpu;
};
#else
class EditDistanceIndex::Device {};
#endif

EditDistanceIndex::EditDistanceIndex(
        idx_t n,
        const uint8_t* words,
        const idx_t* offsets,
        const std::string& device)
        : index_(makeIndex(wordsOf(n, words, offsets, "words"))),
          mustBeGpu_(device == "gpu") {
    FAISS_THROW_IF_NOT_FMT(
            device == "auto" || device == "cpu" || device == "gpu",
            "device = '%s' is none of auto, cpu, gpu",
            device.c_str());
    if (device == "cpu") {
        return;
    }
#ifdef FAISS_BITS_GPU_PART
    const std::string problem = detail::WordsOnGpu::problem();
    FAISS_THROW_IF_NOT_FMT(
            !mustBeGpu_ || problem.empty(),
            "device = 'gpu': %s",
            problem.c_str());
    if (problem.empty()) {
        device_ = detail::withFaissErrors(
                [&] { return std::make_unique<Device>(index_); });
    }
#else
    FAISS_THROW_IF_NOT_MSG(
            !mustBeGpu_,
            "device = 'gpu': this build of faiss_bits holds the CPU part only");
#endif
}

EditDistanceIndex::~EditDistanceIndex() = default;

idx_t EditDistanceIndex::ntotal() const {
    return index_.dictionary().size();
}

bool EditDistanceIndex::onGpu() const {
    return device_ != nullptr;
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
        if (device_) {
            const uint32_t most = words::requireMaxDistance(maxDistance);
            const auto letters = index_.dictionary().encode(texts);
            if (device_->takes(letters, most, options, mustBeGpu_)) {
                return device_->range(letters, most, options);
            }
        }
#endif
        return index_.range(texts, maxDistance, options);
    });
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
        if (device_) {
            // Of what is farther the GPU has no trie.
            rangeOf = [&](const words::LetterWords& letters, uint32_t most) {
                return device_->takes(letters, most, options, mustBeGpu_)
                        ? device_->range(letters, most, options)
                        : index_.range(letters, most, options);
            };
        }
#endif
        index_.knn(texts, k, distances, labels, options, rangeOf);
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
                index_.plan(n, queryLength, maxDistance, options);
#ifdef FAISS_BITS_GPU_PART
        if (device_) {
            return device_->plan(
                    index_, queryLength, maxDistance, options, onCpu);
        }
#endif
        return onCpu;
    });
}

} // namespace faiss_bits
