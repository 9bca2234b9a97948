#include "kernels/ivf/IvfKnn.h"

#include <algorithm>
#include <cstdint>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/Error.h"
#include "kernels/ivf/IvfAgain.h"
#include "kernels/ivf/IvfChoice.h"
#include "kernels/ivf/IvfDirect.h"
#include "kernels/ivf/IvfDistances.h"
#include "kernels/ivf/IvfFewEstimates.h"
#include "kernels/ivf/IvfListCandidates.h"
#include "kernels/ivf/IvfPairs.h"
#include "kernels/ivf/IvfScratch.h"
#include "kernels/ivf/WithCoding.h"

namespace faiss_bits {

namespace {

void checkPointers(const IvfKnnPlan& plan, const IvfKnnProblem& p) {
    const auto require = [](bool isThere, const char* name) {
        BITS_THROW_IF_NOT_FMT(isThere, "%s = nullptr", name);
    };
    require(p.lists.vectors, "lists.vectors");
    require(p.lists.lengths, "lists.lengths");
    require(p.lists.ids || p.lists.idKind == ListIds::Places, "lists.ids");
    require(p.lists.decoding.codebook || p.lists.coding != ListCoding::Product,
            "lists.decoding.codebook");
    constexpr uintptr_t kCodebookBytes = 16; // it is read four at a time
    BITS_THROW_IF_NOT_FMT(
            reinterpret_cast<uintptr_t>(p.lists.decoding.codebook) %
                            kCodebookBytes ==
                    0,
            "lists.decoding.codebook = %p is not on 16 bytes",
            static_cast<const void*>(p.lists.decoding.codebook));
    require(p.queries, "queries");
    require(plan.findsLists() ? static_cast<const void*>(p.centroids)
                              : p.probes,
            plan.findsLists() ? "centroids" : "probes");
    require(p.outDistances, "outDistances");
    require(p.outIds, "outIds");
    const ListIdTest& test = p.lists.idTest;
    BITS_THROW_IF_NOT_FMT(
            plan.direct || !test.isThere(),
            "lists.idTest.kind = %d: a direct search alone takes a test",
            int(test.kind));
    require(test.bytes || test.kind != ListIdTest::Kind::Bits ||
                    test.numBytes == 0,
            "lists.idTest.bytes");
}

/// Some queries of a search.
class IvfRows {
   public:
    IvfRows(const IvfKnnPlan& plan,
            const IvfKnnProblem& problem,
            const IvfScratch& scratch,
            cudaStream_t stream)
            : plan_(plan), p_(problem), scratch_(scratch), stream_(stream) {}

    /// Of queries `first` and on, the first ones first.
    void run(idx_t first, idx_t rows, const IvfAgainScratch& again) const {
        bool areCounted = false;
        const IvfParams params = beginIvfRows(
                p_,
                scratch_,
                first,
                rows,
                stream_,
                plan_.byEstimates() ? &areCounted : nullptr);
        IvfResultParams result;
        // Once a search, of all rows.
        uint32_t* const lost =
                first == 0 && plan_.byEstimates() ? again.count : nullptr;
        if (!plan_.byEstimates()) {
            launchIvfDistances(plan_, p_, params, stream_);
        } else if (p_.mostVectors > 0) {
            withCoding(p_.lists.coding, [&](auto coding) {
                if (p_.metric == Metric::L2) {
                    findCandidates<Metric::L2, coding()>(
                            params, areCounted, lost, result);
                } else {
                    findCandidates<Metric::InnerProduct, coding()>(
                            params, areCounted, lost, result);
                }
            });
        } else if (lost) {
            BITS_CUDA_CHECK(
                    cudaMemsetAsync(lost, 0, sizeof(uint32_t), stream_));
        }
        const bool chooses = result.isRescored && choosesIvf(plan_, p_);
        if (!chooses) {
            select(rows == plan_.rowsAtATime ? plan_.selection
                                             : plan_.lastSelection,
                   ivfSelection(p_, plan_, rows),
                   result.isRescored ? result.rescored.distances
                                     : params.distances,
                   scratch_.keys,
                   scratch_.places);
        }
        result.search = params;
        result.keys = scratch_.keys;
        result.places = scratch_.places;
        result.largest = isSimilarity(p_.metric);
        result.outDistances = p_.outDistances + first * p_.k;
        result.outIds = p_.outIds + first * p_.k;
        result.lostRows = again.rows;
        result.numLost = again.count;
        result.firstRow = uint32_t(first);
        if (plan_.scoresByRows) {
            launchRowResults(result);
        } else if (chooses) {
            launchIvfFewResults(result, stream_);
        } else {
            launchIvfResults(result, stream_);
        }
    }

