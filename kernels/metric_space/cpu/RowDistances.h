#pragma once

#include "kernels/common/Types.h"

namespace faiss_bits::metric_space {

/// The canonical distance, rounded to float32, of two vectors of d components
/// by L2, L1 or Linf (kernels/canonical/Distance.h). By one thread, eight
/// components at a time.
using RowDistance = float (*)(const float* x, const float* q, int d);

RowDistance rowDistanceOf(Metric metric);

/// Whether no component is NaN or infinite.
bool isFinite(const float* x, int d);

} // namespace faiss_bits::metric_space
