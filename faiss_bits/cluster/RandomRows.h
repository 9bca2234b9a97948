#pragma once

#include <cstdint>
#include <vector>

#include "faiss_bits/common/FaissCompat.h"

/// Rows that FAISS's k-means draws from its training vectors. Host only. Not
/// part of the API.
namespace faiss_bits::detail {

/// The first `count` numbers of faiss::rand_perm(n, seed), without the others.
/// Few of them take O(count) time and memory. 0 <= count <= n < 2^31.
std::vector<idx_t> firstOfPermutation(idx_t n, idx_t count, int64_t seed);

/// `count` of n rows, some of them perhaps more than once, as FAISS's
/// use_faster_subsampling draws them. n >= 1.
std::vector<idx_t> rowsWithRepeats(idx_t n, idx_t count, uint64_t seed);

} // namespace faiss_bits::detail
