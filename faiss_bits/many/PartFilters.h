#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <faiss/Index.h>

#include "faiss_bits/flat/SelectorTree.h"
#include "faiss_bits/many/ShardMap.h"

/// Filters of an index on several devices. Host only, no CUDA call. Not part of
/// the API.
namespace faiss_bits::gpu::detail {

/// Bits of ids 0 .. n - 1: bit i % 8 of byte i / 8. Behind them are zeros, so
/// that 64 bits can be read and written at any of them.
class IdBits {
   public:
    IdBits() = default;
    explicit IdBits(idx_t n) : n_(n), bytes_(n / 8 + 17) {}

    /// What a selector selects. One of a class that FAISS does not have has
    /// been asked for every id when the tree was made.
    IdBits(const SelectorTree& tree, idx_t n);

    idx_t size() const {
        return n_;
    }
    size_t numBytes() const {
        return size_t(n_ + 7) / 8;
    }
    const uint8_t* bytes() const {
        return bytes_.data();
    }
    bool operator[](idx_t i) const {
        return bytes_[i / 8] >> (i % 8) & 1;
    }

    void set(idx_t i) {
        bytes_[i / 8] |= uint8_t(1 << (i % 8));
    }
    void setRange(idx_t first, idx_t end);

    /// Bits source[from .. from + count) to ours from `to` on, which are zeros.
    void copyFrom(const IdBits& source, idx_t from, idx_t to, idx_t count);

   private:
    uint64_t read_(idx_t at) const;
    void write_(idx_t at, uint64_t bits);
    void clearBehind_();

    idx_t n_ = 0;
    std::vector<uint8_t> bytes_;
};

/// What the parts of an index get for the parameters of a search: a selector of
/// numbers in the index becomes one of numbers in the part.
class PartFilters {
   public:
    /// For shards: `map` says who has what. Throws FaissException as
    /// readSelector, for a DeviceSelector that is not on `device`, and for
    /// parameters that would have to be ignored.
    PartFilters(
            const faiss::SearchParameters* params,
            const ShardMap& map,
            int device);

    /// For replicas of ntotal vectors. isOneThread: all on `device`, one after
    /// the other; these get the parameters as they are.
    PartFilters(
            const faiss::SearchParameters* params,
            int numReplicas,
            idx_t ntotal,
            int device,
            bool isOneThread);

    /// null where all is selected.
    const faiss::SearchParameters* operator[](int part) const;

   private:
    struct Part;

    std::vector<std::shared_ptr<Part>> parts_;
    const faiss::SearchParameters* asTheyAre_ = nullptr;
};

} // namespace faiss_bits::gpu::detail
