#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include <hwy/aligned_allocator.h>

#include "kernels/words/cpu/WordKernels.h"

namespace faiss_bits::words::cpu {

/// Walks the trie with as many queries as there are lanes of T. Of one thread;
/// used again for group after group.
template <class T>
class TrieByLanes {
   public:
    TrieByLanes(
            const Dictionary& dictionary,
            int lanes,
            void (*kernel)(TrieWalk<T>&))
            : letters_(dictionary.alphabet.size()),
              lanes_(size_t(lanes)),
              kernel_(kernel),
              table_(hwy::AllocateAligned<T>((letters_ + 1) * lanes_)),
              last_(hwy::AllocateAligned<T>(lanes_)),
              rows_(hwy::AllocateAligned<T>(lanes_)),
              columns_(hwy::AllocateAligned<T>(
                      (8 * sizeof(T) + kMostErrors) * (kMostErrors + 1) *
                      lanes_)) {
        std::fill_n(table_.get(), (letters_ + 1) * lanes_, T(0));
        walk_.nodes = dictionary.nodes.data();
        walk_.numNodes = dictionary.numNodes();
        walk_.table = table_.get();
        walk_.last = last_.get();
        walk_.rows = rows_.get();
        walk_.columns = columns_.get();
        walk_.hits = &hits_;
    }

    size_t lanes() const {
        return lanes_;
    }

    /// The hits of queries[0 .. count - 1] of `words`, by node; count of 1 to
    /// lanes().
    const std::vector<LaneHit>& run(
            const LetterWords& words,
            const uint32_t* queries,
            size_t count,
            int errors,
            uint64_t& visited) {
        for (const size_t place : used_) {
            table_[place] = 0;
        }
        used_.clear();
        for (size_t lane = 0; lane < lanes_; ++lane) {
            if (lane >= count) {
                last_[lane] = rows_[lane] = 0;
                continue;
            }
            const uint32_t* query = words.word(queries[lane]);
            const uint32_t length = words.length(queries[lane]);
            last_[lane] = T(T(1) << length);
            rows_[lane] = T(T(last_[lane] - 1) | last_[lane]);
            for (uint32_t i = 0; i < length; ++i) {
                if (query[i] < letters_) {
                    const size_t place = query[i] * lanes_ + lane;
                    table_[place] = T(table_[place] | T(2) << i);
                    used_.push_back(place);
                }
            }
        }
        hits_.clear();
        walk_.errors = errors;
        walk_.visited = 0;
        kernel_(walk_);
        visited += walk_.visited;
        return hits_;
    }

   private:
    size_t letters_, lanes_;
    void (*kernel_)(TrieWalk<T>&);
    hwy::AlignedFreeUniquePtr<T[]> table_, last_, rows_, columns_;
    std::vector<size_t> used_; // places of the table that are not zero
    std::vector<LaneHit> hits_;
    TrieWalk<T> walk_;
};

} // namespace faiss_bits::words::cpu
