#pragma once

#include "kernels/select/Select.h"

namespace faiss_bits::test {

/// What a plan is asked for: a shape on an H200 (an H100 has the same traits),
/// no arrays.
inline SelectProblem onH200(
        idx_t rows,
        idx_t cols,
        int k,
        DataType type = DataType::Float32) {
    SelectProblem p;
    p.rows = rows;
    p.cols = cols;
    p.k = k;
    p.keyType = type;
    p.device = {90, 132, 228 * 1024, 227 * 1024};
    return p;
}

} // namespace faiss_bits::test
