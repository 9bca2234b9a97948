#include "kernels/words/WordGroups.h"

#include <algorithm>
#include <numeric>

namespace faiss_bits::words {

void WordGroups::add(
        const Dictionary& dictionary,
        const uint32_t* places,
        uint32_t n) {
    const LetterWords& words = dictionary.sorted;
    uint32_t longest = 0, shortest = ~0u;
    for (uint32_t i = 0; i < n; ++i) {
        longest = std::max(longest, words.length(places[i]));
        shortest = std::min(shortest, words.length(places[i]));
    }
    const size_t begin = letters_.size();
    letters_.resize(begin + size_t(longest) * kSize);
    for (uint32_t i = 0; i < kSize; ++i) {
        const uint32_t length = i < n ? words.length(places[i]) : 0;
        for (uint32_t j = 0; j < length; ++j) {
            letters_[begin + j * kSize + i] = words.word(places[i])[j];
        }
        lengths_.push_back(length);
        places_.push_back(i < n ? places[i] : kNoWord);
    }
    begins_.push_back(letters_.size());
    words_.push_back(n);
    shortest_.push_back(n == kSize ? shortest : 0);
}

void WordGroups::clear() {
    letters_.clear();
    begins_.assign(1, 0);
    lengths_.clear();
    places_.clear();
    shortest_.clear();
    words_.clear();
}

WordGroups WordGroups::byLength(const Dictionary& dictionary) {
    std::vector<uint32_t> places(size_t(dictionary.size()));
    std::iota(places.begin(), places.end(), 0u);
    std::stable_sort(places.begin(), places.end(), [&](uint32_t a, uint32_t b) {
        return dictionary.sorted.length(a) < dictionary.sorted.length(b);
    });
    WordGroups groups;
    for (size_t first = 0; first < places.size(); first += kSize) {
        groups.add(
                dictionary,
                places.data() + first,
                uint32_t(std::min<size_t>(kSize, places.size() - first)));
    }
    return groups;
}

} // namespace faiss_bits::words
