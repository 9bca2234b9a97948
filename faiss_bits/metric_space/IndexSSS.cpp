#include "faiss_bits/metric_space/IndexSSS.h"

#include "faiss_bits/metric_space/MetricOptions.h"

namespace faiss_bits {

IndexSSS::IndexSSS(int d, faiss::MetricType metric, double alpha, int maxPivots)
        : IndexMetricSpace(detail::sssContents(d, metric, alpha, maxPivots)) {}

double IndexSSS::alpha() const {
    return contents_().pivotOptions.alpha;
}

int IndexSSS::maxPivots() const {
    return contents_().pivotOptions.maxPivots;
}

idx_t IndexSSS::numPivots() const {
    return idx_t(contents_().table.pivots.size());
}

} // namespace faiss_bits
