#pragma once

#include <cstdint>

#include "kernels/canonical/Power.h"
#include "kernels/common/Types.h"
#include "kernels/knn/ErrorBound.h"
#include "kernels/knn/RowFacts.h"
#include "kernels/knn/fused/tensor/TensorImage.h"

namespace faiss_bits {

/// Vectors as they lie in memory: component c of vector v is element
/// v * rowStride + c * columnStride.
struct VectorsParams {
    const void* data = nullptr;
    DataType type = DataType::Float32;
    int64_t rowStride = 0;
    int64_t columnStride = 1;
};

/// What the kernels of a certified search get: some queries ("rows") with their
/// candidates, and where their results go.
struct CertifiedParams {
    VectorsParams vectors;
    int64_t n = 0;
    int d = 0;
    canonical::Power power; // Lp
    /// Bit i of word i / 32: vector i may be a result. nullptr: all may.
    const uint32_t* allowedBits = nullptr;
    int64_t numAllowed = 0; // n without a filter; n if it is not known

    const float* queries = nullptr; // [rows, d], exact
    /// The queries that the candidates were found with, [rows, d], where they
    /// are not the same.
    const float* roundedQueries = nullptr;
    uint32_t rows = 0;
    int k = 0;

    /// Candidates, nearest first; in the end of a row, empty places of id -1.
    int numCandidates = 0;
    const float* keys = nullptr;      // [rows, numCandidates], approximate
    const int32_t* columns = nullptr; // the same
    /// nullptr, or [numAllowed]: columns are places in this list of vectors.
    const int32_t* listedIds = nullptr;
    uint64_t* entries = nullptr; // the same, or nullptr: one block a row
    ErrorBound bound;
    const float* greatestNorm = nullptr; // on the device: of all |x|, squared
    const RowMaxima* maxima = nullptr;   // the same, for metrics that want them
    // Where the candidates were found with images of the vectors less a center,
    // and of the queries, but for inner products less the center too (cosine:
    // of normalised rows): what images lost, on the device; |q - q'|; |q|^2 in
    // float32; and for inner products <c, q>.
    const TensorImageFacts* imageFacts = nullptr;
    const float* queryResiduals = nullptr;         // [rows]
    const float* queryNorms = nullptr;             // [rows]
    const CenterProduct* centerProducts = nullptr; // [rows]
    float metricArg = 2;

    /// Two bytes a row: not proved; too many neighbours alike to rank them. A
    /// row of which one is set is searched again.
    uint8_t* flags = nullptr;                  // [rows, 2]
    unsigned long long* numRepeated = nullptr; // add up, or nullptr
    unsigned long long* numRescored = nullptr;

    float* outDistances = nullptr; // [rows, k]
    void* outIds = nullptr;        // [rows, k]
    bool ids64 = true;
};

/// Metrics whose canonical distance sums of products, and norms, tell: those of
/// ProductTile.
constexpr bool isOfProducts(Metric metric) {
    return metric == Metric::L2 || metric == Metric::InnerProduct ||
            metric == Metric::Cosine;
}

/// Queries that are scanned for together, at most.
constexpr int kMaxScanSlots = 1024;

/// The order of the chunks of vectors that a scan takes: the i-th is
/// i * scatter modulo their number.
struct ScanOrder {
    uint32_t chunks = 1;
    uint32_t scatter = 1; // no divisor in common with chunks
    double inverse = 1;   // 1 / chunks
};

/// The scan of all vectors for the rows that are searched again, some of them
/// ("slots") at a time.
struct ScanParams {
    CertifiedParams search;
    uint64_t* lists = nullptr;  // [slots, capacity]
    uint32_t* counts = nullptr; // [slots]
    uint64_t* limits = nullptr; // [slots]
    uint32_t slots = 0;
    uint32_t keep = 0;    // entries that a list is cut back to: min(k, n)
    int64_t capacity = 0; // entries of a list, more than `keep`
    ScanOrder order;
};

} // namespace faiss_bits
