#include "kernels/words/SubtreeLengths.h"

#include <algorithm>

namespace faiss_bits::words {

SubtreeLengths::SubtreeLengths(const Dictionary& dictionary)
        : ranges_(dictionary.numNodes()) {
    const std::vector<TrieNode>& nodes = dictionary.nodes;
    // Children lie behind their parent.
    for (uint32_t i = dictionary.numNodes(); i-- > 0;) {
        Range& range = ranges_[i];
        if (nodes[i].state & TrieNode::kEndsWord) {
            range = {nodes[i].depth(), nodes[i].depth()};
        }
        for (uint32_t child = i + 1; child < nodes[i].next;
             child = nodes[child].next) {
            range.shortest = std::min(range.shortest, ranges_[child].shortest);
            range.longest = std::max(range.longest, ranges_[child].longest);
        }
    }
}

} // namespace faiss_bits::words
