#include "faiss_bits/cloners/FusedCloner.h"

#include <memory>
#include <typeinfo>

#include <faiss/IndexFlat.h>
#include <faiss/IndexRefine.h>

#include "faiss_bits/common/FaissErrors.h"
#include "faiss_bits/common/FaissMetric.h"
#include "faiss_bits/flat/FusedDistance.h"
#include "faiss_bits/flat/IndexFusedFlat.h"
#include "faiss_bits/ivf/IndexFusedIVFFlat.h"

namespace faiss_bits {

faiss::Index* FusedCloner::clone_Index(const faiss::Index* index) {
    const auto* flat = dynamic_cast<const faiss::IndexFlat*>(index);
    if (flat && isPlainFlat(*flat) && detail::findMetric(flat->metric_type)) {
        return new IndexFusedFlat(*flat);
    }
    const auto* ivf = dynamic_cast<const faiss::IndexIVFFlat*>(index);
    if (ivf && isPlainIvf(*ivf)) {
        return new IndexFusedIVFFlat(*ivf);
    }
    // Not every FAISS can clone it.
    if (const auto* refine = dynamic_cast<const faiss::IndexRefine*>(index)) {
        if (typeid(*refine) == typeid(faiss::IndexRefineFlat)) {
            return cloneRefine(
                    *refine, std::make_unique<faiss::IndexRefineFlat>());
        }
        if (typeid(*refine) == typeid(faiss::IndexRefine)) {
            return cloneRefine(*refine, std::make_unique<faiss::IndexRefine>());
        }
    }
    return Cloner::clone_Index(index);
}

faiss::Index* FusedCloner::cloneRefine(
        const faiss::IndexRefine& index,
        std::unique_ptr<faiss::IndexRefine> clone) {
    clone->d = index.d;
    clone->ntotal = index.ntotal;
    clone->verbose = index.verbose;
    clone->is_trained = index.is_trained;
    clone->metric_type = index.metric_type;
    clone->metric_arg = index.metric_arg;
    clone->k_factor = index.k_factor;
    clone->base_index = nullptr;
    clone->refine_index = nullptr;
    clone->own_fields = clone->own_refine_index = true;
    clone->base_index = clone_Index(index.base_index);
    clone->refine_index = clone_Index(index.refine_index);
    return clone.release();
}

faiss::Index* index_to_fused(const faiss::Index* index) {
    detail::requireNotNull(index, "index");
    return FusedCloner().clone_Index(index);
}

} // namespace faiss_bits
