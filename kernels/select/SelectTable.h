#pragma once

#include "kernels/select/Select.h"

namespace faiss_bits {

/// A row of the tuning table: the fastest algorithm measured for problems up
/// to this size. The first row that fits counts.
struct SelectTableRow {
    int computeCapability; // of the GPU that it was measured on, 90 = 9.0
    int keyBytes;
    idx_t maxRows;
    idx_t maxCols;
    idx_t maxK;
    SelectAlgorithm algorithm;

    constexpr bool fits(const SelectProblem& p) const {
        return keyBytes == int(sizeOf(p.keyType)) && p.rows <= maxRows &&
                p.cols <= maxCols && p.k <= maxK;
    }
};

constexpr idx_t kAnyRows = INT64_MAX;
constexpr idx_t kAnyCols = INT64_MAX;
constexpr idx_t kAnyK = INT64_MAX;

/// benchs/tune_select.py writes the rows. They serve every GPU until another
/// one is measured.
inline constexpr SelectTableRow kSelectTable[] = {
#define BITS_SELECT_ROW(capability, bytes, rows, cols, k, name) \
    {capability, bytes, rows, cols, k, SelectAlgorithm::name},
#include "kernels/select/SelectTable.inc"
#undef BITS_SELECT_ROW
};

} // namespace faiss_bits
