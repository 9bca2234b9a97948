#include "faiss_bits/cloners/ClonedRefine.h"

#include <memory>
#include <typeinfo>

#include <faiss/IndexRefine.h>

namespace faiss_bits::detail {

namespace {

/// An empty one of the same class; null for a class that is neither.
std::unique_ptr<faiss::IndexRefine> emptyLike(const faiss::IndexRefine& index) {
    if (typeid(index) == typeid(faiss::IndexRefineFlat)) {
        return std::make_unique<faiss::IndexRefineFlat>();
    }
    if (typeid(index) == typeid(faiss::IndexRefine)) {
        return std::make_unique<faiss::IndexRefine>();
    }
    return nullptr;
}

} // namespace

faiss::Index* cloneRefine(
        const faiss::Index* index,
        const ClonePart& cloneBase,
        const ClonePart& cloneRefining) {
    const auto* refine = dynamic_cast<const faiss::IndexRefine*>(index);
    auto clone = refine ? emptyLike(*refine) : nullptr;
    if (!clone) {
        return nullptr;
    }
    clone->d = refine->d;
    clone->ntotal = refine->ntotal;
    clone->verbose = refine->verbose;
    clone->is_trained = refine->is_trained;
    clone->metric_type = refine->metric_type;
    clone->metric_arg = refine->metric_arg;
    clone->k_factor = refine->k_factor;
    clone->base_index = nullptr;
    clone->refine_index = nullptr;
    clone->own_fields = clone->own_refine_index = true;
    clone->base_index = cloneBase(refine->base_index);
    clone->refine_index = cloneRefining(refine->refine_index);
    return clone.release();
}

} // namespace faiss_bits::detail
