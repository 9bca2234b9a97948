#pragma once

#include <vector>

#include "kernels/cpu/Heap.h"
#include "kernels/cpu/KernelTypes.h"
#include "kernels/cpu/Plan.h"
#include "kernels/cpu/Setup.h"

namespace faiss_bits::cpu {

/// Rows that a thread finishes at a time.
constexpr idx_t kRowsPerJob = 8;

/// Variant 6 with more than a quarter of a row to keep sorts what a bisection
/// leaves: a heap of that size would be a slow sort.
inline bool selectsWholeRow(idx_t k, idx_t numVectors) {
    return 4 * k > numVectors;
}

/// The k nearest of some queries while the vectors go by: a sink for each part
/// of the vectors, and what makes rows of the result of them.
template <class T>
class KnnSelection {
   public:
    /// `threads` may finish rows at a time. `setup` and `plan` must outlive it.
    KnnSelection(
            const Setup<T>& setup,
            const Plan& plan,
            idx_t k,
            idx_t rows,
            int parts,
            int threads);

    Sink<T>* sinks() {
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
        AlignedBuffer<T> keys;
        AlignedBuffer<CandidateId<T>> ids;
        AlignedBuffer<OrderedEntry<T>> entries, sorted;
    };

    void allocateBuffers();
    void allocateHeaps(SinkKind kind);
    void allocateStore();
    void allocateScratch(int threads);
    bool isWholeRow() const;
    /// Candidates of one part behind those of the parts before it.
    void appendRow(const Sink<T>& sink, idx_t row, Scratch& mine, idx_t& count);
    /// Candidates of a row as entries: how many, and whether ids ascend.
    idx_t collectRow(idx_t row, Scratch& mine, bool& idsAscend);
    idx_t collectHeaps(idx_t row, Scratch& mine);
    void finishRow(
            idx_t row,
            Scratch& mine,
            T* distances,
            idx_t* ids,
            idx_t outK);

    const Setup<T>& setup_;
    const Plan& plan_;
    idx_t k_, rows_;
    std::vector<Sink<T>> sinks_;
    std::vector<Scratch> scratch_;
    AlignedBuffer<T> filters_, limits_, terms_, keys_, distances_;
    AlignedBuffer<RowState> states_;
    AlignedBuffer<idx_t> counts_;
    AlignedBuffer<CandidateId<T>> ids_;
    AlignedBuffer<OrderedEntry<T>> heaps_;
};

} // namespace faiss_bits::cpu
