#pragma once

#include <atomic>
#include <vector>

#include "kernels/cpu/Certifier.h"
#include "kernels/cpu/ErrorBound.h"
#include "kernels/cpu/ivf/IvfRow.h"
#include "kernels/cpu/ivf/IvfSelection.h"

namespace faiss_bits::cpu {

/// What became of the queries of a sweep; shared by its threads.
struct IvfOutcomes {
    std::vector<Outcome> outcomes; ///< [queries of the setup]
    std::atomic<idx_t> tried{0}, failed{0}, tied{0}, rescored{0};

    void note(idx_t query, Outcome outcome) {
        outcomes[query] = outcome;
        tried.fetch_add(1, std::memory_order_relaxed);
        if (outcome != Outcome::Done) {
            failed.fetch_add(1, std::memory_order_relaxed);
        }
        if (outcome == Outcome::Tied) {
            tied.fetch_add(1, std::memory_order_relaxed);
        }
    }
    /// So many queries failed that the others are not worth trying.
    bool isHopeless() const {
        constexpr idx_t kEnough = 64;
        const idx_t count = tried.load(std::memory_order_relaxed);
        return count >= kEnough &&
                2 * failed.load(std::memory_order_relaxed) > count;
    }
};

/// A thread's way from candidates to results: canonical distances, and the
/// proof that no other vector belongs to the result.
class IvfFinisher {
   public:
    /// `setup` must outlive it.
    explicit IvfFinisher(const IvfSetup& setup) : setup_(setup) {}

    /// Writes the results of the rows begin .. end - 1 of a block that are
    /// proved, and notes what became of all.
    void finish(
            const IvfSelection& selection,
            idx_t begin,
            idx_t end,
            IvfOutcomes& outcomes);

   private:
    struct Attempt {
        CanonicalQuery query;
        IvfCandidates all;
        // What is chosen of them, with canonical keys: those whose key is
        // `pivot` at most, or all if there are not more.
        int32_t* slots = nullptr;
        float* keys = nullptr;
        const float** rows = nullptr;
        idx_t count = 0;
        float pivot = 0;
    };

    /// Room for up to `rows` rows with so many candidates; how many are
    /// finished together.
    idx_t reserve(const IvfSelection& selection, idx_t rows);
    void choose(Attempt& attempt);
    void chooseAll(Attempt& attempt);
    /// Canonical keys of what is chosen from `from` on.
    void rescore(const IvfBlock& block, Attempt* attempts, idx_t count);
    void rescoreFrom(const IvfBlock& block, Attempt& attempt, idx_t from);
    Outcome prove(const IvfBlock& block, Attempt& attempt);
    float reach(float key, const CanonicalQuery& query) const;
    void write(const IvfBlock& block, const Attempt& attempt, idx_t query);

    struct Wanted {
        int32_t slot;
        const float** to;
    };
    /// Addresses of the vectors in `wanted_`; of lists that do not stay where
    /// they are, of copies.
    void findRows(const IvfBlock& block);

    const IvfSetup& setup_;
    std::vector<ErrorBound<float>> bounds_;
    idx_t room_ = 0;
    idx_t rescored_ = 0;
    std::vector<Attempt> attempts_;
    std::vector<RescoreList<float>> lists_;
    std::vector<Wanted> wanted_;
    std::vector<float> copies_;
    std::vector<const float*> rows_;
    std::vector<float> ordered_; ///< to find the k-th
    std::vector<IvfTied> tied_;
    AlignedBuffer<double> queries_;
    AlignedBuffer<float> allKeys_, keys_, extraKeys_;
    AlignedBuffer<int32_t> allSlots_, slots_;
    AlignedBuffer<OrderedEntry<float>> entries_, sorted_;
};

} // namespace faiss_bits::cpu
