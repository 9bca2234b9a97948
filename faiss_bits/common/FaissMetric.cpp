#include "faiss_bits/common/FaissMetric.h"

#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/FaissCompat.h"

namespace faiss_bits::detail {

std::optional<Metric> findMetric(faiss::MetricType metric) {
    switch (metric) {
        case faiss::METRIC_INNER_PRODUCT:
            return Metric::InnerProduct;
        case faiss::METRIC_L2:
            return Metric::L2;
        case faiss::METRIC_L1:
            return Metric::L1;
        case faiss::METRIC_Linf:
            return Metric::Linf;
        case faiss::METRIC_Lp:
            return Metric::Lp;
        case faiss::METRIC_Canberra:
            return Metric::Canberra;
        case faiss::METRIC_BrayCurtis:
            return Metric::BrayCurtis;
        case faiss::METRIC_JensenShannon:
            return Metric::JensenShannon;
        default:
            return isJaccard(metric) ? std::optional(Metric::Jaccard)
                                     : std::nullopt;
    }
}

Metric knownMetric(faiss::MetricType metric) {
    const std::optional<Metric> known = findMetric(metric);
    FAISS_THROW_IF_NOT_FMT(
            known.has_value(),
            "metric = %d is not supported: METRIC_L2 (%d), "
            "METRIC_INNER_PRODUCT (%d), METRIC_L1, METRIC_Linf, METRIC_Lp, "
            "METRIC_Canberra, METRIC_BrayCurtis, METRIC_JensenShannon and "
            "METRIC_Jaccard are",
            int(metric),
            int(faiss::METRIC_L2),
            int(faiss::METRIC_INNER_PRODUCT));
    return *known;
}

} // namespace faiss_bits::detail
