#pragma once

#include <vector>

#include "kernels/cpu/CanonicalTypes.h"
#include "kernels/cpu/Lengths.h"
#include "kernels/cpu/Setup.h"

namespace faiss_bits::cpu {

/// A few queries as the kernels for unpacked vectors read them, and as float64.
template <class T>
class RangeQueries {
   public:
    /// Rows begin .. begin + count - 1 of the setup's queries.
    void prepare(
            const Setup<T>& setup,
            const CanonicalKernels<T>& kernels,
            idx_t begin,
            idx_t count);

    idx_t count() const {
        return idx_t(prepared_.size());
    }
    const CanonicalQuery& prepared(idx_t i) const {
        return prepared_[i];
    }
    const T* rows() const {
        return rows_.get();
    }
    idx_t stride() const {
        return stride_;
    }

   private:
    idx_t room_ = 0, stride_ = 0;
    AlignedBuffer<T> rows_, terms_;
    AlignedBuffer<double> components_;
    std::vector<CanonicalQuery> prepared_;
};

/// A thread's way from vectors that are not packed to canonical distances of
/// those that may be in range: every piece of them is read once, and the error
/// of its keys is known before they are compared with the radius.
template <class T>
class RangeScanner {
   public:
    /// `limit`: of keys. takesAll: most vectors are thought to be in range,
    /// which changes time and what counts as rescored, but no result.
    RangeScanner(
            const Setup<T>& setup,
            const CanonicalKernels<T>& kernels,
            T limit,
            bool takesAll);

    /// What was found for a query, by ascending number of the vectors; keys are
    /// canonical, and not all are under the limit.
    struct Found {
        idx_t query;
        const CandidateId<T>* ids;
        idx_t count;
        const T* keys;
        bool isUnbounded; ///< all vectors, because no error was known
    };

    /// Calls take(found) for every query of which the vectors begin .. end - 1
    /// of a view may be in range, piece by piece; it returns how many are.
    template <class Take>
    void scan(
            const RangeQueries<T>& queries,
            const RowView<T>& vectors,
            idx_t begin,
            idx_t end,
            const Take& take) {
        for (idx_t from = begin; from < end; from += piece_) {
            const idx_t to = from + piece_ < end ? from + piece_ : end;
            find(queries, vectors, from, to);
            idx_t kept = 0;
            for (const Found& found : found_) {
                kept += take(found);
            }
            note(kept, queries.count() * (to - from));
        }
    }

    /// Vectors of a piece.
    idx_t piece() const {
        return piece_;
    }
    /// Canonical distances so far, those of queries without a bound left out. A
    /// piece takes all where most of the one before was in range, so that they
    /// depend on which pieces a scanner gets.
    idx_t rescored() const {
        return rescored_;
    }

   private:
    void reserve(idx_t rows, idx_t columns);
    /// Keys of a piece by the plain kernels: all to keys_, and what bounds
    /// their errors to the setup's lengths; or where that needs no lengths,
    /// those within the limits to hits_.
    void sweep(
            const RangeQueries<T>& queries,
            const RowView<T>& vectors,
            idx_t begin,
            idx_t end);
    void reachOf(const RangeQueries<T>& queries);
    /// Fills found_.
    void find(
            const RangeQueries<T>& queries,
            const RowView<T>& vectors,
            idx_t begin,
            idx_t end);
    void note(idx_t kept, idx_t pairs);

    Setup<T> setup_;
    const CanonicalKernels<T> kernels_;
    const T limit_;
    const idx_t piece_;
    /// Most vectors were in range: canonical distances of all are less work
    /// than to choose.
    bool takesAll_;
    idx_t rescored_ = 0;
    idx_t room_ = 0, stride_ = 0;
    AlignedBuffer<T> keys_;
    AlignedBuffer<CandidateId<T>> ids_;
    std::vector<T> terms_, scales_;
    std::vector<T> reaches_, limits_; ///< of the queries
    std::vector<RowState> states_;
    std::vector<std::vector<RangeHit<T>>> hits_;
    std::vector<RescoreList<T>> lists_;
    std::vector<Found> found_;
};

} // namespace faiss_bits::cpu
