#pragma once

#include <cstdint>

namespace faiss_bits {

/// Where a fused scan leaves what passed: for every query the vectors whose
/// approximate key (a distance, or a similarity with its sign turned) is not
/// above the query's limit. NaN passes.
struct PassedLists {
    const float* limits = nullptr; // [rows]
    // [rows], zero before; what is beyond capacity is not stored, and counted
    // or not: counts of such lists are above capacity
    uint32_t* counts = nullptr;
    // [rows, capacity]: numbers of vectors, in any order
    uint32_t* columns = nullptr;
    uint32_t capacity = 0;
    /// In place of columns: the scan's product of each (float32 bits) above the
    /// vector's number, [rows, capacity]. Of scans that canKeepProducts().
    /// nullptr: columns.
    uint64_t* products = nullptr;
    /// In place of lists, which have no room for all: bit i % 32 of word i / 32
    /// of a row is set where row i of the image passed (FusedScan::rows() says
    /// which vector that is), [rows, words], zero before. Counts and columns
    /// are not touched then. nullptr: lists.
    uint32_t* bits = nullptr;
    uint64_t words = 0;
};

} // namespace faiss_bits
