/// Whether an id is in a set.
#pragma once

#include "kernels/ivf/IvfLists.h"

namespace faiss_bits {

/// The test is there.
__device__ __forceinline__ bool passesIdTest(
        const ListIdTest& test,
        int64_t id) {
    bool isIn = false;
    if (test.kind == ListIdTest::Kind::Range) {
        isIn = id >= test.first && id < test.end;
    } else {
        const int64_t byte = id >> 3; // below zero for what is below zero
        isIn = byte >= 0 && byte < test.numBytes &&
                (test.bytes[byte] >> (id & 7) & 1);
    }
    return isIn != test.isInverted;
}

} // namespace faiss_bits
