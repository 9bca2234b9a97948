#include "kernels/knn/fused/tensor/TensorImage.h"

#include "kernels/common/Workspace.h"

namespace faiss_bits {

namespace {

TensorImage slicesOf(
        WorkspaceSlices& slices,
        idx_t rows,
        int d,
        bool areQueries) {
    BITS_THROW_IF_NOT_FMT(
            rows >= 0, "rows = %lld is negative", (long long)rows);
    BITS_THROW_IF_NOT_FMT(d >= 1, "d = %d is below 1", d);
    const TensorImageLayout layout(rows, d);
    TensorImage image;
    image.pieces = slices.take<uint8_t>(layout.pieceBytes());
    if (areQueries) {
        image.inverses = slices.take<float>(layout.capacity);
        image.residuals = slices.take<float>(layout.capacity);
    } else {
        image.norms = slices.take<float>(layout.capacity);
        image.normSteps = slices.take<uint16_t>(layout.capacity * 16);
        image.facts = slices.take<TensorImageFacts>(1);
    }
    return image;
}

} // namespace

size_t tensorImageBytes(idx_t rows, int d, bool areQueries) {
    WorkspaceSlices slices;
    slicesOf(slices, rows, d, areQueries);
    return slices.used();
}

TensorImage tensorImageAt(void* memory, idx_t rows, int d, bool areQueries) {
    BITS_THROW_IF_NOT_FMT(memory, "memory = nullptr");
    WorkspaceSlices slices({memory, tensorImageBytes(rows, d, areQueries)});
    return slicesOf(slices, rows, d, areQueries);
}

} // namespace faiss_bits
