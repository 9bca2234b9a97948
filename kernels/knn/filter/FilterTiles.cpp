#include "kernels/knn/filter/FilterTiles.h"

#include "kernels/knn/Norms.h"
#include "kernels/knn/filter/FilterColumns.h"
#include "kernels/knn/filter/FilterPlan.h"

namespace faiss_bits {

void FilterTiles::enter(
        idx_t first,
        idx_t count,
        const float* vectorNorms,
        cudaStream_t stream) {
    if (scratch_.wideIds && !widened_) {
        runWidenIds(p_.allowedIds, p_.numAllowed, scratch_.wideIds, stream);
        widened_ = true;
    }
    float* bias = scratch_.columnBias;
    if (!bias || first == entered_) {
        return;
    }
    entered_ = first;
    const bool isL2 = p_.metric == Metric::L2;
    if (!plan_.byList) {
        runAllowedBias(
                p_.allowedBits,
                isL2 ? vectorNorms : nullptr,
                first,
                count,
                bias,
                stream);
        return;
    }
    const int32_t* ids = p_.allowedIds + first;
    runGatherRows(
            p_.vectors,
            size_t(p_.d) * sizeOf(p_.dataType),
            ids,
            count,
            gatheredWidth(count),
            scratch_.gathered,
            stream);
    if (isL2 && !vectorNorms) {
        // The bits of a norm do not depend on where its vector lies.
        runSquaredNorms(
                scratch_.gathered,
                p_.dataType,
                true,
                count,
                p_.d,
                bias,
                stream);
        runListedBias(ids, bias, true, count, bias, stream);
    } else {
        runListedBias(
                ids, isL2 ? vectorNorms : nullptr, false, count, bias, stream);
    }
}

void FilterTiles::leave(
        idx_t first,
        idx_t count,
        idx_t queries,
        cudaStream_t stream) const {
    if (p_.allowedBits && !plan_.method->addsNorms &&
        !plan_.method->readsFilter) {
        runMaskValues(
                p_.allowedBits,
                first,
                count,
                queries,
                scratch_.distances,
                plan_.distanceStride,
                stream);
    }
}

} // namespace faiss_bits
