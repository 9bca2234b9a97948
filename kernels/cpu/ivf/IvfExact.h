#pragma once

#include <vector>

#include "kernels/cpu/ivf/IvfRow.h"
#include "kernels/cpu/ivf/IvfSetup.h"

namespace faiss_bits::cpu {

/// A thread's search by canonical distances of all vectors of a query's lists:
/// for queries that candidates do not help, as many vectors are equally near.
/// Once k are known, those of which float32 proves that they are farther than
/// the k-th are left out.
class IvfExactSearch {
   public:
    /// `setup`, which has lengths, must outlive it.
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
    void copyQuery(idx_t row);
    /// The first `length` vectors of a list.
    void scanList(idx_t list, idx_t length, const CanonicalQuery& query);
    /// Into chosen_: which of the columns begin .. begin + count - 1 of
    /// `vectors` may be as near as the k-th, counted from `begin`. Returns how
    /// many.
    idx_t choose(
            const RowView<float>& vectors,
            idx_t begin,
            idx_t count,
            const CanonicalQuery& query);
    /// Cuts the entries to the k nearest; the last of them is the limit.
    void cut();

    const IvfSetup& setup_;
    std::vector<Entry> entries_;
    Entry limit_; ///< what is not before it is too late
    bool hasLimit_ = false;
    AlignedBuffer<float> query_, approximate_, chosenKeys_;
    AlignedBuffer<int32_t> chosen_;
    std::vector<double> components_;
    std::vector<const float*> rows_;
    std::vector<idx_t> places_;
    std::vector<float> keys_;
};

} // namespace faiss_bits::cpu