   private:
    void launchRowResults(const IvfResultParams& result) const {
        withCoding(p_.lists.coding, [&](auto coding) {
            if constexpr (hasIvfFewEstimates(coding())) {
                p_.metric == Metric::L2
                        ? launchIvfRowResults<Metric::L2, coding()>(
                                  result, stream_)
                        : launchIvfRowResults<Metric::InnerProduct, coding()>(
                                  result, stream_);
            }
        });
    }

    /// What comes behind the first estimates, whose pairs are counted or not.
    struct First {
        bool areCounted;
        IvfBegin begin;
    };

    /// lost: to be zero, or nullptr.
    IvfBegin beginOf(uint32_t* lost) const {
        const IvfRescoreParams& rescored = scratch_.rescored;
        IvfBegin begin;
        begin.zero = lost;
        if (!plan_.scoresByRows) {
            begin.firstGroups = rescored.firstGroups;
            begin.zeros = rescored.groupCounts;
            begin.numZeros = rescored.mostGroups + kIvfPlaced;
        }
        return begin;
    }

    /// Bounds of all lists; or a limit from near lists, and then what is within
    /// it of all. Then what is best of those. areCounted: pairs of near lists;
    /// lost: of the first rows, what is to be zero; else nullptr.
    template <Metric kMetric, ListCoding kCoding>
    void findCandidates(
            IvfParams params,
            bool areCounted,
            uint32_t* lost,
            IvfResultParams& result) const {
        const int multiprocessors = p_.device.multiprocessors;
        const idx_t rows = params.rows;
        const bool isWhole = rows == plan_.rowsAtATime;
        beginIvfEstimates(params, p_.metric);
        params.lastProbe = params.nearProbes;
        writeBounds<kMetric, kCoding>(params, {areCounted, beginOf(lost)});
        const bool chooses = choosesIvf(plan_, p_);
        if (!params.isLower) {
            findLimits(params, isWhole);
            if (!chooses) {
                // The matrix was there.
                const size_t room = size_t(rows) * params.room;
                BITS_CUDA_CHECK(cudaMemsetAsync(
                        params.foundKeys, 0xff, room * sizeof(float), stream_));
            }
            params.sampleGroups = 0;
            params.lastProbe = params.nprobe;
            launchIvfPairs(
                    params, kIvfItemQueries, kIvfEstimateVectors, stream_);
            launchIvfEstimates<kMetric, kCoding>(
                    params, true, multiprocessors, stream_);
        }
        result.isRescored = true;
        result.rescored = scratch_.rescored;
        result.rescored.lowerBounds = scratch_.lowerBounds;
        result.rescored.search = params;
        result.rescored.chosen = scratch_.chosen;
        result.rescored.mostOfFew = ivfMostOfFew(kCoding);
        if (chooses) {
            IvfChoiceParams choice;
            choice.rescore = result.rescored;
            choice.chosen = scratch_.chosen;
            choice.lowerBounds = scratch_.lowerBounds;
            choice.countsGroups = !plan_.scoresByRows;
            if constexpr (hasIvfListCandidates(kCoding)) {
                IvfListCandidatesParams byLists;
                byLists.rescore = result.rescored;
                byLists.mostQueries = choice.countsGroups
                        ? ivfListQueries(params, plan_.candidates)
                        : 0;
                choice.byLists = byLists.mostQueries > 0;
                if (choice.byLists) {
                    launchIvfChoice(choice, stream_);
                    launchIvfChosen(result.rescored, true, stream_);
                    launchIvfListCandidates<kMetric, kCoding>(
                            byLists,
                            p_.device.blockSharedBytes,
                            multiprocessors,
                            stream_);
                    return;
                }
            }
            launchIvfChoice(choice, stream_);
            if (!choice.countsGroups) {
                return;
            }
            launchIvfChosen(result.rescored, false, stream_);
        } else {
            select(isWhole ? plan_.choice : plan_.lastChoice,
                   ivfChoice(p_, plan_, rows),
                   params.isLower ? params.distances : params.foundKeys,
                   scratch_.lowerBounds,
                   scratch_.chosen);
            launchIvfCandidates(result.rescored, stream_);
        }
        launchIvfRescore<kMetric, kCoding>(
                result.rescored,
                p_.device.blockSharedBytes,
                multiprocessors,
                stream_);
    }

