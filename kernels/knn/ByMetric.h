#pragma once

#include "kernels/common/Error.h"
#include "kernels/common/Types.h"

namespace faiss_bits {

/// What body.operator()<kMetric>() returns for the metric, of those of the
/// build.
template <class Body>
auto byMetric(Metric metric, const Body& body) {
    switch (metric) {
        case Metric::L2:
            return body.template operator()<Metric::L2>();
        case Metric::InnerProduct:
            return body.template operator()<Metric::InnerProduct>();
#ifdef FAISS_BITS_PRODUCTS_ONLY
        default:
            break;
#else
        case Metric::L1:
            return body.template operator()<Metric::L1>();
        case Metric::Linf:
            return body.template operator()<Metric::Linf>();
        case Metric::Lp:
            return body.template operator()<Metric::Lp>();
        case Metric::Cosine:
            return body.template operator()<Metric::Cosine>();
        case Metric::Canberra:
            return body.template operator()<Metric::Canberra>();
        case Metric::BrayCurtis:
            return body.template operator()<Metric::BrayCurtis>();
        case Metric::JensenShannon:
            return body.template operator()<Metric::JensenShannon>();
        case Metric::Jaccard:
            return body.template operator()<Metric::Jaccard>();
#endif
    }
    throw Error(formatMessage("metric = %d is unknown", int(metric)));
}

} // namespace faiss_bits
