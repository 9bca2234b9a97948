#pragma once

#include "kernels/select/short_rows/ShortRowsLaunch.h"

namespace faiss_bits {

/// How a warp finds a few of the best of a row (FewOfLanes.cuh). items = 0: in
/// another way.
struct FewOfLanesShape {
    int items = 0;  ///< keys of a lane at a time
    int minima = 0; ///< numbers of a lane among which the limit is sought
};

/// Enqueues a launch. kernels/select/Select.cmake lists the instances.
template <class T, int kItems, int kMinima>
void launchFewOfLanes(const ShortRowsParams& params, cudaStream_t stream);

} // namespace faiss_bits
