#include "kernels/words/Dictionary.h"

#include <algorithm>
#include <numeric>

#include "kernels/common/Error.h"

namespace faiss_bits::words {

namespace {

/// Turns code points into places in the alphabet, which it makes.
void makeAlphabet(
        std::vector<uint32_t>& letters,
        std::vector<uint32_t>& alphabet,
        std::vector<uint32_t>& letterOf) {
    const auto greatest = std::max_element(letters.begin(), letters.end());
    std::vector<uint8_t> occurs(
            greatest == letters.end() ? 0 : size_t(*greatest) + 1);
    for (const uint32_t letter : letters) {
        occurs[letter] = 1;
    }
    letterOf.resize(occurs.size());
    for (size_t point = 0; point < occurs.size(); ++point) {
        letterOf[point] = uint32_t(alphabet.size());
        if (occurs[point]) {
            alphabet.push_back(uint32_t(point));
        }
    }
    for (size_t point = 0; point < occurs.size(); ++point) {
        if (!occurs[point]) {
            letterOf[point] = uint32_t(alphabet.size());
        }
    }
    for (uint32_t& letter : letters) {
        letter = letterOf[letter];
    }
}

/// A word's first letters as one number: most comparisons need no more.
struct SortKey {
    uint64_t first;
    uint32_t id;
};

std::vector<uint32_t> sortWords(const LetterWords& words) {
    std::vector<SortKey> keys(size_t(words.count()));
    for (idx_t i = 0; i < words.count(); ++i) {
        const uint32_t* letters = words.word(i);
        uint64_t first = 0;
        for (uint32_t j = 0; j < 3; ++j) {
            // 0: there is no letter, which comes before every letter.
            first = first << 21 | (j < words.length(i) ? letters[j] + 1 : 0);
        }
        keys[size_t(i)] = {first, uint32_t(i)};
    }
    std::sort(keys.begin(), keys.end(), [&](SortKey a, SortKey b) {
        if (a.first != b.first) {
            return a.first < b.first;
        }
        const uint32_t *left = words.word(a.id), *right = words.word(b.id);
        const uint32_t n = words.length(a.id), m = words.length(b.id);
        const auto places = std::mismatch(left, left + std::min(n, m), right);
        const auto same = uint32_t(places.first - left);
        if (same < std::min(n, m)) {
            return left[same] < right[same];
        }
        return n != m ? n < m : a.id < b.id;
    });
    std::vector<uint32_t> ids;
    ids.reserve(keys.size());
    for (const SortKey& key : keys) {
        ids.push_back(key.id);
    }
    return ids;
}

/// The nodes of sorted words.
std::vector<TrieNode> makeTrie(const LetterWords& sorted) {
    std::vector<TrieNode> nodes(1);
    std::vector<uint32_t> path{0}; // the nodes from the root to the last word
    std::vector<uint8_t> children{0};
    const auto close = [&](size_t depth) {
        while (path.size() > depth + 1) {
            nodes[path.back()].next = uint32_t(nodes.size());
            if (children.back() > 1) {
                nodes[path.back()].state |= TrieNode::kBranches;
            }
            path.pop_back();
            children.pop_back();
        }
    };
    for (idx_t i = 0; i < sorted.count(); ++i) {
        const uint32_t* word = sorted.word(i);
        const uint32_t length = sorted.length(i);
        uint32_t same = 0;
        while (same + 1 < path.size() && same < length &&
               nodes[path[same + 1]].letter == word[same]) {
            ++same;
        }
        close(same);
        for (uint32_t depth = same; depth < length; ++depth) {
            TrieNode node;
            node.letter = word[depth];
            node.state = depth + 1;
            if (children.back() == 0) {
                node.state |= TrieNode::kFirstChild;
            }
            children.back() = uint8_t(std::min(2, children.back() + 1));
            node.words = uint32_t(i);
            path.push_back(uint32_t(nodes.size()));
            children.push_back(0);
            nodes.push_back(node);
        }
        nodes[path.back()].state |= TrieNode::kEndsWord;
    }
    close(0);
    nodes[0].next = uint32_t(nodes.size());
    if (children[0] > 1) {
        nodes[0].state |= TrieNode::kBranches;
    }
    TrieNode last;
    last.words = uint32_t(sorted.count());
    last.next = uint32_t(nodes.size());
    nodes.push_back(last);
    return nodes;
}

} // namespace

LetterWords Dictionary::encode(const Utf8Words& queries) const {
    LetterWords out = decodeUtf8(queries);
    const auto none = uint32_t(alphabet.size());
    for (uint32_t& letter : out.letters) {
        letter = letter < letterOf_.size() ? letterOf_[letter] : none;
    }
    return out;
}

Dictionary makeDictionary(const Utf8Words& words) {
    Dictionary out;
    LetterWords given = decodeUtf8(words);
    BITS_THROW_IF_NOT_FMT(
            given.count() < (idx_t(1) << 31),
            "%s: %lld words are more than 2^31 - 1",
            words.name,
            (long long)given.count());
    BITS_THROW_IF_NOT_FMT(
            given.letters.size() <= TrieNode::kDepthMask,
            "%s: their %zu letters are more than 2^29 - 1",
            words.name,
            given.letters.size());
    makeAlphabet(given.letters, out.alphabet, out.letterOf_);
    out.ids = sortWords(given);
    out.sorted.letters.reserve(given.letters.size());
    out.sorted.begins.reserve(given.begins.size());
    out.sorted.begins.push_back(0);
    for (const uint32_t id : out.ids) {
        const uint32_t* word = given.word(id);
        out.sorted.letters.insert(
                out.sorted.letters.end(), word, word + given.length(id));
        out.sorted.begins.push_back(idx_t(out.sorted.letters.size()));
        out.longest = std::max(out.longest, given.length(id));
    }
    out.nodes = makeTrie(out.sorted);
    return out;
}

} // namespace faiss_bits::words
