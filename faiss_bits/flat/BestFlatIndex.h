#pragma once

#include <memory>

#include <faiss/IndexFlat.h>

namespace faiss_bits {

/// The fastest exact index that this library has for a machine without a GPU:
/// an IndexFusedFlat.
///
/// d        dimensions of the vectors, >= 1
/// metric   one that IndexFusedFlat has; of METRIC_Lp set metric_arg of the
///          index to p
/// Result   an empty index of that metric
/// Errors   FaissException naming d or metric and its value
std::unique_ptr<faiss::IndexFlat> bestFlatIndex(
        int d,
        faiss::MetricType metric = faiss::METRIC_L2);

} // namespace faiss_bits
