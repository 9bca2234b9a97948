#pragma once

#include <cstdint>
#include <vector>

#include "kernels/words/Utf8.h"

namespace faiss_bits::words {

/// One letter of a prefix that some words share. Nodes lie in preorder: a node,
/// then its subtrees, each whole.
struct TrieNode {
    static constexpr uint32_t kFirstChild = 1u << 31; ///< its parent is before
    static constexpr uint32_t kBranches = 1u << 30; ///< has 2 children or more
    static constexpr uint32_t kEndsWord = 1u << 29;
    static constexpr uint32_t kDepthMask = kEndsWord - 1;

    uint32_t letter = 0;
    uint32_t next = 0;  ///< the first node behind the subtree
    uint32_t state = 0; ///< depth (letters up to here) and flags
    /// Words that end before this node. Those of the next node end the words
    /// that end here; those of `next` the words of the subtree.
    uint32_t words = 0;

#if defined(__CUDACC__)
    __host__ __device__
#endif
            uint32_t
            depth() const {
        return state & kDepthMask;
    }
};

/// Words made ready to be searched: sorted by their code points, equal words by
/// id, with the trie of their prefixes (the letters that a word shares with the
/// one before it are not repeated). Place: position in that order.
struct Dictionary {
    std::vector<uint32_t> alphabet; ///< code points that occur, ascending
    LetterWords sorted;             ///< by place; letter: place in alphabet
    std::vector<uint32_t> ids;      ///< [n] of the word at each place
    /// The root, of no letter, is the first; behind the last is one that ends
    /// all.
    std::vector<TrieNode> nodes;
    uint32_t longest = 0; ///< letters of the longest word

    idx_t size() const {
        return idx_t(ids.size());
    }
    uint32_t numNodes() const {
        return uint32_t(nodes.size()) - 1;
    }
    /// Letters of queries: one that no word has is alphabet.size().
    LetterWords encode(const Utf8Words& queries) const;

   private:
    friend Dictionary makeDictionary(const Utf8Words& words);
    std::vector<uint32_t> letterOf_; // by code point, up to the greatest
};

/// Sorts the words and makes their trie. Throws Error as decodeUtf8, and for
/// more than 2^31 - 1 words or 2^29 - 1 letters. Cost n log n comparisons.
Dictionary makeDictionary(const Utf8Words& words);

} // namespace faiss_bits::words
