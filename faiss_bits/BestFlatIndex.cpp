#include "faiss_bits/BestFlatIndex.h"

#include <faiss/impl/FaissAssert.h>

namespace faiss_bits {

std::unique_ptr<faiss::IndexFlat> bestFlatIndex(
        int d,
        faiss::MetricType metric) {
    FAISS_THROW_IF_NOT_FMT(d >= 1, "d = %d, at least 1 is needed", d);
    switch (metric) {
        case faiss::METRIC_L2:
            return std::make_unique<faiss::IndexFlatL2>(d);
        case faiss::METRIC_INNER_PRODUCT:
            return std::make_unique<faiss::IndexFlatIP>(d);
        default:
            FAISS_THROW_FMT(
                    "metric = %d is not supported: METRIC_L2 (%d) and "
                    "METRIC_INNER_PRODUCT (%d) are",
                    int(metric),
                    int(faiss::METRIC_L2),
                    int(faiss::METRIC_INNER_PRODUCT));
    }
}

} // namespace faiss_bits
