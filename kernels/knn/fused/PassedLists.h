#pragma once
#include <cstdint>
namespace faiss_bits {
/// Where a fused scan leaves what passed: for every query the vectors whose
/// approximate key (a distance, or a similarity with its sign turned) is not
/// above the query's limit. NaN passes.
struct PassedLists {
    const float* limits = nullptr; // [rows]
    uint32_t* counts = nullptr;    // [rows], zero before; what is beyond capacity is counted, not stored
    uint32_t* columns = nullptr;   // [rows, capacity]: numbers of vectors, in any order
    uint32_t capacity = 0;
};
} // namespace faiss_bits
