#pragma once

#include "kernels/select/Select.h"
#include "kernels/select/short_rows/FewOfBlockLaunch.h"

namespace faiss_bits {

/// Keys of a thread of FewOfBlock.cuh where it takes a problem, as it is faster
/// than a warp a row (measured, H100; docs/design/selection_blocks.md); or 0.
int fewOfBlockItems(const SelectProblem& problem);

/// Its launch.
using FewOfBlockLaunch = void (*)(const ShortRowsParams&, cudaStream_t);
FewOfBlockLaunch fewOfBlockLaunch(int items);

} // namespace faiss_bits
