#pragma once

#include "kernels/common/DeviceSpeed.h"
#include "kernels/select/Select.h"

namespace faiss_bits {

/// Microseconds that runSelect is expected to take with this plan of this
/// shape, from the first of its kernels to the end of the last, with keys that
/// are not in a cache. Host only, no CUDA call.
///
/// It is for keys in random order. Orders that mislead the sample, and few
/// distinct values, take longer (docs/design/selection.md). Fitted to an H200,
/// for which docs/plans.md says how near it is; a guess on other GPUs.
double selectMicroseconds(
        const SelectPlan& plan,
        const SelectProblem& shape,
        const DeviceSpeed& speed = {});

} // namespace faiss_bits
