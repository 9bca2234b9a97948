#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/words/WordIndex.h"

/// What the searches of words are compared with: plain dynamic programming over
/// code points, every word, nothing shared with the library.
namespace faiss_bits::test {

using Text = std::u32string;

inline std::string toUtf8(const Text& text) {
    std::string out;
    for (const char32_t c : text) {
        if (c < 0x80) {
            out += char(c);
        } else if (c < 0x800) {
            out += char(0xC0 | c >> 6);
            out += char(0x80 | (c & 0x3F));
        } else if (c < 0x10000) {
            out += char(0xE0 | c >> 12);
            out += char(0x80 | (c >> 6 & 0x3F));
            out += char(0x80 | (c & 0x3F));
        } else {
            out += char(0xF0 | c >> 18);
            out += char(0x80 | (c >> 12 & 0x3F));
            out += char(0x80 | (c >> 6 & 0x3F));
            out += char(0x80 | (c & 0x3F));
        }
    }
    return out;
}

/// Levenshtein's distance, row by row.
inline int32_t editDistance(const Text& a, const Text& b) {
    std::vector<int32_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) {
        row[j] = int32_t(j);
    }
    for (size_t i = 1; i <= a.size(); ++i) {
        int32_t diagonal = row[0];
        row[0] = int32_t(i);
        for (size_t j = 1; j <= b.size(); ++j) {
            const int32_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row[b.size()];
}

/// Words as the library takes them.
class PackedWords {
   public:
    explicit PackedWords(const std::vector<Text>& words, const char* name)
            : name_(name) {
        for (const Text& word : words) {
            bytes_ += toUtf8(word);
            offsets_.push_back(idx_t(bytes_.size()));
        }
    }

    words::Utf8Words view() const {
        words::Utf8Words out;
        out.count = idx_t(offsets_.size()) - 1;
        out.bytes = bytes_.data();
        out.offsets = offsets_.data();
        out.name = name_;
        return out;
    }

   private:
    const char* name_;
    std::string bytes_;
    std::vector<idx_t> offsets_{0};
};

inline words::WordRange rangeReference(
        const std::vector<Text>& list,
        const std::vector<Text>& queries,
        int32_t most) {
    words::WordRange out;
    out.limits.push_back(0);
    for (const Text& query : queries) {
        for (size_t id = 0; id < list.size(); ++id) {
            const int32_t distance = editDistance(query, list[id]);
            if (distance <= most) {
                out.ids.push_back(idx_t(id));
                out.distances.push_back(distance);
            }
        }
        out.limits.push_back(idx_t(out.ids.size()));
    }
    return out;
}

inline std::vector<std::pair<int32_t, idx_t>> knnReference(
        const std::vector<Text>& list,
        const Text& query,
        size_t k) {
    std::vector<std::pair<int32_t, idx_t>> all;
    for (size_t id = 0; id < list.size(); ++id) {
        all.push_back({editDistance(query, list[id]), idx_t(id)});
    }
    std::sort(all.begin(), all.end());
    all.resize(k, {INT32_MAX, -1});
    return all;
}

/// Words and queries of one test.
struct WordCase {
    std::string name;
    std::vector<Text> words, queries;
};

class WordMaker {
   public:
    explicit WordMaker(uint32_t seed) : random_(seed) {}

    uint32_t below(uint32_t n) {
        return uint32_t(random_() % n);
    }

    Text word(size_t length, const Text& alphabet) {
        Text out;
        for (size_t i = 0; i < length; ++i) {
            out += alphabet[below(uint32_t(alphabet.size()))];
        }
        return out;
    }

    Text edited(Text word, int edits, const Text& alphabet) {
        for (int i = 0; i < edits; ++i) {
            const char32_t letter = alphabet[below(uint32_t(alphabet.size()))];
            const uint32_t place = below(uint32_t(word.size()) + 1);
            switch (word.empty() ? 0 : below(3)) {
                case 0:
                    word.insert(word.begin() + place, letter);
                    break;
                case 1:
                    word.erase(place % word.size(), 1);
                    break;
                default:
                    word[place % word.size()] = letter;
            }
        }
        return word;
    }

   private:
    std::mt19937 random_;
};

inline const Text kTwoLetters = U"ab";
/// Of one to four bytes in UTF-8.
inline const Text kManyLetters = U"abcdeñéßλжあ漢字😀𝄞";

/// Around every length at which the kernels change their words of bits.
inline WordCase edgeCase() {
    WordCase out{"lengths at edges", {}, {}};
    WordMaker make(3);
    for (const Text& alphabet : {kTwoLetters, kManyLetters}) {
        for (const size_t length :
             {0,
              1,
              2,
              14,
              15,
              16,
              17,
              30,
              31,
              32,
              33,
              62,
              63,
              64,
              65,
              127,
              128,
              129,
              200}) {
            const Text word = make.word(length, alphabet);
            out.words.push_back(word);
            for (int edits = 0; edits < 6; ++edits) {
                out.words.push_back(make.edited(word, edits, alphabet));
                out.queries.push_back(make.edited(word, edits, alphabet));
            }
        }
    }
    return out;
}

/// Many words that share prefixes, with equal and empty ones among them.
inline WordCase denseCase(size_t count, const Text& alphabet, uint32_t seed) {
    WordCase out{"dense", {}, {}};
    WordMaker make(seed);
    for (size_t i = 0; i < count; ++i) {
        out.words.push_back(make.word(make.below(9), alphabet));
    }
    for (size_t i = 0; i < 70; ++i) {
        out.queries.push_back(make.word(make.below(11), alphabet));
    }
    out.queries.push_back(U"");
    out.queries.push_back(U"zz"); // letters that no word has
    return out;
}

inline std::vector<WordCase> wordCases() {
    std::vector<WordCase> cases{
            edgeCase(),
            denseCase(700, kTwoLetters, 5),
            denseCase(3000, kManyLetters, 6),
    };
    cases.push_back({"no words", {}, {U"", U"a"}});
    cases.push_back({"no queries", {U"a", U"b"}, {}});
    cases.push_back({"empty words alone", {U"", U"", U""}, {U"", U"ab"}});
    cases.push_back({"one word", {U"paper"}, {U"paper", U"pepper", U""}});
    cases.push_back(
            {"all equal",
             std::vector<Text>(100, U"same"),
             {U"same", U"sme", U"other"}});
    return cases;
}

} // namespace faiss_bits::test
