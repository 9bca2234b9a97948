#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/certified/CertifiedParams.h"

namespace faiss_bits {

/// Rows to be widened to float64 for matrix products.
struct WideRowsParams {
    VectorsParams rows;
    int64_t n = 0;
    int d = 0;
    /// [d], subtracted from each row, but for components that are no numbers;
    /// nullptr: nothing is.
    const float* center = nullptr;
    int64_t stride = 0;        // of the wide rows: d or more, zeros behind them
    double* wide = nullptr;    // [n, stride]
    double* squares = nullptr; // [n], of the norms
    /// Not 0 where a component, less the center, is no integer, or the square
    /// of a norm not small (EstimateRow): set, never cleared.
    uint32_t* areNotIntegers = nullptr;
};

/// Enqueues one kernel. Bound by: a read of the rows and a write of twice or
/// four times as much.
void runWideRows(const WideRowsParams& params, cudaStream_t stream);

} // namespace faiss_bits
