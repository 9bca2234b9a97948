#include "kernels/words/WordIndex.h"

#include <algorithm>

#include "kernels/common/Error.h"
#include "kernels/words/cpu/RangeSearch.h"

namespace faiss_bits::words {

uint32_t requireMaxDistance(idx_t maxDistance) {
    BITS_THROW_IF_NOT_FMT(
            maxDistance >= 0,
            "max_distance = %lld is negative",
            (long long)maxDistance);
    return uint32_t(std::min<idx_t>(maxDistance, INT32_MAX));
}

WordIndex::WordIndex(const Utf8Words& words)
        : dictionary_(makeDictionary(words)) {}

const ListOfClusters& WordIndex::clusters(const WordOptions& options) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!clusters_) {
        clusters_ = std::make_unique<ListOfClusters>(
                makeListOfClusters(dictionary_, options));
    }
    return *clusters_;
}

const Pivots& WordIndex::pivots(const WordOptions& options) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!pivots_) {
        pivots_ = std::make_unique<Pivots>(makePivots(dictionary_, options));
    }
    return *pivots_;
}

const WordGroups& WordIndex::groups() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!groups_) {
        groups_ =
                std::make_unique<WordGroups>(WordGroups::byLength(dictionary_));
    }
    return *groups_;
}

const SubtreeLengths& WordIndex::subtreeLengths() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!subtreeLengths_) {
        subtreeLengths_ = std::make_unique<SubtreeLengths>(dictionary_);
    }
    return *subtreeLengths_;
}

WordRange WordIndex::range(
        const Utf8Words& queries,
        idx_t maxDistance,
        const WordOptions& options) const {
    const uint32_t most = requireMaxDistance(maxDistance);
    return range(dictionary_.encode(queries), most, options);
}

WordRange WordIndex::range(
        const LetterWords& queries,
        uint32_t maxDistance,
        const WordOptions& options) const {
    return cpu::searchRange(*this, queries, maxDistance, options);
}

std::string WordIndex::plan(
        idx_t numQueries,
        idx_t queryLength,
        idx_t maxDistance,
        const WordOptions& options) const {
    BITS_THROW_IF_NOT_FMT(
            numQueries >= 0,
            "the number of queries %lld is negative",
            (long long)numQueries);
    BITS_THROW_IF_NOT_FMT(
            queryLength >= 0,
            "the length of queries %lld is negative",
            (long long)queryLength);
    const uint32_t most = requireMaxDistance(maxDistance);
    return cpu::planText(
            options, uint32_t(std::min<idx_t>(queryLength, INT32_MAX)), most);
}

} // namespace faiss_bits::words
