#include "faiss_bits/cloners/FusedCloner.h"

#include <faiss/IndexFlat.h>

#include "faiss_bits/common/FaissErrors.h"
#include "faiss_bits/flat/FusedDistance.h"
#include "faiss_bits/flat/IndexFusedFlat.h"

namespace faiss_bits {

faiss::Index* FusedCloner::clone_Index(const faiss::Index* index) {
    const auto* flat = dynamic_cast<const faiss::IndexFlat*>(index);
    if (flat && isPlainFlat(*flat) && findFusedMetric(flat->metric_type)) {
        return new IndexFusedFlat(*flat);
    }
    return Cloner::clone_Index(index);
}

faiss::Index* index_to_fused(const faiss::Index* index) {
    detail::requireNotNull(index, "index");
    return FusedCloner().clone_Index(index);
}

} // namespace faiss_bits
