#include "faiss_bits/ivf/EmptyIvf.h"

#include <utility>

#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexIVFPQ.h>
#include <faiss/IndexScalarQuantizer.h>

namespace faiss_bits::gpu::detail {

std::unique_ptr<faiss::IndexIVF> emptyIvfLike(
        const faiss::IndexIVF& index,
        faiss::Index* quantizer) {
    std::unique_ptr<faiss::IndexIVF> made;
    if (auto* flat = dynamic_cast<const faiss::IndexIVFFlat*>(&index)) {
        made = std::make_unique<faiss::IndexIVFFlat>(
                quantizer, flat->d, flat->nlist, flat->metric_type);
    } else if (
            auto* scalar = dynamic_cast<const faiss::IndexIVFScalarQuantizer*>(
                    &index)) {
        auto copy = std::make_unique<faiss::IndexIVFScalarQuantizer>(
                quantizer,
                scalar->d,
                scalar->nlist,
                scalar->sq.qtype,
                scalar->metric_type,
                scalar->by_residual);
        copy->sq = scalar->sq;
        made = std::move(copy);
    } else {
        const auto& product = dynamic_cast<const faiss::IndexIVFPQ&>(index);
        auto copy = std::make_unique<faiss::IndexIVFPQ>(
                quantizer,
                product.d,
                product.nlist,
                product.pq.M,
                product.pq.nbits);
        copy->metric_type = product.metric_type;
        copy->pq = product.pq;
        copy->by_residual = product.by_residual;
        copy->use_precomputed_table = 0;
        made = std::move(copy);
    }
    made->nprobe = index.nprobe;
    made->is_trained = index.is_trained;
    return made;
}

} // namespace faiss_bits::gpu::detail
