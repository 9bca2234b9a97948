#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "research/benchs/QueueMethods.h"

namespace faiss_bits::bench {

/// Floats that the figures need, at most rows * cols of a cell.
constexpr int64_t kPaperKeys = int64_t(1) << 29;
/// Columns of the single row of figure 5.7.
constexpr int64_t kSingleRow = int64_t(1) << 27;

/// One point of a figure. A method at a shape may be a point of several
/// figures; it is measured once.
struct PaperCell {
    std::string figure;
    PaperMethod method;
    int64_t rows;
    int64_t cols;
    int k;
    bool sorted = true;

    /// The same for cells that measure the same.
    std::string key() const;
};

/// All figures in the order of measuring: "hanak_5.2" to "hanak_5.7",
/// "tang_6" to "tang_9b", "tang_table_1", "hanak_5.10", "hanak_5.11".
/// `ids`: see partitionedBits.
std::vector<PaperCell> paperCells(const int32_t* ids);

} // namespace faiss_bits::bench
