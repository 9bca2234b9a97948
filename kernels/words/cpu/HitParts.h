#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "kernels/words/Dictionary.h"

namespace faiss_bits::words::cpu {

/// The results of one thread, query after query, each by ascending id.
class HitPart {
   public:
    explicit HitPart(const Dictionary& dictionary) : dictionary_(dictionary) {}

    /// Of the query at hand: the word at a place.
    void add(uint32_t place, uint32_t distance) {
        ids_.push_back(dictionary_.ids[place]);
        distances_.push_back(distance);
    }

    /// Ends the query: its results come behind those before, from the returned
    /// one on.
    idx_t finish() {
        const auto first = idx_t(outIds.size());
        const size_t n = ids_.size();
        if (n * 32 < size_t(dictionary_.size())) {
            sortFew();
        } else {
            sortMany();
        }
        outIds.insert(outIds.end(), ids_.begin(), ids_.end());
        outDistances.insert(
                outDistances.end(), distances_.begin(), distances_.end());
        ids_.clear();
        distances_.clear();
        return first;
    }

    size_t bytes() const {
        return outIds.size() * 2 * sizeof(uint32_t);
    }

    std::vector<uint32_t> outIds, outDistances;

   private:
    void sortFew() {
        if (std::is_sorted(ids_.begin(), ids_.end())) {
            return;
        }
        keys_.resize(ids_.size());
        for (size_t i = 0; i < ids_.size(); ++i) {
            keys_[i] = uint64_t(ids_[i]) << 32 | distances_[i];
        }
        std::sort(keys_.begin(), keys_.end());
        for (size_t i = 0; i < ids_.size(); ++i) {
            ids_[i] = uint32_t(keys_[i] >> 32);
            distances_[i] = uint32_t(keys_[i]);
        }
    }

    /// Each to the place of its id, and then those that are there.
    void sortMany() {
        const auto n = size_t(dictionary_.size());
        byId_.resize(n);
        isFound_.resize((n + 63) / 64);
        for (size_t i = 0; i < ids_.size(); ++i) {
            byId_[ids_[i]] = distances_[i];
            isFound_[ids_[i] / 64] |= uint64_t(1) << ids_[i] % 64;
        }
        size_t count = 0;
        for (size_t i = 0; i < isFound_.size(); ++i) {
            for (uint64_t bits = isFound_[i]; bits; bits &= bits - 1) {
                const auto id = uint32_t(64 * i + std::countr_zero(bits));
                ids_[count] = id;
                distances_[count++] = byId_[id];
            }
            isFound_[i] = 0;
        }
    }

    const Dictionary& dictionary_;
    std::vector<uint32_t> ids_, distances_; // of the query at hand
    std::vector<uint64_t> keys_, isFound_;
    std::vector<uint32_t> byId_;
};

} // namespace faiss_bits::words::cpu
