#include "kernels/ivf/IvfDirect.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/LaunchesTogether.h"
#include "kernels/ivf/IvfDirectScratch.h"
#include "kernels/ivf/IvfStagedParams.h"
#include "kernels/ivf/WithCoding.h"

namespace faiss_bits {

namespace {

/// Whether these are the bits of all lists, made first, as the host enqueues
/// what comes after: where lists are few, or most of them are probed; else
/// those of the lists that any query probes.
bool makesAllBits(const IvfKnnProblem& p) {
    constexpr idx_t kFewVectors = idx_t(3) << 19;
    constexpr double kMuch = 0.25;
    const double probes = double(p.numQueries) * p.nprobe;
    return p.lists.numVectors <= kFewVectors ||
            1 - std::exp(-probes / double(p.lists.numLists)) >= kMuch;
}

/// Of the matrix of distances.
void select(
        const IvfDirectPlan& plan,
        const IvfKnnProblem& p,
        const DirectScratch& scratch,
        const IvfDirectParams& params,
        cudaStream_t stream) {
    SelectProblem problem = directSelection(p, plan);
    problem.keys = params.search.distances;
    problem.outKeys = scratch.keys;
    problem.outIds = scratch.places;
    runSelect(plan.selection, problem, scratch.select, stream);
    IvfResultParams result;
    result.search = params.search;
    result.keys = scratch.keys;
    result.places = scratch.places;
    result.largest = params.largest;
    result.outDistances = p.outDistances;
    result.outIds = p.outIds;
    launchIvfResults(result, stream);
}

/// What is enqueued of a part of the queries.
struct PartOfSearch {
    bool isFirst = true; ///< makes what all parts read, too
    /// The bits of a test of ids are among that.
    bool sharesBits = false;
};

/// bits: to be made of a test of ids when pairs are known, unless it is null
template <Metric kMetric, ListCoding kCoding>
void launchScan(
        const IvfDirectPlan& plan,
        const IvfDirectParams& params,
        const PartOfSearch& part,
        uint32_t* bits,
        const DeviceTraits& device,
        cudaStream_t stream) {
    const IvfLists& lists = params.search.lists;
    if (plan.shared) {
        if (params.arrived && !params.centroids) {
            BITS_CUDA_CHECK(cudaMemsetAsync(
                    params.arrived, 0, sizeof(uint32_t), stream));
        }
        launchIvfDirectLists(params, part.isFirst, stream);
        if (!params.arrived) {
            launchIvfPairs(
                    params.search,
                    int(params.tileQueries),
                    int(params.tileVectors),
                    stream);
        }
        if (bits) { // of some lists
            runIvfTestedBits(
                    params.search.lists, params.search.counts, bits, stream);
        }
    }
    if constexpr (
            kCoding == ListCoding::Scalar8 || kCoding == ListCoding::Product) {
        if (!plan.shared && params.bounds) {
            if (!params.centroids) {
                BITS_CUDA_CHECK(cudaMemsetAsync(
                        params.bounds,
                        0,
                        2 * params.search.rows * sizeof(uint32_t),
                        stream));
            }
            if constexpr (kCoding == ListCoding::Product) {
                launchIvfBookScan<kMetric>(
                        params, device.multiprocessors, stream);
            } else {
                launchIvfCodeFloors<kMetric>(
                        params, device.multiprocessors, stream);
            }
            launchIvfFloorsFinish<kMetric, kCoding>(params, stream);
            return;
        }
    }
    if (plan.shared ? areSharedByFours(lists) : areStaged(lists)) {
        const auto launch = plan.shared
                ? launchIvfStagedSharedScan<kMetric, kCoding>
                : launchIvfStagedScan<kMetric, kCoding>;
        launch(params, device, stream);
    } else if (params.turnedCodebook) {
        if (params.queryTerms) {
            launchIvfTableTerms(params, stream);
        }
        launchIvfTableScan<kMetric>(params, device, stream);
    } else if (params.bounds) {
        launchIvfProductScan<kMetric>(params, device.multiprocessors, stream);
    } else if (plan.shared) {
        launchIvfSharedScan<kMetric, kCoding>(
                params, device.multiprocessors, stream);
    } else if (hasIvfBookScan(
                       lists,
                       params.search.rows,
                       int(params.search.nprobe),
                       device)) {
        launchIvfBookScan<kMetric>(params, device.multiprocessors, stream);
    } else {
        launchIvfDirectScan<kMetric, kCoding>(
                params, device.multiprocessors, stream);
    }
}

/// Of queries that share lists.
void setTiles(
        const IvfDirectPlan& plan,
        const IvfKnnProblem& p,
        IvfDirectParams& params) {
    if (plan.shared && plan.byTables) {
        params.tileQueries = kIvfTableQueries;
        params.tileVectors = kIvfTableVectors;
    } else if (!hasEstimates(plan, p)) {
        params.tileQueries =
                areSharedAlone(p.lists) ? kIvfAloneQueries : kIvfSharedQueries;
        params.tileVectors = areSharedByFours(p.lists) ? kIvfFoursVectors
                                                       : kIvfSharedVectors;
    } else {
        params.tileQueries = kIvfProductQueries;
        params.tileVectors = kIvfProductVectors;
    }
}

void runPart(
        const IvfDirectPlan& plan,
        const IvfKnnProblem& p,
        const PartOfSearch& part,
        Workspace workspace,
        cudaStream_t stream) {
    WorkspaceSlices slices(workspace);
    const DirectScratch scratch(p, plan, slices);
    IvfDirectParams params = scratch.params;
    IvfParams& search = params.search;
    search.lists = p.lists;
    if (scratch.bits) {
        search.lists.firstWords = scratch.firstWords;
        search.lists.wordsOfList = scratch.wordsOfList;
        search.lists.selectedBits = scratch.bits;
        if (part.isFirst && scratch.firstWords) {
            runIvfFirstWords(p.lists, scratch.firstWords, stream);
        }
        if (part.isFirst && part.sharesBits) {
            runIvfTestedBits(search.lists, nullptr, scratch.bits, stream);
        }
    }
    search.d = p.lists.d;
    search.queries = p.queries;
    search.probes = plan.findsLists ? params.foundProbes : p.probes;
    search.rows = uint32_t(p.numQueries);
    search.nprobe = uint32_t(p.nprobe);
    search.nearProbes = search.nprobe;
    search.lastProbe = search.nprobe;
    search.k = p.k;
    setTiles(plan, p, params);
    params.largest = isSimilarity(p.metric);
    params.outDistances = p.outDistances;
    params.outIds = p.outIds;
    std::optional<LaunchesTogether> together; // of three kernels
    if (plan.findsLists) {
        if (!plan.shared && !plan.selects) {
            together.emplace(stream);
        }
        params.centroids = p.centroids;
        launchIvfCentroids(params, p.centroidMetric, stream);
    }
    withCoding(p.lists.coding, [&](auto coding) {
        const auto launch = p.metric == Metric::L2
                ? launchScan<Metric::L2, coding()>
                : launchScan<Metric::InnerProduct, coding()>;
        launch(plan,
               params,
               part,
               part.sharesBits ? nullptr : scratch.bits,
               p.device,
               stream);
    });
    if (plan.selects) {
        select(plan, p, scratch, params, stream);
    } else if (hasCodeFloors(plan, p)) {
        // The launch of the scan has the finish.
    } else if (params.bounds) {
        launchIvfBoundedFinish(params, stream);
    } else {
        launchIvfDirectFinish(params, stream);
    }
    if (together) {
        together->enqueue();
    }
}

} // namespace

void runIvfDirect(
        const IvfDirectPlan& plan,
        const IvfKnnProblem& p,
        Workspace workspace,
        cudaStream_t stream) {
    PartOfSearch of;
    of.sharesBits = makesAllBits(p);
    for (idx_t q = 0; q < p.numQueries; q += plan.rowsAtATime) {
        of.isFirst = q == 0;
        IvfKnnProblem part = p;
        part.numQueries = std::min(plan.rowsAtATime, p.numQueries - q);
        part.queries += q * p.lists.d;
        if (!plan.findsLists) {
            part.probes += q * p.nprobe;
        }
        part.outDistances += q * p.k;
        part.outIds += q * p.k;
        runPart(plan, part, of, workspace, stream);
    }
}

} // namespace faiss_bits
