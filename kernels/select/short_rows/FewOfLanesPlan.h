#pragma once

#include "kernels/select/Select.h"
#include "kernels/select/short_rows/FewOfLanesLaunch.h"

namespace faiss_bits {

/// How FewOfLanes.cuh takes a problem: where it was faster than the kernels that
/// halve (measured, H200; docs/design/selection_short_rows.md).
FewOfLanesShape fewOfLanesShape(const SelectProblem& problem);

/// Its launch.
using FewOfLanesLaunch = void (*)(const ShortRowsParams&, cudaStream_t);
FewOfLanesLaunch fewOfLanesLaunch(DataType type, FewOfLanesShape shape);

} // namespace faiss_bits
