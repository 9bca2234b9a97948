#pragma once

#include <ostream>

#include "kernels/common/Types.h"

/// Names of metrics in the output of tests.
namespace faiss_bits::test {

inline const char* metricName(Metric metric) {
    switch (metric) {
        case Metric::L2:
            return "L2";
        case Metric::InnerProduct:
            return "InnerProduct";
        case Metric::L1:
            return "L1";
        case Metric::Linf:
            return "Linf";
        case Metric::Lp:
            return "Lp";
        case Metric::Cosine:
            return "Cosine";
        case Metric::Canberra:
            return "Canberra";
        case Metric::BrayCurtis:
            return "BrayCurtis";
        case Metric::JensenShannon:
            return "JensenShannon";
        case Metric::Jaccard:
            return "Jaccard";
    }
    return "?";
}

} // namespace faiss_bits::test

namespace faiss_bits {

/// GoogleTest's name of a parameter.
inline void PrintTo(Metric metric, std::ostream* out) {
    *out << test::metricName(metric);
}

} // namespace faiss_bits
