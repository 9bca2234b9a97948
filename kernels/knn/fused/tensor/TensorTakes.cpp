/// Which searches have images in 16 and in 8 bits.

#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/fused/tensor/SearchImage.h"
#include "kernels/knn/fused/tensor/TensorScan.h"

namespace faiss_bits {

namespace {

/// Short cosines of few queries take less time component by component, and so
/// does the nearest of few vectors. Range searches, whose own images are in
/// order, were not measured.
bool takesCosine(const FlatKnnProblem& p) {
    constexpr int kShort = 16;
    constexpr idx_t kFew = 512;
    constexpr idx_t kFewVectors = 8192;
    constexpr double kFewPairs = 0x1p25;
    const idx_t queries = batchOf(p);
    return p.d > kShort ||
            (queries > kFew && !p.imageInOrder &&
             (p.k > 1 ||
              (p.numVectors >= kFewVectors &&
               double(queries) * double(p.numVectors) > kFewPairs)));
}

} // namespace

bool takesBytes(const FlatKnnProblem& p) {
    // Of fewer that are copied together what a scan in 8 bits saves is less
    // than what more passes takes.
    constexpr idx_t kLeastShare = 4;
    return hasByteImage(p) && !p.limits && batchOf(p) > kFewQueries &&
            scannedVectors(p) > p.numVectors / kLeastShare;
}

bool canUseSearchImage(const FlatKnnProblem& p) {
    return (p.metric == Metric::L2 || p.metric == Metric::InnerProduct ||
            (p.metric == Metric::Cosine && takesCosine(p))) &&
            p.vectorsRowMajor &&
            hasTensorScan(TensorScanKernel::Auto, p.device);
}

bool searchImageHelps(const FlatKnnProblem& p) {
    // In one to three dimensions neighbours are closer together than 16 bits
    // tell apart: most of what passes would be no neighbour.
    constexpr int kLeastDims = 4;
    // Few queries take less time component by component. Range searches were
    // not measured so.
    constexpr int kLeastDimsOfSome = 9;
    constexpr int kLeastDimsOfFew = 48;
    constexpr idx_t kFew = 3;
    const idx_t queries = batchOf(p);
    return p.d >= (queries <= kFew ? kLeastDimsOfFew
                           : queries <= kFewQueries && !p.limits
                           ? kLeastDimsOfSome
                           : kLeastDims);
}

} // namespace faiss_bits
