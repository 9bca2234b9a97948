#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace faiss_bits::words::cpu {

/// Bits of a query's letters: bit i of a row says that letter i is the row's.
/// Made anew for every query, in memory for the whole alphabet.
template <class T>
class LetterTable {
   public:
    explicit LetterTable(uint32_t letters) : letters_(letters) {}

    /// Of a query in words of 8 sizeof(T) bits. Letters outside the alphabet
    /// are in no word.
    void set(const uint32_t* query, uint32_t length) {
        for (const uint32_t letter : used_) {
            for (size_t i = 0; i < words_; ++i) {
                bits_[letter * words_ + i] = 0;
            }
        }
        used_.clear();
        constexpr uint32_t size = 8 * sizeof(T);
        words_ = std::max(1u, (length + size - 1) / size);
        if (bits_.size() < letters_ * words_) {
            bits_.resize(letters_ * words_);
        }
        for (uint32_t i = 0; i < length; ++i) {
            if (query[i] < letters_) {
                bits_[query[i] * words_ + i / size] |= T(1) << i % size;
                used_.push_back(query[i]);
            }
        }
    }

    size_t words() const {
        return words_;
    }
    const T* row(uint32_t letter) const {
        return bits_.data() + letter * words_;
    }
    const T* data() const {
        return bits_.data();
    }

   private:
    size_t letters_, words_ = 1;
    std::vector<T> bits_ = std::vector<T>(letters_);
    std::vector<uint32_t> used_;
};

/// A query of any length, in blocks of 64 letters, and steps over columns of
/// differences (Myers 1999, Hyyro 2003). A column is [2][blocks]: where a row
/// is one more than the row before it, and where it is one less.
class BlockPattern {
   public:
    explicit BlockPattern(uint32_t letters) : table_(letters) {}

    void set(const uint32_t* query, uint32_t length) {
        table_.set(query, length);
        length_ = length;
    }
    size_t blocks() const {
        return table_.words();
    }
    uint32_t length() const {
        return length_;
    }

    void first(uint64_t* column) const {
        std::fill_n(column, blocks(), ~uint64_t(0));
        std::fill_n(column + blocks(), blocks(), uint64_t(0));
    }

    /// `to` may be `from`.
    void step(uint32_t letter, const uint64_t* from, uint64_t* to) const {
        const uint64_t* same = table_.row(letter);
        const size_t n = blocks();
        uint64_t carry = 0, right = 1, left = 0;
        for (size_t b = 0; b < n; ++b) {
            const uint64_t more = from[b], less = from[n + b];
            const uint64_t kept = same[b] & more;
            uint64_t sum = kept + more;
            const bool over = sum < kept;
            sum += carry;
            carry = uint64_t(over | (sum < carry));
            const uint64_t diagonal = (sum ^ more) | same[b] | less;
            const uint64_t goesRight = less | ~(more | diagonal);
            const uint64_t goesLeft = more & diagonal;
            const uint64_t shifted = goesRight << 1 | right;
            to[b] = (goesLeft << 1 | left) | ~(shifted | diagonal);
            to[n + b] = shifted & diagonal;
            right = goesRight >> 63;
            left = goesLeft >> 63;
        }
    }

    /// The distance of the query from the letters so far.
    uint32_t last(const uint64_t* column, uint32_t depth) const {
        const size_t n = blocks();
        uint32_t value = depth;
        for (size_t b = 0; b < n; ++b) {
            const uint64_t rows = rowsOf(b);
            value += uint32_t(std::popcount(column[b] & rows));
            value -= uint32_t(std::popcount(column[n + b] & rows));
        }
        return value;
    }

    /// False only if every entry of the column is above `most`: then so is
    /// every entry of the columns to come. Row i has `most` or less only where
    /// |i - depth| is no more; 8 rows are looked at together.
    bool mayReach(const uint64_t* column, uint32_t depth, uint32_t most) const {
        const size_t n = blocks();
        int64_t value = depth;
        const int64_t end = int64_t(depth) + most;
        for (size_t b = 0; b < n; ++b) {
            const uint64_t rows = rowsOf(b);
            const uint64_t more = column[b] & rows;
            const uint64_t less = column[n + b] & rows;
            for (int bit = 0; bit < 64; bit += 8) {
                if (int64_t(64 * b) + bit > end) {
                    return false;
                }
                const int down = std::popcount(less >> bit & 0xFF);
                if (value - down <= int64_t(most)) {
                    return true;
                }
                value += std::popcount(more >> bit & 0xFF) - down;
            }
        }
        return false;
    }

    uint32_t distance(
            const uint32_t* word,
            uint32_t length,
            std::vector<uint64_t>& column) const {
        column.resize(2 * blocks());
        first(column.data());
        for (uint32_t i = 0; i < length; ++i) {
            step(word[i], column.data(), column.data());
        }
        return last(column.data(), length);
    }

   private:
    uint64_t rowsOf(size_t block) const {
        const uint64_t begin = 64 * block;
        return begin + 64 <= length_ ? ~uint64_t(0)
                : begin >= length_   ? 0
                                     : ~uint64_t(0) >> (64 - (length_ - begin));
    }

    LetterTable<uint64_t> table_;
    uint32_t length_ = 0;
};

} // namespace faiss_bits::words::cpu
