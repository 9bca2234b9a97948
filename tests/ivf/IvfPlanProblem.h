#pragma once

#include "kernels/ivf/IvfKnn.h"

namespace faiss_bits::test {

/// A search of 2^20 vectors of 128 components in 1,024 lists.
inline IvfKnnProblem someProblem() {
    IvfKnnProblem p;
    p.lists.numLists = 1024;
    p.lists.d = 128;
    p.lists.numVectors = 1 << 20;
    p.numQueries = 10240;
    p.nprobe = 32;
    p.k = 10;
    p.mostVectors = 40000;
    return p;
}

} // namespace faiss_bits::test
