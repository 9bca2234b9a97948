#pragma once

#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/knn/fused/FusedParams.h"

/// When a sample says that more passes of a query than its list has room for.
namespace faiss_bits {

/// SampleLimitParams::overfull: some more members than fill a list, and some
/// deviations; where there is a second sample, more than fill its list too.
uint32_t overfullMembers(const SampleLimitParams& limits);

/// Of strips of the second sample (launchStripLimits): as many as have one of
/// so many members.
uint32_t overfullStrips(const FusedPlan& plan, idx_t numVectors);

} // namespace faiss_bits
