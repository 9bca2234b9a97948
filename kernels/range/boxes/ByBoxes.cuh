/// Which instantiation of a kernel serves some boxes.
#pragma once

#include "kernels/range/boxes/BoxParams.h"

namespace faiss_bits {

/// body.operator()<kMetric, kDims>() of those of the boxes.
template <class Body>
void withBoxes(const RangeBoxes& boxes, const Body& body) {
    const auto withDims = [&]<Metric kMetric>() {
        if (boxes.dims == 3) {
            body.template operator()<kMetric, 3>();
        } else {
            body.template operator()<kMetric, 4>();
        }
    };
    switch (boxes.shape.metric) {
        case Metric::L1:
            return withDims.template operator()<Metric::L1>();
        case Metric::Linf:
            return withDims.template operator()<Metric::Linf>();
        default:
            return withDims.template operator()<Metric::L2>();
    }
}

} // namespace faiss_bits
