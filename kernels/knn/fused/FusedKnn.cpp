#include "kernels/knn/fused/FusedKnn.h"

#include <algorithm>

#include "kernels/common/Error.h"
#include "kernels/knn/ByMetric.h"
#include "kernels/knn/Norms.h"
#include "kernels/knn/RowFacts.h"
#include "kernels/knn/fused/FinishPassed.h"
#include "kernels/knn/fused/FusedCost.h"
#include "kernels/knn/fused/FusedLaunch.h"
#include "kernels/knn/fused/FusedLists.h"
#include "kernels/knn/fused/FusedResults.h"
#include "kernels/knn/fused/FusedScratch.h"
#include "kernels/knn/fused/NearLists.h"
#include "kernels/knn/fused/Overfull.h"
#include "kernels/knn/fused/SampleKernels.h"
#include "kernels/knn/fused/ScoreStreamed.h"
#include "kernels/knn/fused/SlotRows.h"
#include "kernels/knn/fused/StripLimits.h"

namespace faiss_bits {

namespace {

struct Launches {
    void (*sampleLimits)(const SampleLimitParams&, cudaStream_t);
    void (*givenLimits)(const GivenLimitParams&, cudaStream_t);
    void (*closerLimits)(const CloserLimitParams&, cudaStream_t);
    void (*scorePassed)(const PassedParams&, int, cudaStream_t);
    void (*sampleFew)(const SampleLimitParams&, cudaStream_t);
};

Launches launchesFor(Metric metric) {
    return byMetric(metric, []<Metric kMetric>() {
        return Launches{
                launchSampleLimits<kMetric>,
                launchGivenLimits<kMetric>,
                launchCloserLimits<kMetric>,
                launchScorePassed<kMetric>,
                launchSampleFew<kMetric>};
    });
}

class FusedRun {
   public:
    FusedRun(
            const FlatKnnProblem& problem,
            const FusedPlan& plan,
            const FusedScratch& scratch,
            cublasHandle_t handle,
            cudaStream_t stream)
            : p_(problem),
              plan_(plan),
              scratch_(scratch),
              launches_(launchesFor(problem.metric)),
              stream_(stream),
              sample_(sampleProblem(problem, plan)),
              handle_(handle),
              certifier_(
                      problem,
                      int(plan.capacity),
                      plan.method->bound(problem),
                      scratch.certified,
                      stream) {}

    void run() {
        certifier_.begin();
        takeSample();
        if (scratch_.slotRows) {
            launchSlotRows(
                    {p_.vectors,
                     p_.dataType,
                     p_.vectorsRowMajor ? p_.d : 1,
                     p_.vectorsRowMajor ? 1 : p_.numVectors},
                    p_.numVectors,
                    p_.d,
                    scratch_.slotRows,
                    stream_);
        }
        for (idx_t q = 0; q < p_.numQueries; q += plan_.tileQueries) {
            runQueries(q, std::min(plan_.tileQueries, p_.numQueries - q));
        }
    }

   private:
    /// Where a selection adds the norms to products, here the limits do.
    bool addsNorms() const {
        return sample_.metric == Metric::L2 && plan_.sampling->addsNorms;
    }

    void takeSample() {
        const FusedScan::Sample sample = scratch_.scan->begin(
                scratch_.sample, plan_.sampling ? plan_.samples : 0, stream_);
        sample_.vectors = sample.vectors;
        sample_.vectorNorms = sample.norms;
        if (scratch_.sampleBits) {
            runSampleBits(
                    p_.allowedBits,
                    p_.numVectors,
                    samplesOf(p_),
                    plan_.samples,
                    false,
                    scratch_.sampleBits,
                    stream_);
        }
        if (scratch_.secondBits) {
            runSampleBits(
                    p_.allowedBits,
                    p_.numVectors,
                    plan_.secondSamples,
                    plan_.secondSamples,
                    true,
                    scratch_.secondBits,
                    stream_);
        }
        if (scratch_.sampleNorms) {
            runSquaredNorms(
                    sample_.vectors,
                    sample_.dataType,
                    true,
                    plan_.samples,
                    p_.d,
                    scratch_.sampleNorms,
                    stream_);
            sample_.vectorNorms = scratch_.sampleNorms;
        }
        if (scratch_.sampleFacts) {
            runRowFacts(
                    rowFactsOf(sample_.metric),
                    sample_.vectors,
                    sample_.dataType,
                    true,
                    plan_.samples,
                    p_.d,
                    scratch_.sampleFacts,
                    stream_);
        }
    }

