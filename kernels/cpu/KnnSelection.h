#pragma once

#include <algorithm>
#include <vector>

#include "kernels/cpu/Certifier.h"
#include "kernels/cpu/ErrorBound.h"
#include "kernels/cpu/Heap.h"
#include "kernels/cpu/KernelTypes.h"
#include "kernels/cpu/Plan.h"
#include "kernels/cpu/Setup.h"

namespace faiss_bits::cpu {

/// Rows that a thread finishes at a time: few where a row is much work.
inline idx_t rowsPerJob(idx_t k) {
    constexpr idx_t kMostRows = 8, kResults = 512;
    return std::clamp<idx_t>(kResults / k, 1, kMostRows);
}

/// Threads that finish `rows` rows of up to `widest` candidates; a thread needs
/// scratch for one. Beyond kBytes of it no more than have eight rows each.
inline int finishingThreads(
        int threads,
        idx_t rows,
        idx_t k,
        idx_t widest,
        int scalarBytes) {
    constexpr idx_t kBytes = 64 << 20, kManyRows = 8;
    const auto jobs = [rows](idx_t each) { return (rows + each - 1) / each; };
    const idx_t fit = kBytes / (6 * scalarBytes * widest + 1);
    const idx_t useful =
            std::max(jobs(kManyRows), std::min(jobs(rowsPerJob(k)), fit));
    return int(std::min<idx_t>(threads, useful));
}

/// A row goes on to the next piece of the vectors after whole groups of those
/// that the kernels of canonical distances take side by side: a multiple of
/// any.
constexpr idx_t kGroup = 8;

/// Variant 6 with a fifth of a row to keep, or more, sorts what a bisection
/// leaves: a heap of that size would be a slow sort. More than a quarter where
/// the vectors are packed anew for every batch: up to there, buffers that are
/// filled from all vectors are less work.
inline bool selectsWholeRow(const Plan& plan, idx_t k, idx_t numVectors) {
    return plan.vectorBlock >= numVectors ? 5 * k >= numVectors
                                          : 4 * k > numVectors;
}

/// Where the results of a search go.
template <class T>
struct KnnOutput {
    T* distances = nullptr; ///< rows of k
    idx_t* ids = nullptr;   ///< rows of k
    idx_t k = 0;
    const idx_t* rows = nullptr; ///< of the queries; nullptr: 0, 1, ...

    idx_t row(idx_t query) const {
        return rows ? rows[query] : query;
    }
};

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
    void reset(const Certifier<T>* certifier);

    /// Variant 5: a block of distances goes through the heaps.
    void takeBlock(idx_t first, idx_t count, idx_t rows);

    /// Writes the first `rows` rows, the queries from `first` on, to the
    /// caller's arrays. With a certifier: those whose candidates are proved to
    /// be enough, by canonical distances.
    void finish(
            idx_t rows,
            idx_t first,
            const KnnOutput<T>& out,
            Certifier<T>* certifier);

    /// Some rows, and the queries that they are of.
    struct Rows {
        idx_t row = 0, count = 0;
        idx_t first = 0;                ///< query of the first
        const idx_t* queries = nullptr; ///< [count], in place of `first`

        idx_t query(idx_t i) const {
            return queries ? queries[i] : first + i;
        }
        Rows part(idx_t begin, idx_t end) const {
            return {row + begin,
                    end - begin,
                    first + begin,
                    queries ? queries + begin : nullptr};
        }
    };

    /// The same of some rows, certified, on the calling thread alone, in the
    /// scratch of `worker`: this selection, or another one that is idle.
    void finishTogether(
            const Rows& rows,
            const KnnOutput<T>& out,
            Certifier<T>& certifier,
            KnnSelection& worker);

   private:
    /// What a sweep left of a row.
    struct Candidates {
        const T* keys = nullptr;
        const CandidateId<T>* ids = nullptr; ///< nullptr: firstId and on
        idx_t firstId = 0;
        idx_t count = 0;
        bool isAll = false; ///< every vector is among them
        T limit = 0;        ///< no other vector has a key under it
        bool idsAscend = true;

        NarrowJob<T> narrowJob() const {
            NarrowJob<T> job;
            job.keys = keys;
            job.ids = ids;
            job.firstId = firstId;
            job.count = count;
            return job;
        }
        void copyIds(CandidateId<T>* to) const {
            for (idx_t i = 0; i < count; ++i) {
                to[i] = ids ? ids[i] : CandidateId<T>(firstId + i);
            }
        }
    };

