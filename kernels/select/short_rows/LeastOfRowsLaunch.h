#pragma once

#include "kernels/select/short_rows/ShortRowsLaunch.h"

namespace faiss_bits {

/// Enqueues one launch for k = 1 and rows of at least one column. isFew: rows
/// are so few that each may have a block.
template <class T, bool kHasBias>
void launchLeastOfRows(
        const ShortRowsParams& params,
        bool isFew,
        cudaStream_t stream);

} // namespace faiss_bits
