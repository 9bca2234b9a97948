#include "faiss_bits/cluster/RandomRows.h"

#include <numeric>
#include <unordered_map>

#include <faiss/impl/FaissAssert.h>
#include <faiss/utils/random.h>

#include "faiss_bits/common/FaissErrors.h"

namespace faiss_bits::detail {

namespace {

/// 0, 1, 2, ... with some places changed, all of them in memory.
class AllNumbers {
   public:
    explicit AllNumbers(idx_t n) : numbers_(n) {
        std::iota(numbers_.begin(), numbers_.end(), 0);
    }
    idx_t at(idx_t place) const {
        return numbers_[place];
    }
    void set(idx_t place, idx_t number) {
        numbers_[place] = int32_t(number);
    }

   private:
    std::vector<int32_t> numbers_;
};

/// The same with the changed places alone.
class MovedNumbers {
   public:
    explicit MovedNumbers(idx_t count) {
        moved_.reserve(size_t(count));
    }
    idx_t at(idx_t place) const {
        const auto found = moved_.find(place);
        return found == moved_.end() ? place : found->second;
    }
    void set(idx_t place, idx_t number) {
        moved_[place] = number;
    }

   private:
    std::unordered_map<idx_t, idx_t> moved_;
};

/// FAISS swaps each place with one behind it, in turn: the first places are
/// settled by the first swaps.
template <class Numbers>
void swapFirst(
        Numbers& numbers,
        idx_t n,
        idx_t count,
        int64_t seed,
        std::vector<idx_t>& first) {
    faiss::RandomGenerator random(seed);
    for (idx_t i = 0; i < count; ++i) {
        // The last place has nothing behind it, and FAISS draws no number.
        const idx_t other = i + 1 < n ? i + random.rand_int(int(n - i)) : i;
        first.push_back(numbers.at(other));
        numbers.set(other, numbers.at(i));
    }
}

} // namespace

std::vector<idx_t> firstOfPermutation(idx_t n, idx_t count, int64_t seed) {
    FAISS_THROW_IF_NOT_FMT(
            n <= INT32_MAX,
            "n = %lld is more than 2^31 - 1 training vectors, from which FAISS "
            "draws no permutation",
            (long long)n);
    requireWithin(count, 0, n, "count");
    std::vector<idx_t> first;
    if (count < n / 16) {
        first.reserve(count);
        MovedNumbers numbers(count);
        swapFirst(numbers, n, count, seed, first);
    } else {
        AllNumbers numbers(n);
        swapFirst(numbers, n, count, seed, first);
    }
    return first;
}

std::vector<idx_t> rowsWithRepeats(idx_t n, idx_t count, uint64_t seed) {
    requirePositive(n, "n");
    requireCount(count, "count");
    std::vector<idx_t> rows(count);
    // SplitMix64 (Steele, Lea, Flood 2014), which this option is made of.
    for (idx_t i = 0; i < count; ++i) {
        uint64_t bits = seed + uint64_t(i + 1) * 0x9e3779b97f4a7c15u;
        bits ^= bits >> 30;
        bits *= 0xbf58476d1ce4e5b9u;
        bits ^= bits >> 27;
        bits *= 0x94d049bb133111ebu;
        bits ^= bits >> 31;
        rows[i] = idx_t(bits & INT64_MAX) % n;
    }
    return rows;
}

} // namespace faiss_bits::detail
