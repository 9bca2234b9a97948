#pragma once

#include <functional>
#include <span>

#include "kernels/common/SearchMode.h"
#include "kernels/common/Types.h"

/// Search in inverted lists on the CPU. No FAISS, no CUDA and no SIMD header
/// here.
namespace faiss_bits::cpu {

/// Some places of a list, ascending.
using IvfPlaces = std::span<const idx_t>;

/// Inverted lists of float32 vectors, wherever they lie. Asked by several
/// threads at a time. What it throws ends the search.
class IvfLists {
   public:
    virtual ~IvfLists() = default;
    /// Vectors of a list; does not change during a search.
    virtual idx_t length(idx_t list) const = 0;
    /// The vectors of a list that is not empty, row-major [length, d], until
    /// close().
    virtual const float* open(idx_t list) const = 0;
    virtual void close(idx_t list, const float* rows) const = 0;
    /// Do the rows stay where they are after close(), as long as the search
    /// runs?
    virtual bool areKept() const = 0;
    /// Id of the vector at a place of a list.
    virtual idx_t id(idx_t list, idx_t place) const = 0;
};

/// What all searches in inverted lists have.
struct IvfProblem {
    Metric metric = Metric::L2; ///< or InnerProduct
    int d = 0;                  ///< components of a row, 1 or more

    idx_t numQueries = 0;
    const float* queries = nullptr; ///< [numQueries, d]

    const IvfLists* lists = nullptr;
    idx_t numLists = 0;
    idx_t nprobe = 0; ///< lists of a query, 1 or more
    /// [numQueries, nprobe] numbers of lists; below 0: none. A list that is
    /// named twice is searched twice.
    const idx_t* probes = nullptr;
    /// [numLists] Places of each list to search in, ascending; of the lists in
    /// `probes` alone they are read. nullptr: all.
    const IvfPlaces* allowed = nullptr;

    int threads = 0;              ///< 0: as many as OpenMP would use
    SearchStats* stats = nullptr; ///< what was done is added to it; may be null
    /// Called now and then on the calling thread, never inside the parallel
    /// loops; what it throws ends the search, with the outputs undefined.
    std::function<void()> interrupt;
};

} // namespace faiss_bits::cpu
