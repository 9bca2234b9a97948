#pragma once

#include "kernels/select/Select.h"
#include "kernels/select/short_rows/FewOfPacksLaunch.h"

namespace faiss_bits {

/// How FewOfPacks.cuh takes a problem: where it was faster than lists of lanes
/// and kernels that halve (measured, H200;
/// docs/design/selection_short_rows.md).
FewOfPacksShape fewOfPacksShape(const SelectProblem& problem);

/// Its launch.
using FewOfPacksLaunch = void (*)(const ShortRowsParams&, cudaStream_t);
FewOfPacksLaunch fewOfPacksLaunch(FewOfPacksShape shape);

} // namespace faiss_bits