    void runQueries(idx_t first, idx_t count) {
        CertifiedParams params = certifier_.enter(first, count);
        if (plan_.atOnce) {
            scratch_.scan->passAtOnce(
                    params, plan_.rank, words(), scratch_.complete, stream_);
            finishByWarps(params);
            return certifier_.scanAgain(params);
        }
        const void* queries = scratch_.scan->enter(params, stream_);
        scratch_.scan->expectPassing(passingVectors(plan_, p_));
        bytes_ = {};
        if (plan_.givenLimits) {
            launches_.givenLimits(
                    {params,
                     p_.limits + first,
                     scratch_.limits,
                     scratch_.complete,
                     scratch_.counts},
                    stream_);
        } else if (plan_.strips.perRow > 0) {
            findStripLimits(params, plan_.strips, plan_.rank, false);
        } else if (plan_.secondStrips.perRow > 0) {
            // Keys that are the answer have 16 bits.
            if (!answersByKeys(plan_, p_)) {
                bytes_ = scratch_.scan->takeBytes(count, stream_);
            }
            findStripLimits(params, plan_.secondStrips, plan_.secondRank, true);
        } else {
            for (idx_t q = 0; q < count; q += plan_.sampleQueries) {
                findLimits(
                        params,
                        queries,
                        q,
                        std::min(plan_.sampleQueries, count - q));
            }
        }
        PassedLists lists;
        lists.limits = scratch_.limits;
        lists.counts = scratch_.counts;
        lists.columns = reinterpret_cast<uint32_t*>(scratch_.certified.columns);
        lists.capacity = plan_.capacity;
        lists.bits = scratch_.bits;
        lists.words = words().perRow;
        const bool byKeys = answersByKeys(plan_, p_);
        if (byKeys || keepsProducts(plan_, p_)) {
            lists.products = params.entries; // until there are distances
        }
        if (plan_.secondSamples > 0 && plan_.secondStrips.perRow == 0) {
            findCloserLimits(params, lists);
        }
        scratch_.scan->run(params, lists, stream_);
        if (byKeys) {
            launchKeyEntries(p_.metric, nearLists(params, p_.k), stream_);
        } else if (lists.products) {
            launchNearLists(p_.metric, nearLists(params, p_.k), stream_);
        }

        if (byKeys) {
            writeFusedResults(plan_, p_, scratch_, params, stream_);
        } else if (finishesByWarps(plan_, p_)) {
            finishByWarps(params);
        } else {
            scorePassed({params, scratch_.counts, true});
            writeFusedResults(plan_, p_, scratch_, params, stream_);
        }
        certifier_.scanAgain(params);
    }

    void finishByWarps(const CertifiedParams& params) const {
        FinishPassedParams finish;
        finish.passed = {params, scratch_.counts};
        finish.complete = scratch_.complete;
        finish.slotRows = scratch_.slotRows;
        finish.words = words();
        launchFinishPassed(p_.metric, finish, p_.device, stream_);
    }

    PassedWords words() const {
        return {scratch_.bits,
                scratch_.bits ? wordsOf(p_) : 0,
                scratch_.counts,
                scratch_.scan->rows()};
    }

    void scorePassed(const PassedParams& passed) {
        const int multiprocessors = p_.device.multiprocessors;
        if (canScoreStreamed(p_.metric, passed.search)) {
            launchScoreStreamed(p_.metric, passed, multiprocessors, stream_);
        } else {
            launches_.scorePassed(passed, multiprocessors, stream_);
        }
    }

