#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/CanonicalTypes.h"
#include "kernels/cpu/Setup.h"
#include "kernels/cpu/ivf/IvfKnn.h"

namespace faiss_bits::cpu {

/// A problem that was checked, for some of its queries and one kind of key.
struct IvfSetup {
    const IvfKnnProblem& problem;
    /// Metric, kernels, team and target; of `queries` its row i is the i-th
    /// query. `vectors` are none: a list has its own.
    Setup<float> search;
    CanonicalKernels<float> canonical;
    IvfWay way = IvfWay::Auto;
    bool isNear = false; ///< all lists together are up to kNearBytes

    idx_t query(idx_t row) const {
        return search.queries.ids ? search.queries.ids[row] : row;
    }
    /// Places of a list that count; nullptr: all.
    const IvfPlaces* allowed(idx_t list) const {
        return problem.allowed ? problem.allowed + list : nullptr;
    }
};

/// A list that is open.
class OpenIvfList {
   public:
    OpenIvfList(const IvfLists& lists, idx_t list)
            : lists_(lists), list_(list), rows_(lists.open(list)) {}
    ~OpenIvfList() {
        lists_.close(list_, rows_);
    }
    OpenIvfList(const OpenIvfList&) = delete;
    OpenIvfList& operator=(const OpenIvfList&) = delete;

    const float* rows() const {
        return rows_;
    }

   private:
    const IvfLists& lists_;
    idx_t list_;
    const float* rows_;
};

/// Writes where `count` vectors of a list lie, counted in components from
/// `base`, which may be a row of another list: so that one scan reads both.
/// allowed: as IvfSetup::allowed.
inline void writeIvfOffsets(
        const float* base,
        const float* rows,
        idx_t depth,
        const IvfPlaces* allowed,
        idx_t count,
        idx_t* to) {
    // Not the difference of pointers: they are of different arrays.
    const idx_t first =
            idx_t(uintptr_t(rows) - uintptr_t(base)) / idx_t(sizeof(float));
    for (idx_t i = 0; i < count; ++i) {
        to[i] = first + (allowed ? (*allowed)[i] : i) * depth;
    }
}

} // namespace faiss_bits::cpu
