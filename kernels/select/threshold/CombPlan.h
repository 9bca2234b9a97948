#pragma once

#include "kernels/select/Select.h"
#include "kernels/select/threshold/ThresholdPlan.h"

namespace faiss_bits {

/// One block a row, whose tiles span it, if that is the way to take the rows.
bool planCombRows(const SelectProblem& p, ThresholdPlan& plan);

/// Whether that takes less time than short_rows.
bool combsAreFaster(const SelectProblem& p);

} // namespace faiss_bits