    /// Of the queries row .. row + count - 1 of a tile.
    void findLimits(
            const CertifiedParams& params,
            const void* queries,
            idx_t row,
            idx_t count) {
        SampleLimitParams limits;
        limits.search = params;
        limits.search.queries += row * p_.d;
        if (limits.search.imageFacts) {
            limits.search.queryResiduals += row;
            limits.search.queryNorms += row;
        }
        if (limits.search.centerProducts) {
            limits.search.centerProducts += row;
        }
        limits.search.rows = uint32_t(count);
        limits.values = scratch_.distances;
        limits.columnBias =
                plan_.sampling && addsNorms() ? sample_.vectorNorms : nullptr;
        limits.ofImages = plan_.sampling && params.imageFacts;
        limits.allowedBits = scratch_.sampleBits;
        limits.samples = plan_.samples;
        limits.rank = plan_.rank;
        limits.room = plan_.room;
        limits.overfull = overfullMembers(limits);
        limits.limits = scratch_.limits + row;
        limits.complete = scratch_.complete + row;
        limits.counts = scratch_.counts + row;
        if (plan_.sampling) {
            const size_t bytes = size_t(p_.d) * sizeOf(sample_.dataType);
            findDistances(
                    static_cast<const uint8_t*>(queries) + row * bytes, count);
        } else {
            launches_.sampleFew(limits, stream_);
        }
        launches_.sampleLimits(limits, stream_);
    }

    /// ofSecond: strips of the second sample.
    void findStripLimits(
            const CertifiedParams& params,
            const StripPlan& strips,
            uint32_t rank,
            bool ofSecond) {
        scratch_.scan->runStrips(
                strips, ofSecond, scratch_.stripKeys, params.rows, stream_);
        StripLimitParams limits;
        limits.search = params;
        limits.keys = scratch_.stripKeys;
        limits.strips = strips.perRow;
        limits.rank = rank;
        limits.limits = scratch_.limits;
        limits.complete = scratch_.complete;
        limits.counts = scratch_.counts;
        limits.bytes = bytes_;
        launchStripLimits(
                p_.metric,
                limits,
                words(),
                ofSecond ? overfullStrips(plan_, p_.numVectors) : 0,
                stream_);
    }

    /// What passes in the second sample sets the limits of the scan.
    void findCloserLimits(CertifiedParams params, const PassedLists& lists) {
        params.listedIds = scratch_.scan->runSecond(
                lists, params.rows, scratch_.secondBits, stream_);
        if (lists.products) {
            return launchNearLimits(
                    p_.metric, nearLists(params, plan_.secondRank), stream_);
        }
        params.numRescored = nullptr; // no candidates of the result
        scorePassed({params, scratch_.counts});
        launches_.closerLimits(
                {params,
                 plan_.secondRank,
                 scratch_.counts,
                 scratch_.limits,
                 scratch_.complete},
                stream_);
    }

    NearListsParams nearLists(const CertifiedParams& params, uint32_t rank)
            const {
        NearListsParams lists;
        lists.search = params;
        lists.inverses = scratch_.scan->inverses();
        lists.products = params.entries;
        lists.columns = scratch_.certified.columns;
        lists.rank = rank;
        lists.counts = scratch_.counts;
        lists.limits = scratch_.limits;
        lists.complete = scratch_.complete;
        lists.bytes = bytes_;
        return lists;
    }

    /// To the sample.
    void findDistances(const void* queries, idx_t count) {
        FlatKnnProblem sample = sample_;
        sample.queries = queries;
        sample.numQueries = count;
        if (scratch_.queryFacts) {
            runRowFacts(
                    rowFactsOf(sample.metric),
                    sample.queries,
                    sample.dataType,
                    true,
                    count,
                    p_.d,
                    scratch_.queryFacts,
                    stream_);
        }
        plan_.sampling
                ->prepare(
                        sample,
                        {{scratch_.sampleFacts, scratch_.queryFacts},
                         scratch_.product},
                        scratch_.distances,
                        plan_.samples,
                        handle_)
                ->run({0, count, 0, plan_.samples}, stream_);
    }

    const FlatKnnProblem& p_;
    const FusedPlan& plan_;
    const FusedScratch& scratch_;
    const Launches launches_;
    cudaStream_t stream_;
    FlatKnnProblem sample_; // its queries apart
    cublasHandle_t handle_;
    Certifier certifier_;
    ByteSearch bytes_; // of the queries at work
};

} // namespace

void runFused(
        const FusedPlan& plan,
        const FlatKnnProblem& problem,
        Workspace workspace,
        cublasHandle_t handle,
        cudaStream_t stream) {
    BITS_THROW_IF_NOT_FMT(handle || !plan.sampling, "handle = nullptr");
    const FlatKnnProblem seen = seenBy(plan, problem);
    WorkspaceSlices slices(workspace);
    const FusedScratch scratch(seen, plan, slices);
    FusedRun(seen, plan, scratch, handle, stream).run();
}

} // namespace faiss_bits
