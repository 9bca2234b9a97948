#pragma once

#include <cstdint>
#include <vector>

#include "kernels/words/SubtreeLengths.h"
#include "kernels/words/cpu/BlockPattern.h"

namespace faiss_bits::words::cpu {

/// Walks the trie with one query of any length, for any distance. Keeps the
/// columns of the nodes that branch above the current one, and leaves out what
/// is too long or too short. Of one thread.
class TrieByBlocks {
   public:
    TrieByBlocks(const Dictionary& dictionary, const SubtreeLengths& lengths)
            : dictionary_(dictionary),
              lengths_(lengths),
              pattern_(uint32_t(dictionary.alphabet.size())) {}

    /// found(node, distance) for the nodes that end words, in their order.
    template <class Found>
    void run(
            const uint32_t* query,
            uint32_t length,
            uint32_t most,
            uint64_t& visited,
            const Found& found) {
        pattern_.set(query, length);
        const size_t size = 2 * pattern_.blocks();
        const std::vector<TrieNode>& nodes = dictionary_.nodes;
        const uint32_t numNodes = dictionary_.numNodes();
        column_.resize(size);
        pattern_.first(column_.data());
        depths_.assign(1, 0);
        columns_.assign(column_.begin(), column_.end());
        if ((nodes[0].state & TrieNode::kEndsWord) && length <= most) {
            found(0u, length);
        }
        for (uint32_t i = 1; i < numNodes;) {
            const TrieNode& node = nodes[i];
            if (lengths_.areFar(i, length, most)) {
                i = node.next;
                continue;
            }
            if (!(node.state & TrieNode::kFirstChild)) {
                while (depths_.back() + 1 != node.depth()) {
                    depths_.pop_back();
                }
                columns_.resize(depths_.size() * size);
                std::copy_n(
                        columns_.end() - std::ptrdiff_t(size),
                        size,
                        column_.data());
            }
            pattern_.step(node.letter, column_.data(), column_.data());
            ++visited;
            if (!pattern_.mayReach(column_.data(), node.depth(), most)) {
                i = node.next;
                continue;
            }
            if (node.state & TrieNode::kEndsWord) {
                const uint32_t distance =
                        pattern_.last(column_.data(), node.depth());
                if (distance <= most) {
                    found(i, distance);
                }
            }
            if (node.state & TrieNode::kBranches) {
                columns_.resize(depths_.size() * size);
                depths_.push_back(node.depth());
                columns_.insert(columns_.end(), column_.begin(), column_.end());
            }
            ++i;
        }
    }

   private:
    const Dictionary& dictionary_;
    const SubtreeLengths& lengths_;
    BlockPattern pattern_;
    std::vector<uint64_t> column_, columns_;
    std::vector<uint32_t> depths_; // of `columns_`
};

} // namespace faiss_bits::words::cpu
