#include "faiss_bits/cloners/FusedCloner.h"

#include <faiss/IndexFlat.h>

#include "faiss_bits/cloners/ClonedRefine.h"
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
    const auto clonePart = [this](const faiss::Index* part) {
        return clone_Index(part);
    };
    if (auto* refine = detail::cloneRefine(index, clonePart, clonePart)) {
        return refine;
    }
    return Cloner::clone_Index(index);
}

faiss::Index* index_to_fused(const faiss::Index* index) {
    detail::requireNotNull(index, "index");
    return FusedCloner().clone_Index(index);
}

} // namespace faiss_bits
