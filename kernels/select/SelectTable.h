#pragma once

#include <span>

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

    /// By size; the device is another matter.
    constexpr bool fits(const SelectProblem& p) const {
        return keyBytes == int(sizeOf(p.keyType)) && p.rows <= maxRows &&
                p.cols <= maxCols && p.k <= maxK;
    }
};

constexpr idx_t kAnyRows = INT64_MAX;
constexpr idx_t kAnyCols = INT64_MAX;
constexpr idx_t kAnyK = INT64_MAX;

/// Whose rows serve a GPU that has none of its own.
constexpr int kFallbackCapability = 90;

/// Whose rows of a table serve keys of a width on a GPU of `computeCapability`.
constexpr int rowsThatServe(
        std::span<const SelectTableRow> table,
        int computeCapability,
        size_t keyBytes) {
    for (const SelectTableRow& row : table) {
        if (row.computeCapability == computeCapability &&
            row.keyBytes == int(keyBytes)) {
            return computeCapability;
        }
    }
    return kFallbackCapability;
}

/// The first row for the problem's device that fits and that `takes` says yes
/// to, or nullptr.
template <class Takes>
const SelectTableRow* rowFor(
        std::span<const SelectTableRow> table,
        const SelectProblem& problem,
        Takes takes) {
    const int capability = rowsThatServe(
            table, problem.device.computeCapability, sizeOf(problem.keyType));
    for (const SelectTableRow& row : table) {
        if (row.computeCapability == capability && row.fits(problem) &&
            takes(row.algorithm)) {
            return &row;
        }
    }
    return nullptr;
}

/// benchs/tune_select.py writes the rows.
inline constexpr SelectTableRow kSelectTable[] = {
#define BITS_SELECT_ROW(capability, bytes, rows, cols, k, name) \
    {capability, bytes, rows, cols, k, SelectAlgorithm::name},
#include "kernels/select/SelectTable.inc"
#undef BITS_SELECT_ROW
};

} // namespace faiss_bits
