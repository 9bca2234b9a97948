#pragma once

#include "kernels/cpu/ivf/IvfKnn.h"

/// How lists are read: packed for tiles, scanned one by one, or together.
namespace faiss_bits::cpu {

/// How much there is to do.
struct IvfSize {
    idx_t largestTotal = 0; ///< vectors that a query meets, at most
    double numPairs = 0;    ///< of a query and a vector
    double numProbes = 0;   ///< of a query and a list with such vectors
};

/// Are `rows` queries to meet the vectors of all their lists in one scan each?
bool gathersLists(
        const IvfKnnProblem& problem,
        const IvfSize& size,
        int threads,
        idx_t rows);

/// Up to so many queries scan a list, or a piece of one, one after the other:
/// it is more work to pack it than what tiles save.
idx_t fewQueries(idx_t columns, int depth);

} // namespace faiss_bits::cpu
