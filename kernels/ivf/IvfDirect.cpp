#include "kernels/ivf/IvfDirect.h"

#include <algorithm>
#include <cmath>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/LaunchesTogether.h"
#include "kernels/ivf/IvfDirectScratch.h"
#include "kernels/ivf/IvfStagedParams.h"
#include "kernels/ivf/IvfTimes.h"
#include "kernels/ivf/WithCoding.h"

namespace faiss_bits {

namespace {

/// One block finishes a query.
constexpr idx_t kMostQueries = 256;
/// Of queries that share lists of few dimensions.
constexpr idx_t kMostAloneQueries = 1024;
/// Of queries that share product codes, whose estimates take a part of the time
/// of keys, as far as that was measured: of more, and of more dimensions than
/// estimates of lists take as wholes, it was not.
constexpr idx_t kMostProductQueries = 4096;
constexpr int kMostProductDims = 128;
constexpr size_t kMostKeyBytes = size_t(64) << 20;
/// Likewise of estimates, which take a part of the time.
constexpr size_t kMostEstimateBytes = size_t(256) << 20;
/// The same of tables, and the queries of a part, which are blocks of a grid's
/// second dimension, with those of the codebook; at least so many of more than
/// one part.
constexpr size_t kMostTableBytes = size_t(384) << 20;
constexpr idx_t kMostTableRows = 16384;
constexpr idx_t kLeastTableRows = 256;
/// Of queries and centroids: more are searched in less time by the quantizer.
constexpr idx_t kMostFoundPairs = 65536;

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

SelectProblem selectionOf(const IvfKnnProblem& p, const IvfDirectPlan& plan) {
    IvfKnnPlan distances;
    distances.stride = plan.stride;
    return ivfSelection(p, distances, p.numQueries);
}

/// Of the matrix of distances.
void select(
        const IvfDirectPlan& plan,
        const IvfKnnProblem& p,
        const DirectScratch& scratch,
        const IvfDirectParams& params,
        cudaStream_t stream) {
    SelectProblem problem = selectionOf(p, plan);
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
    if (plan.byTables) {
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

bool canFindLists(const IvfKnnProblem& p) {
    return p.centroids && p.nprobe <= kMostFoundProbes &&
            p.lists.numLists <= kMostFoundLists &&
            p.numQueries * p.lists.numLists <= kMostFoundPairs;
}

bool canShare(const IvfKnnProblem& p) {
    if (p.numQueries < 2) {
        return false;
    }
    return p.lists.coding == ListCoding::Product
            ? p.k <= kMostFinishedK && hasIvfProductScan(p.lists, p.device)
            : p.lists.d <= kMostSharedDims;
}

/// The scratch of a plan's parts, of which the last may be smaller, and take
/// another way to sort pairs.
size_t bytesOf(const IvfDirectPlan& plan, const IvfKnnProblem& p) {
    size_t most = 0;
    const idx_t last = (p.numQueries - 1) % plan.rowsAtATime + 1;
    for (const idx_t rows : {plan.rowsAtATime, last}) {
        IvfKnnProblem part = p;
        part.numQueries = rows;
        WorkspaceSlices slices;
        DirectScratch(part, plan, slices);
        most = std::max(most, slices.used());
    }
    return most;
}

/// As planIvfDirectWay, of a way by tables.
std::optional<IvfDirectPlan> planTables(
        IvfDirectPlan plan,
        const IvfKnnProblem& p,
        size_t maxBytes) {
    const auto ofRow = size_t(plan.stride) * sizeof(uint32_t);
    const idx_t most = std::clamp<idx_t>(
            idx_t(kMostTableBytes / ofRow), 1, kMostTableRows);
    for (idx_t parts = (p.numQueries + most - 1) / most;;
         parts += std::max<idx_t>(parts / 2, 1)) {
        plan.rowsAtATime = (p.numQueries + parts - 1) / parts;
        if (parts > 1 && plan.rowsAtATime < kLeastTableRows) {
            return {};
        }
        plan.bytes = bytesOf(plan, p);
        if (plan.bytes <= maxBytes) {
            return plan;
        }
    }
}

} // namespace

idx_t mostIvfDirectQueries(const IvfLists& lists, int k) {
    return areSharedAlone(lists) && k <= kMostFinishedK ? kMostAloneQueries
                                                        : kMostQueries;
}

std::optional<IvfDirectPlan> planIvfDirectWay(
        const IvfKnnProblem& p,
        size_t maxBytes,
        bool findsLists,
        bool shared,
        bool byTables) {
    const idx_t mostQueries = !shared ? kMostQueries
            : p.lists.coding == ListCoding::Product &&
                    p.lists.d <= kMostProductDims
            ? kMostProductQueries
            : mostIvfDirectQueries(p.lists, p.k);
    const bool canGo = byTables ? shared && p.numQueries > 1 &&
                    p.k <= kMostTableK && hasIvfTableScan(p.lists, p.device)
                                : (!shared || canShare(p)) &&
                    p.numQueries > 0 && p.numQueries <= mostQueries;
    if (!canGo || (findsLists && !canFindLists(p)) ||
        p.nprobe > kMostDirectProbes || p.lists.d > kMostDirectDims ||
        p.device.singleToDouble > 2) {
        return {};
    }
    IvfDirectPlan plan;
    plan.findsLists = findsLists;
    plan.shared = shared;
    plan.byTables = byTables;
    plan.rowsAtATime = p.numQueries;
    const idx_t padded = p.mostVectors + idx_t(p.nprobe) * (kIvfGroup - 1);
    plan.stride = (padded / kIvfGroup + 1) * kIvfGroup;
    if (byTables) {
        return planTables(plan, p, maxBytes);
    }
    const size_t keys = size_t(plan.stride) * size_t(p.numQueries);
    if (keys * sizeof(uint32_t) >
        (hasEstimates(plan, p) || p.numQueries > kMostQueries
                 ? kMostEstimateBytes
                 : kMostKeyBytes)) {
        return {};
    }
    plan.selects = p.k > kMostFinishedK;
    if (plan.selects) {
        plan.selection = planSelection(selectionOf(p, plan));
    }
    plan.bytes = bytesOf(plan, p);
    if (plan.bytes > maxBytes) {
        return {};
    }
    return plan;
}

bool mayGoByTables(const IvfKnnProblem& p) {
    return hasIvfTableScan(p.lists, p.device) &&
            !ivf_times::areDecodedInBlocks(p.lists) &&
            !(p.k <= kMostFinishedK && p.numQueries <= kMostQueries &&
              hasIvfProductScan(p.lists, p.device));
}

std::optional<IvfDirectPlan> planIvfDirect(
        const IvfKnnProblem& p,
        size_t maxBytes) {
    std::optional<IvfDirectPlan> best;
    double least = INFINITY;
    const auto consider = [&](bool findsLists, bool shared, bool byTables) {
        const auto plan =
                planIvfDirectWay(p, maxBytes, findsLists, shared, byTables);
        const double time = plan ? ivf_times::ofDirect(*plan, p) : INFINITY;
        if (time < least) {
            least = time;
            best = plan;
        }
    };
    consider(canFindLists(p), false, false);
    consider(canFindLists(p), true, false);
    if (mayGoByTables(p)) {
        consider(canFindLists(p), true, true);
    }
    return best;
}

namespace {

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
