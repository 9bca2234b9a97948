#pragma once

#include <vector>

#include "kernels/cpu/FusedHeap.h"
#include "kernels/cpu/FusedSearch.h"
#include "kernels/cpu/FusedTypes.h"

namespace faiss_bits {

/// The k nearest of some queries while the vectors go by: a sink for each part
/// of the vectors, and what makes rows of the result of them.
template <class T>
class FusedSelection {
   public:
    /// `threads` may finish rows at a time. `setup` and `plan` must outlive it.
    FusedSelection(
            const FusedSetup<T>& setup,
            const FusedPlan& plan,
            idx_t k,
            idx_t rows,
            int parts,
            int threads);

    FusedSink<T>* sinks() {
        return sinks_.data();
    }
    int parts() const {
        return int(sinks_.size());
    }

    /// Ready for the next queries.
    void reset();

    /// Variant 5: a block of distances goes through the heaps.
    void takeBlock(idx_t first, idx_t count, idx_t rows);

    /// Writes the first `rows` rows to the caller's arrays.
    void finish(idx_t rows, T* outDistances, idx_t* outIds, idx_t outK);

   private:
    /// Of a thread that finishes rows.
    struct Scratch {
        FusedBuffer<T> keys;
        FusedBuffer<FusedId<T>> ids;
        FusedBuffer<FusedEntry<T>> entries, sorted;
    };

    void allocateBuffers();
    void allocateHeaps(FusedSinkKind kind);
    void allocateStore();
    void allocateScratch(int threads);
    bool isWholeRow() const;
    /// Candidates of one part behind those of the parts before it.
    void appendRow(
            const FusedSink<T>& sink,
            idx_t row,
            Scratch& mine,
            idx_t& count);
    /// Candidates of a row as entries: how many, and whether ids ascend.
    idx_t collectRow(idx_t row, Scratch& mine, bool& idsAscend);
    idx_t collectHeaps(idx_t row, Scratch& mine);
    void finishRow(
            idx_t row,
            Scratch& mine,
            T* distances,
            idx_t* ids,
            idx_t outK);

    const FusedSetup<T>& setup_;
    const FusedPlan& plan_;
    idx_t k_, rows_;
    std::vector<FusedSink<T>> sinks_;
    std::vector<Scratch> scratch_;
    FusedBuffer<T> filters_, limits_, terms_, keys_, distances_;
    FusedBuffer<FusedRowState> states_;
    FusedBuffer<idx_t> counts_;
    FusedBuffer<FusedId<T>> ids_;
    FusedBuffer<FusedEntry<T>> heaps_;
};

} // namespace faiss_bits
