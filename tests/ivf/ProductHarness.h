#pragma once

#include "faiss_bits/ivf/GpuIndexBitsIVFPQ.h"
#include "tests/ivf/CodedHarness.h"

/// What the tests of GpuIndexBitsIVFPQ share.
namespace faiss_bits::test {

using gpu::GpuIndexBitsIVFPQ;

using ProductData = CodedData<
        faiss::IndexIVFPQ,
        GpuIndexBitsIVFPQ,
        faiss::gpu::GpuIndexIVFPQConfig>;

struct ProductShape {
    int dims;
    int parts;
    int bits;
};

inline std::ostream& operator<<(std::ostream& out, const ProductShape& s) {
    return out << s.dims << " dims in " << s.parts << " parts of " << s.bits
               << " bits";
}

/// A codebook of any numbers, integers where vectors are.
inline std::unique_ptr<faiss::IndexIVFPQ> trainedProduct(
        const IvfCase& c,
        const ProductShape& shape,
        faiss::Index* quantizer) {
    auto index = std::make_unique<faiss::IndexIVFPQ>(
            quantizer, c.d, c.nlist, shape.parts, shape.bits, c.metric);
    index->pq.centroids = makeVectors(
            int64_t(index->pq.M * index->pq.ksub),
            int(index->pq.dsub),
            c.seed + 3,
            c.fill);
    index->is_trained = true;
    return index;
}

/// codes: all bytes are below it.
inline ProductData makeProduct(
        IvfCase c,
        const ProductShape& shape,
        uint32_t codes = 256) {
    c.d = shape.dims;
    return ProductData(
            c,
            [&](faiss::Index* quantizer) {
                return trainedProduct(c, shape, quantizer);
            },
            codes);
}

} // namespace faiss_bits::test
