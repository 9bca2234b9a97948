#pragma once

#include <vector>

#include "kernels/cpu/CanonicalTypes.h"
#include "kernels/cpu/RangeBlock.h"
#include "kernels/cpu/RangeSweep.h"
#include "kernels/cpu/Setup.h"

namespace faiss_bits::cpu {

/// From the candidates of a certified range search to its results: canonical
/// distances, which the radius decides by. Calls the interrupt hook in between.
template <class T>
class RangeFinisher {
   public:
    /// `limit`: of keys. `setup` must outlive it.
    RangeFinisher(
            const Setup<T>& setup,
            const CanonicalKernels<T>& kernels,
            T limit);

    /// The i-th query in float64.
    CanonicalQuery query(idx_t i) const;

    /// Of the candidates of a batch, the queries from `first` on; results are
    /// added to `blocks`, the first `threads` of which are those of a thread.
    void finish(
            const RangeSelection<T>& selection,
            idx_t first,
            idx_t rows,
            int threads,
            std::vector<RangeBlock<T>>& blocks);

    /// Canonical distances so far.
    idx_t rescored() const {
        return rescored_;
    }

   private:
    /// Some rows of a batch; or of one with many candidates, some of them.
    struct Job {
        idx_t row, rows;
        idx_t begin, count; ///< candidates of the row, if it is one
        idx_t block;        ///< below 0: that of the thread
    };
    /// Scratch of a thread.
    struct Chosen {
        std::vector<CandidateId<T>> ids;
        std::vector<T> keys;
    };

    void prepare();
    /// Fills jobs_ with what comes next, up to a region of work; next_ and
    /// nextCandidate_ follow.
    void cutJobs(
            const RangeSelection<T>& selection,
            idx_t rows,
            int threads,
            std::vector<RangeBlock<T>>& blocks);
    void runJob(
            const RangeSelection<T>& selection,
            idx_t first,
            const Job& job,
            Chosen& chosen,
            RangeBlock<T>& block) const;

    const Setup<T>& setup_;
    const CanonicalKernels<T> kernels_;
    const T limit_;
    const idx_t most_; ///< candidates of a job
    idx_t rescored_ = 0;
    idx_t stride_ = 0;
    AlignedBuffer<double> components_; ///< [queries, stride]
    std::vector<double> squares_, absolutes_;
    std::vector<Chosen> chosen_;
    std::vector<Job> jobs_;
    idx_t next_ = 0, nextCandidate_ = 0;
};

} // namespace faiss_bits::cpu
