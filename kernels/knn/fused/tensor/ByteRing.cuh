/// The rings of stages and norms in shared memory that both scans of 8 bits
/// have.
#pragma once

#include "kernels/common/Error.h"

namespace faiss_bits {

/// Slots of norms for a ring of stages. Norms are read behind the last slab of
/// their step. Whoever has released a slab of the next step has read them.
__host__ __device__ constexpr int normSlots(int slabs, int stages) {
    return 1 + (stages + slabs - 1) / slabs;
}

/// As many stages as fit in a block's shared memory, up to Layout::kMostStages.
/// Throws Error if these are not two.
template <class Layout>
int stagesThatFit(int slabs, size_t sharedBytes) {
    int stages = Layout::kMostStages;
    while (stages > 1 && size_t(Layout(slabs, stages).bytes) > sharedBytes) {
        --stages;
    }
    BITS_THROW_IF_NOT_FMT(
            stages > 1,
            "%zu bytes of shared memory a block are too few",
            sharedBytes);
    return stages;
}

} // namespace faiss_bits
