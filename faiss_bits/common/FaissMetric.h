#pragma once

#include <optional>

#include <faiss/MetricType.h>

#include "kernels/common/Types.h"

namespace faiss_bits::detail {

/// The kernels' name of one of FAISS's metrics; none for one that we do not
/// have.
std::optional<Metric> findMetric(faiss::MetricType metric);

/// The same, but throws FaissException naming one that we do not have.
Metric knownMetric(faiss::MetricType metric);

} // namespace faiss_bits::detail
