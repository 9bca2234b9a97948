#pragma once

#include <cstdint>
#include <vector>

#include <faiss/impl/IDSelector.h>

#include "faiss_bits/common/FaissCompat.h"

/// What an IDSelector selects of a flat index. Not part of the API.
namespace faiss_bits::detail {

/// Throws FaissException for an array of ids or a bitmap that is null.
void requireMemory(const faiss::IDSelector& selector);

/// 1 for each of the ids 0 .. n - 1 that is selected, else 0. O(n), and one
/// is_member call an id, save for arrays of ids (which answer it in O(size))
/// and their complements. What is_member throws goes through.
std::vector<uint8_t> membersOf(const faiss::IDSelector& selector, idx_t n);

/// The selected ids among 0 .. n - 1, ascending, each once. As membersOf, but
/// ranges and arrays cost their size alone.
std::vector<idx_t> selectedIds(const faiss::IDSelector& selector, idx_t n);

} // namespace faiss_bits::detail
