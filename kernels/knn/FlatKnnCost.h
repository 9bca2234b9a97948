#pragma once

#include "kernels/common/DeviceSpeed.h"
#include "kernels/knn/FlatKnnPlan.h"

namespace faiss_bits {

/// Microseconds that runFlatKnn is expected to take with this plan: one search
/// by itself, with the launch of its kernels, and vectors that are not in a
/// cache. Copies to and from the host are not in it. Host only, no CUDA call.
///
/// It is for vectors and queries of one distribution, without many equal
/// distances: queries that are searched again, and lists that are longer than
/// usual, are not in it. Fitted to an H200, for which docs/plans.md says how
/// near it is; a guess on other GPUs.
double flatKnnMicroseconds(
        const FlatKnnPlan& plan,
        const FlatKnnProblem& problem,
        const DeviceSpeed& speed = {});

} // namespace faiss_bits
