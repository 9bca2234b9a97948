#pragma once

#include "tests/select/SelectHarness.h"

namespace faiss_bits::test {

/// Rows for the kernels of short rows. On one multiprocessor few rows are many.
inline SelectCase shortRowsCase(int64_t rows, int64_t cols) {
    SelectCase c;
    c.rows = rows;
    c.cols = cols;
    c.multiprocessors = 1;
    c.algorithm = SelectAlgorithm::ShortRows;
    return c;
}

} // namespace faiss_bits::test
