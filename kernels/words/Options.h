#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "kernels/words/Method.h"

namespace faiss_bits::words {

/// What searches did, added up.
struct WordStats {
    std::atomic<uint64_t> distances{0}; ///< of whole words, to a query
    std::atomic<uint64_t> nodes{0}; ///< of the trie, for all queries of a group
};

/// How words are searched, or an index of them made. Never changes a result.
struct WordOptions {
    Method method = Method::Auto;
    int threads = 0; ///< 0: as many as OpenMP would use
    /// Called now and then on the calling thread, outside parallel loops; what
    /// it throws ends the call.
    std::function<void()> interrupt;
    WordStats* stats = nullptr;

    int team() const;    ///< threads that OpenMP is asked for
    int workers() const; ///< and that work
};

/// body(i, thread) for i of 0 .. count - 1, in parallel, the interrupt being
/// called every 20 ms or so.
void forAll(
        const WordOptions& options,
        int64_t count,
        const std::function<void(int64_t, int)>& body);

} // namespace faiss_bits::words
