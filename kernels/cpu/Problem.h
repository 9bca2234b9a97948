#pragma once

#include <functional>

#include "kernels/common/SearchMode.h"
#include "kernels/common/Types.h"
#include "kernels/cpu/Choice.h"

namespace faiss_bits::cpu {

/// What the searches of this family share: the vectors, the queries, and how.
template <class T> // float or double
struct Problem {
    Metric metric = Metric::L2; ///< any
    T metricArg = 2;            ///< p of Lp, > 0; not read for other metrics

    idx_t numQueries = 0; ///< rows to search for, after queryIds
    idx_t numVectors = 0; ///< n: references searched, after vectorIds
    int d = 0;            ///< components of a row, 1 or more

    const T* queries = nullptr; ///< row-major, rows queryStride apart
    idx_t queryStride = 0;      ///< elements, >= d; 0: d
    /// Rows of `queries` to search for, [numQueries], any order, repeats
    /// allowed. nullptr: rows 0 .. numQueries - 1.
    const idx_t* queryIds = nullptr;

    const T* vectors = nullptr; ///< row-major, rows vectorStride apart
    idx_t vectorStride = 0;     ///< elements, >= d; 0: d
    /// Rows of `vectors` to search in, [numVectors], any order. Results name
    /// these rows. nullptr: rows 0 .. numVectors - 1.
    const idx_t* vectorIds = nullptr;

    /// 0: as many as OpenMP would use (omp_get_max_threads). Never changes the
    /// result.
    int threads = 0;

    Choice choice; ///< forced variant, blocking and instruction set

    /// Certified: canonical distances (kernels/canonical/Distance.h) and the
    /// order that they make, whatever `choice` is; float64 ones, not rounded
    /// to float32, where T is double. Plain: the arithmetic of the kernels,
    /// which for Canberra, BrayCurtis, JensenShannon and Jaccard is that of
    /// canonical distances, too.
    SearchMode mode = SearchMode::Certified;
    /// What a certified search did is added to it. May be null.
    SearchStats* stats = nullptr;

    /// Called now and then on the calling thread, never inside the parallel
    /// loops; what it throws ends the search, with the outputs undefined.
    std::function<void()> interrupt;
};

} // namespace faiss_bits::cpu
