#pragma once

#include <memory>

#include <faiss/IndexFlat.h>

namespace faiss_bits {

/// The fastest exact index that this library has for a machine without a GPU.
///
/// For now it is FAISS's own IndexFlat; callers need not change when it
/// becomes ours.
///
/// d        dimensions of the vectors, >= 1
/// metric   METRIC_L2 or METRIC_INNER_PRODUCT
/// Result   an empty index of that metric
/// Errors   FaissException naming d or metric and its value
std::unique_ptr<faiss::IndexFlat> bestFlatIndex(
        int d,
        faiss::MetricType metric = faiss::METRIC_L2);

} // namespace faiss_bits
