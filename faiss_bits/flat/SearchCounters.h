#pragma once

#include <atomic>
#include <cstdint>

#include "kernels/common/SearchMode.h"

namespace faiss_bits::detail {

/// What the searches of an index did so far; they may run at the same time. A
/// copy begins at zero, as it has searched nothing.
class SearchCounters {
   public:
    SearchCounters() = default;
    SearchCounters(const SearchCounters&) {}
    SearchCounters& operator=(const SearchCounters&) {
        return *this;
    }

    void add(const SearchStats& stats) {
        certified_ += stats.certified;
        repeated_ += stats.repeated;
        rescored_ += stats.rescored;
    }
    SearchStats stats() const {
        return {certified_, repeated_, rescored_};
    }
    void reset() {
        certified_ = repeated_ = rescored_ = 0;
    }

   private:
    std::atomic<int64_t> certified_{0}, repeated_{0}, rescored_{0};
};

} // namespace faiss_bits::detail