    /// A row of a certified search.
    struct Attempt {
        CanonicalQuery query;
        Candidates all;
        // The nearest of them and their canonical keys: those whose key is
        // `pivot` at most, or all if there are not more.
        CandidateId<T>* ids = nullptr;
        T* keys = nullptr;
        idx_t count = 0;
        idx_t done = 0; ///< of these, so many have a canonical key
        T pivot = 0;
        bool isLate = false; ///< too many are alike: none are chosen yet

        /// Of the first from `done` on behind the whole groups below `end`.
        idx_t groupsBefore(idx_t end) const {
            idx_t place = done;
            while (place + kGroup <= count && ids[place + kGroup - 1] < end) {
                place += kGroup;
            }
            return place;
        }
    };

    /// Candidates by canonical key, then id.
    struct Sorted {
        const OrderedEntry<T>* entries = nullptr;
        idx_t count = 0;
    };

    /// Of a thread that finishes rows.
    struct Scratch {
        AlignedBuffer<T> keys;
        AlignedBuffer<CandidateId<T>> ids;
        AlignedBuffer<OrderedEntry<T>> entries, sorted;
        // Of a certified search.
        std::vector<Attempt> attempts;
        std::vector<RescoreList<T>> lists;
        AlignedBuffer<double> queries;
        AlignedBuffer<T> chosenKeys, extraKeys;
        AlignedBuffer<CandidateId<T>> chosenIds, extraIds;
    };

    void allocateBuffers();
    void allocateHeaps(SinkKind kind);
    void allocateStore();
    void allocateScratch(int threads); ///< for up to so many
    /// Scratch to certify rows; how many a thread takes together.
    idx_t allocateCertified(idx_t rows, const Certifier<T>& certifier);
    /// True if candidatesOf leaves them where they are.
    bool candidatesStay() const;
    /// True if all vectors stay in the cache of a core.
    bool vectorsStay() const;
    bool isWholeRow() const;
    /// Candidates of one part behind those of the parts before it.
    void appendRow(const Sink<T>& sink, idx_t row, Scratch& mine, idx_t& count);
    /// Candidates of a row as entries: how many, whether ids ascend, and the
    /// range of the keys.
    idx_t collectRow(
            idx_t row,
            Scratch& mine,
            bool& idsAscend,
            OrderRange<T>& range);
    idx_t collectHeaps(idx_t row, Scratch& mine);
    Candidates candidatesOf(idx_t row, Scratch& mine);
    Candidates bufferedCandidates(idx_t row, Scratch& mine);
    /// Sorts the candidates of a row and writes them.
    void finishRow(idx_t row, Scratch& mine, T* distances, idx_t* ids, idx_t k);
    void certifyRows(
            const Rows& rows,
            Scratch& mine,
            Certifier<T>& certifier,
            const ErrorBound<T>& bound,
            const KnnOutput<T>& out);
    void choose(Attempt& attempt, const Certifier<T>& certifier);
    /// Canonical keys of what was chosen of some rows; how many.
    idx_t rescoreChosen(
            Scratch& mine,
            idx_t rows,
            const Certifier<T>& certifier);
    /// Vectors that `rows` rows with `total` candidates meet at a time.
    idx_t chunkOf(idx_t total, idx_t rows) const;
    void rescore(
            const Certifier<T>& certifier,
            const RescoreList<T>* lists,
            idx_t count);
    /// Leaves the candidates that may be of the result, if it is proved that no
    /// others are.
    Outcome certifyRow(
            const Attempt& attempt,
            Scratch& mine,
            const Certifier<T>& certifier,
            const ErrorBound<T>& bound,
            Sorted& sorted,
            idx_t& rescored);

    const Setup<T>& setup_;
    const Plan& plan_;
    idx_t k_, rows_;
    idx_t widest_ = 0; ///< candidates of a row, at most
    std::vector<Sink<T>> sinks_;
    std::vector<Scratch> scratch_;
    AlignedBuffer<T> filters_, limits_, terms_, keys_, distances_;
    AlignedBuffer<RowState> states_;
    AlignedBuffer<idx_t> counts_;
    AlignedBuffer<CandidateId<T>> ids_;
    AlignedBuffer<OrderedEntry<T>> heaps_;
};

} // namespace faiss_bits::cpu