    /// Bounds of the first lastProbe lists.
    template <Metric kMetric, ListCoding kCoding>
    void writeBounds(const IvfParams& params, const First& first) const {
        const auto pairs = [&](int queries, int vectors) {
            launchIvfPairs(
                    params,
                    queries,
                    vectors,
                    first.areCounted,
                    first.begin,
                    stream_);
        };
        const int multiprocessors = p_.device.multiprocessors;
        if constexpr (hasIvfFewEstimates(kCoding)) {
            if (const int queries = ivfFewEstimatesQueries(
                        params.lists,
                        int64_t(params.rows) * params.lastProbe)) {
                pairs(queries, kIvfFewVectors);
                launchIvfFewEstimates<kMetric, kCoding>(
                        params, queries, multiprocessors, stream_);
                return;
            }
        }
        pairs(kIvfItemQueries, kIvfEstimateVectors);
        launchIvfEstimates<kMetric, kCoding>(
                params, false, multiprocessors, stream_);
    }

    /// Of what is found: the k-th of the upper bounds of near lists, or a key
    /// that hardly more of them are up to.
    void findLimits(const IvfParams& params, bool isWhole) const {
        if (findsIvfLimits(plan_, p_)) {
            IvfLimitParams limits;
            limits.search = params;
            limits.nearest = scratch_.keys;
            limits.places = scratch_.places;
            launchIvfLimits(limits, stream_);
            return;
        }
        select(isWhole ? plan_.limits : plan_.lastLimits,
               ivfLimits(p_, plan_, params.rows),
               params.distances,
               scratch_.keys,
               scratch_.places);
    }

    void select(
            const SelectPlan& plan,
            SelectProblem problem,
            const float* keys,
            float* outKeys,
            int32_t* outPlaces) const {
        problem.keys = keys;
        problem.outKeys = outKeys;
        problem.outIds = outPlaces;
        runSelect(plan, problem, scratch_.select, stream_);
    }

    const IvfKnnPlan& plan_;
    const IvfKnnProblem& p_;
    const IvfScratch& scratch_;
    cudaStream_t stream_;
};

} // namespace

void runIvfKnn(
        const IvfKnnPlan& plan,
        const IvfKnnProblem& p,
        Workspace workspace,
        cudaStream_t stream,
        const std::function<void()>& enqueued) {
    checkIvf(p);
    const auto tell = [&] {
        if (enqueued) {
            enqueued();
        }
    };
    if (p.numQueries == 0) {
        tell();
        return;
    }
    checkPointers(plan, p);
    if (plan.direct) {
        runIvfDirect(*plan.direct, p, workspace, stream);
        tell();
        return;
    }
    WorkspaceSlices slices(workspace);
    const IvfAgainScratch again(p, plan, slices);
    Workspace shared;
    // Whole slices: searchIvfAgain takes all that is left of them.
    shared.bytes = (workspace.bytes - slices.used()) /
            WorkspaceSlices::kAlignment * WorkspaceSlices::kAlignment;
    shared.data = slices.take<uint8_t>(shared.bytes);
    WorkspaceSlices ofSearch(shared);
    const IvfScratch scratch(p, plan, ofSearch);
    const IvfRows search(plan, p, scratch, stream);
    for (idx_t q = 0; q < p.numQueries; q += plan.rowsAtATime) {
        search.run(q, std::min(plan.rowsAtATime, p.numQueries - q), again);
    }
    tell();
    if (plan.byEstimates() && searchIvfAgain(p, again, shared, stream)) {
        tell();
    }
}

} // namespace faiss_bits
