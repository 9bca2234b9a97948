#pragma once

#include "kernels/select/threshold/ThresholdPlan.h"

namespace faiss_bits {

/// Blocks of the largest cluster that the device is asked for.
int mostClusterBlocks(const DeviceTraits& device);

/// Whether rows are so few that blocks hold them in registers
/// (ThresholdPlan::isHeld), and then the plan.
bool planHeldRows(const SelectProblem& problem, ThresholdPlan& plan);
bool holdsRows(const SelectProblem& problem);

} // namespace faiss_bits
