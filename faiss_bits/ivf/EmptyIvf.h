#pragma once

#include <memory>

#include <faiss/IndexIVF.h>

/// Not part of the API.
namespace faiss_bits::gpu::detail {

/// An index without vectors, of the same kind, that does not own its quantizer.
/// index is an IndexIVFFlat, IndexIVFScalarQuantizer or IndexIVFPQ.
std::unique_ptr<faiss::IndexIVF> emptyIvfLike(
        const faiss::IndexIVF& index,
        faiss::Index* quantizer);

} // namespace faiss_bits::gpu::detail
