#pragma once

#include <algorithm>
#include <vector>

#include "kernels/words/WordGroups.h"
#include "kernels/words/cpu/BlockPattern.h"
#include "kernels/words/cpu/WordKernels.h"

namespace faiss_bits::words::cpu {

/// One query, and its distances to words of a dictionary. Of one thread; set
/// again for every query.
class QueryPattern {
   public:
    explicit QueryPattern(const Dictionary& dictionary)
            : dictionary_(dictionary),
              bits32_(uint32_t(dictionary.alphabet.size())),
              bits64_(uint32_t(dictionary.alphabet.size())),
              blocks_(uint32_t(dictionary.alphabet.size())) {}

    void set(const uint32_t* query, uint32_t length) {
        length_ = length;
        if (length <= 32) {
            bits32_.set(query, length);
        } else if (length <= 64) {
            bits64_.set(query, length);
        } else {
            blocks_.set(query, length);
        }
    }

    uint32_t length() const {
        return length_;
    }

    /// distances [WordGroups::kSize]; of places without a word anything.
    void distances(
            const WordGroups& groups,
            uint32_t group,
            uint32_t* distances) {
        if (length_ == 0) {
            std::copy_n(groups.lengths(group), WordGroups::kSize, distances);
        } else if (length_ <= 32) {
            kernels_.distances32(of(bits32_, groups, group, distances));
        } else if (length_ <= 64) {
            kernels_.distances64(of(bits64_, groups, group, distances));
        } else {
            for (uint32_t i = 0; i < groups.words(group); ++i) {
                const uint32_t place = groups.places(group)[i];
                distances[i] = blocks_.distance(
                        dictionary_.sorted.word(place),
                        dictionary_.sorted.length(place),
                        column_);
            }
        }
    }

   private:
    template <class T>
    GroupDistances<T> of(
            const LetterTable<T>& table,
            const WordGroups& groups,
            uint32_t group,
            uint32_t* distances) const {
        GroupDistances<T> job;
        job.table = table.data();
        job.queryLength = length_;
        job.columns = groups.columns(group);
        job.lengths = groups.lengths(group);
        job.shortest = groups.shortest(group);
        job.longest = groups.longest(group);
        job.distances = distances;
        return job;
    }

    const Dictionary& dictionary_;
    const WordKernels& kernels_ = wordKernels();
    LetterTable<uint32_t> bits32_;
    LetterTable<uint64_t> bits64_;
    BlockPattern blocks_;
    std::vector<uint64_t> column_;
    uint32_t length_ = 0;
};

static_assert(WordGroups::kSize == kGroupWords);

} // namespace faiss_bits::words::cpu
