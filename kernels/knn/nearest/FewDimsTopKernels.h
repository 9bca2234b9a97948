#pragma once

#include <cuda_runtime_api.h>

#include "kernels/canonical/RoundedOps.h"
#include "kernels/knn/certified/CertifiedParams.h"

namespace faiss_bits {

/// Places of a query, at most, and of vectors of up to kMostLongTopDims.
constexpr int kMostFewDimsTop = 16;
constexpr int kMostLongTop = 128;
constexpr int kMostLongTopDims = 4;
constexpr int mostFewDimsTop(int d) {
    return d <= kMostLongTopDims ? kMostLongTop : kMostFewDimsTop;
}
/// Dimensions of vectors.
constexpr int kMostFewDimsOfTop = 16;
/// A unit of vectors, which a block has in shared memory, is of four strips;
/// values of four lie side by side.
constexpr uint32_t kFewDimsTopStrips = 4;
/// Vectors of a strip: a warp has one each of 32, 64 or 128.
constexpr uint32_t kLeastLogTopStrip = 5;
constexpr uint32_t kMostLogTopStrip = 7;
constexpr int kFewDimsTopThreads = 128;
/// That finish a query each, of a block.
constexpr uint32_t kFewDimsTopWarps = 8;
/// Of a thread of the scan.
constexpr int kFewDimsTopQueries = 4;

struct FewDimsTopParams {
    CertifiedParams search;
    /// What the scan meets: the same, but of cosines vectors and queries of
    /// length 1, in float32 and row-major.
    CertifiedParams scan;
    uint32_t units = 0;
    uint32_t logStrip = 0;
    /// [rows, units, kFewDimsTopStrips]: no vector of the strip is nearer to
    /// the query.
    float* least = nullptr;
    /// [rows, units]: how far a value of the unit may be from a distance.
    float* errors = nullptr;
};

/// Rows to length 1, in float64 and rounded once: NaN where a component is none
/// or infinite, zeros where all are.
struct UnitRowsParams {
    VectorsParams rows;
    int64_t n = 0;
    int d = 0;
    float* out = nullptr; // [n, d]
};

/// In one launch; one of them may have no rows.
struct UnitRowSets {
    UnitRowsParams vectors;
    UnitRowsParams queries;
};

void launchUnitRows(const UnitRowSets& sets, cudaStream_t stream);

/// Enqueues the scan in float32 and what finishes the queries. L2, InnerProduct
/// or Cosine; search.d up to kMostFewDimsOfTop, search.k up to
/// mostFewDimsTop().
void launchFewDimsTop(
        Metric metric,
        const FewDimsTopParams& params,
        cudaStream_t stream);

} // namespace faiss_bits
