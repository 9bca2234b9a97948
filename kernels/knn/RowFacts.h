#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Types.h"

namespace faiss_bits {

/// What a metric's fast arithmetic wants to know of every vector and query. A
/// fact below 0 says that the row is not for it ("not fit").
enum class RowFacts : uint8_t {
    None,
    Sum,                ///< of components that are not below 0; at most 2^126
    CanberraRange,      ///< 0: each is 0, or of a size in [2^-40, 2^60]
    JensenShannonRange, ///< 0: each is 0, or in [2^-100, 2^100]
    InverseNorm,        ///< 1 / |x| for |x| in [2^-40, 2^60]; 0 for zeros
};

/// Those of the methods for this metric.
constexpr RowFacts rowFactsOf(Metric metric) {
    switch (metric) {
        case Metric::BrayCurtis:
        case Metric::Jaccard:
            return RowFacts::Sum;
        case Metric::Canberra:
            return RowFacts::CanberraRange;
        case Metric::JensenShannon:
            return RowFacts::JensenShannonRange;
        case Metric::Cosine:
            return RowFacts::InverseNorm;
        default:
            return RowFacts::None;
    }
}

/// facts[i] of each of n rows of d components.
///
/// Shapes   rows [n, d] of dataType, or [d, n] if not rowMajor; facts [n]
/// Result   sums in float32, in an order that depends on d and the layout
///          alone; infinite and NaN components are not fit
/// Stream   enqueues, never waits
/// Errors   throws Error for a null pointer or a failed launch
/// Cost     one read of the rows
void runRowFacts(
        RowFacts kind,
        const void* rows,
        DataType dataType,
        bool rowMajor,
        idx_t n,
        int d,
        float* facts,
        cudaStream_t stream);

/// What the error bounds (ErrorBound.h) want to know of all rows together.
struct RowMaxima {
    float sum = 0;     ///< largest sum of |components| of a row
    float squares = 0; ///< largest sum of their squares
};

/// The maxima over n rows, as runRowFacts; out is on the device. Sums are of
/// float32, low by a part of d 2^-24 at most (the bounds allow for it); NaN
/// components and sums beyond the range make them infinite. No rows: zeros.
void runRowMaxima(
        const void* rows,
        DataType dataType,
        bool rowMajor,
        idx_t n,
        int d,
        RowMaxima* out,
        cudaStream_t stream);

} // namespace faiss_bits
