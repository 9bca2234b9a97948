#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

/// Vectors of words: how often each letter, or each pair of common letters,
/// comes in a word. Small whole numbers, most of them 0, so that most distances
/// are those of many words; words of the same letters are equal vectors, and
/// some words have no pair at all.
namespace faiss_bits::test {

enum class WordCounts {
    Letters, ///< 26 dimensions, a to z
    Pairs    ///< 100 dimensions, pairs of the ten most frequent letters
};

constexpr int dimensionsOf(WordCounts counts) {
    return counts == WordCounts::Letters ? 26 : 100;
}

/// A word of one to five syllables, with a letter changed now and then.
inline std::string makeWord(std::mt19937& random) {
    static const char* const starts[] = {
            "b", "c", "ch", "d",  "f", "g", "h", "l", "m", "n", "p",
            "r", "s", "st", "tr", "t", "v", "w", "",  "s", "t", "qu"};
    static const char* const middles[] = {
            "a", "e", "i", "o", "u", "ea", "io", "e", "a", "i", "ou", "y"};
    static const char* const ends[] = {
            "", "", "", "n", "r", "s", "t", "l", "ng", "nt", "x", "ss", "z"};
    const auto oneOf = [&](const auto& parts) {
        return parts[random() % std::size(parts)];
    };
    std::string word;
    for (int syllables = 1 + int(random() % 5); syllables > 0; --syllables) {
        word += oneOf(starts);
        word += oneOf(middles);
        word += oneOf(ends);
    }
    if (random() % 8 == 0) {
        word[random() % word.size()] = char('a' + random() % 26);
    }
    return word;
}

/// The vectors of n words, [n, dimensionsOf(counts)].
inline std::vector<float> makeWordVectors(
        WordCounts counts,
        int64_t n,
        uint32_t seed) {
    static const char common[] = "etaoinsrhl";
    std::mt19937 random(seed);
    const int d = dimensionsOf(counts);
    std::vector<float> vectors(n * d);
    for (int64_t i = 0; i < n; ++i) {
        const std::string word = makeWord(random);
        float* const vector = vectors.data() + i * d;
        if (counts == WordCounts::Letters) {
            for (char letter : word) {
                vector[letter - 'a'] += 1;
            }
            continue;
        }
        for (size_t j = 1; j < word.size(); ++j) {
            const char* first = std::strchr(common, word[j - 1]);
            const char* second = std::strchr(common, word[j]);
            if (first && second) {
                vector[(first - common) * 10 + (second - common)] += 1;
            }
        }
    }
    return vectors;
}

} // namespace faiss_bits::test
