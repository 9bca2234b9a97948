#include "kernels/knn/filter/FilterPlan.h"

namespace faiss_bits {

namespace {

/// Time of a multiply-add of a product, counted in bytes that memory moves
/// meanwhile: 4.5e12 B/s over 25e12 (float32) and 250e12 (16-bit) a second
/// (H200, by products that do not reach their limits).
double bytesPerMultiply(DataType type) {
    return type == DataType::Float32 ? 0.18 : 0.018;
}

} // namespace

bool listPays(
        const FlatKnnProblem& p,
        const DistanceMethod& method,
        idx_t sharing) {
    if (!p.allowedIds || !p.vectorsRowMajor ||
        !(method.addsNorms || method.readsFilter)) {
        return false;
    }
    const double n = double(p.numVectors);
    const double listed = double(p.numAllowed);
    if (!method.addsNorms) {
        // The bits save the same reads of vectors. The list saves a write and a
        // read of each distance, and costs 4 bytes and a whole sector where
        // vectors are short.
        return listed <= n / 4;
    }
    if (p.numVectors < 2 * kLeastGatheredVectors) {
        return false;
    }
    // A vector of a product and its distances, written and read; and what it
    // costs to copy it together.
    const double bytes = double(p.d) * double(sizeOf(p.dataType));
    const double queries = double(sharing);
    const double one =
            std::max(bytes, queries * p.d * bytesPerMultiply(p.dataType)) +
            2 * sizeof(float) * queries;
    const double wide = std::max(listed, double(kLeastGatheredVectors));
    return wide * (one + 2 * bytes) <= 0.9 * n * one;
}

} // namespace faiss_bits
