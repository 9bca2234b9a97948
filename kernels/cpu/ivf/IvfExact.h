#pragma once

#include <vector>

#include "kernels/cpu/ivf/IvfRow.h"
#include "kernels/cpu/ivf/IvfSetup.h"

namespace faiss_bits::cpu {

/// A thread's search by canonical distances of all vectors of a query's lists:
/// for queries that candidates do not help, as many vectors are equally near.
class IvfExactSearch {
   public:
    /// `setup` must outlive it.
    explicit IvfExactSearch(const IvfSetup& setup) : setup_(setup) {}

    /// Writes the result of a query of the setup.
    void run(idx_t row);

   private:
    struct Entry {
        float key;
        idx_t id;
        IvfPlace at;

        bool operator<(const Entry& other) const {
            return key != other.key ? key < other.key : id < other.id;
        }
    };
    /// The first `length` vectors of a list.
    void scanList(idx_t list, idx_t length, const CanonicalQuery& query);
    /// Cuts the entries to the k nearest.
    void cut();

    const IvfSetup& setup_;
    std::vector<Entry> entries_;
    float limit_ = 0; ///< of entries that are not too late
    std::vector<double> components_;
    std::vector<const float*> rows_;
    std::vector<idx_t> places_;
    std::vector<float> keys_;
};

} // namespace faiss_bits::cpu
