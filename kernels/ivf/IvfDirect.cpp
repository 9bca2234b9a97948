#include "kernels/ivf/IvfDirect.h"

#include <cmath>

#include "kernels/common/CudaCheck.h"
#include "kernels/ivf/IvfBoundedScans.h"
#include "kernels/ivf/IvfFilterBits.h"
#include "kernels/ivf/IvfScratch.h"
#include "kernels/ivf/IvfStagedParams.h"
#include "kernels/ivf/IvfTimes.h"
#include "kernels/ivf/WithCoding.h"

namespace faiss_bits {

namespace {

/// One block finishes a query.
constexpr idx_t kMostQueries = 256;
/// Of queries that share lists of few dimensions.
constexpr idx_t kMostAloneQueries = 1024;
constexpr size_t kMostKeyBytes = size_t(64) << 20;
/// Likewise of estimates, which take a part of the time.
constexpr size_t kMostEstimateBytes = size_t(256) << 20;
/// Of queries and centroids: more are searched in less time by the quantizer.
constexpr idx_t kMostFoundPairs = 65536;

/// Whether vectors come through shared memory.
bool areStaged(const IvfLists& lists) {
    return isStaged(lists.coding) && lists.layout == ListLayout::Interleaved;
}

/// Whether a search writes estimates of keys, of which the finish makes keys.
bool hasEstimates(const IvfDirectPlan& plan, const IvfKnnProblem& p) {
    // The finish makes keys of them, a selection would not.
    return plan.shared && p.k <= kMostFinishedK &&
            hasIvfProductScan(p.lists, p.device);
}

/// Of queries that share lists the bits of a test are made before the scan.
bool makesBits(const IvfDirectPlan& plan, const IvfKnnProblem& p) {
    return plan.shared && p.lists.idTest.isThere();
}

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

struct DirectScratch {
    IvfDirectParams params; // what lies in scratch, and its sizes
    // Of a test of ids: its bits.
    uint32_t* bits = nullptr;
    uint32_t* firstWords = nullptr;
    uint32_t wordsOfList = 0;
    // Of the selection of distances.
    float* keys = nullptr;
    int32_t* places = nullptr;
    Workspace select;

    DirectScratch(
            const IvfKnnProblem& p,
            const IvfDirectPlan& plan,
            WorkspaceSlices& slices) {
        IvfParams& search = params.search;
        const size_t rows = size_t(p.numQueries);
        const size_t numLists = size_t(p.lists.numLists);
        const size_t pairs = rows * size_t(p.nprobe);
        search.stride = plan.stride;
        search.columns = slices.take<uint32_t>(pairs + rows);
        const size_t columns = rows * size_t(plan.stride);
        if (plan.selects) {
            search.distances = slices.take<float>(columns);
            keys = slices.take<float>(rows * (size_t(p.k) + 1));
            places = slices.take<int32_t>(rows * (size_t(p.k) + 1));
            select.bytes = plan.selection.workspaceBytes();
            select.data = slices.take<uint8_t>(select.bytes);
        } else {
            params.keys = slices.take<uint32_t>(columns);
            params.least = slices.take<uint32_t>(columns / kIvfGroup);
        }
        if (hasEstimates(plan, p)) {
            params.bounds = slices.take<uint32_t>(2 * rows);
            params.codebook = slices.take<uint16_t>(
                    ivfProductCodebookBytes(p.lists.d) / sizeof(uint16_t));
            params.codebookNorms =
                    slices.take<float>(size_t(p.lists.decoding.numParts) + 1);
        }
        if (plan.findsLists) {
            params.centroidKeys = slices.take<uint32_t>(rows * numLists);
            params.foundProbes = slices.take<idx_t>(pairs);
        }
        if (makesBits(plan, p)) {
            IvfLists lists = p.lists;
            wordsOfList = ivfWordsOfList(lists, ivfLongestList(p));
            if (wordsOfList == 0) {
                firstWords = slices.take<uint32_t>(numLists + 1);
            }
            lists.wordsOfList = wordsOfList;
            bits = slices.take<uint32_t>(size_t(ivfFilterWords(lists)));
        }
        if (plan.shared) {
            if (sortsPairsInOneBlock(idx_t(pairs), p.lists.numLists)) {
                params.arrived = slices.take<uint32_t>(1);
            }
            search.counts = slices.take<uint32_t>(numLists);
            search.firstPairs = slices.take<uint32_t>(numLists);
            search.firstTiles = slices.take<uint32_t>(numLists + 1);
            search.pairRanks = slices.take<uint32_t>(pairs);
            search.pairRows = slices.take<uint32_t>(pairs);
            search.pairColumns = slices.take<uint32_t>(pairs);
            if (isScalar(p.lists.coding)) {
                search.starts = slices.take<float>(size_t(p.lists.d));
                search.steps = slices.take<float>(size_t(p.lists.d));
            }
        }
    }
};

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

/// bits: to be made of a test of ids when pairs are known, unless it is null
template <Metric kMetric, ListCoding kCoding>
void launchScan(
        const IvfDirectPlan& plan,
        const IvfDirectParams& params,
        uint32_t* bits,
        const DeviceTraits& device,
        cudaStream_t stream) {
    const bool staged = areStaged(params.search.lists);
    if (plan.shared) {
        if (params.arrived && !params.centroids) {
            BITS_CUDA_CHECK(cudaMemsetAsync(
                    params.arrived, 0, sizeof(uint32_t), stream));
        }
        launchIvfDirectLists(params, stream);
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
    if (staged && !(plan.shared && areSharedAlone(params.search.lists))) {
        const auto launch = plan.shared
                ? launchIvfStagedSharedScan<kMetric, kCoding>
                : launchIvfStagedScan<kMetric, kCoding>;
        launch(params, device, stream);
    } else if (params.bounds) {
        launchIvfProductScan<kMetric>(params, device.multiprocessors, stream);
    } else if (plan.shared) {
        launchIvfSharedScan<kMetric, kCoding>(
                params, device.multiprocessors, stream);
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
    if (!hasEstimates(plan, p)) {
        const bool areAlone = areSharedAlone(p.lists);
        params.tileQueries = areAlone ? kIvfAloneQueries : kIvfSharedQueries;
        params.tileVectors =
                areStaged(p.lists) && !areAlone ? kIvfGroup : kIvfSharedVectors;
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

} // namespace

idx_t mostIvfDirectQueries(const IvfLists& lists, int k) {
    return areSharedAlone(lists) && k <= kMostFinishedK ? kMostAloneQueries
                                                        : kMostQueries;
}

std::optional<IvfDirectPlan> planIvfDirectWay(
        const IvfKnnProblem& p,
        size_t maxBytes,
        bool findsLists,
        bool shared) {
    const idx_t mostQueries =
            shared ? mostIvfDirectQueries(p.lists, p.k) : kMostQueries;
    if ((findsLists && !canFindLists(p)) || (shared && !canShare(p)) ||
        p.numQueries < 1 || p.numQueries > mostQueries ||
        p.nprobe > kMostDirectProbes || p.lists.d > kMostDirectDims ||
        p.device.singleToDouble > 2) {
        return {};
    }
    IvfDirectPlan plan;
    plan.findsLists = findsLists;
    plan.shared = shared;
    const idx_t padded = p.mostVectors + idx_t(p.nprobe) * (kIvfGroup - 1);
    plan.stride = (padded / kIvfGroup + 1) * kIvfGroup;
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
    WorkspaceSlices slices;
    DirectScratch(p, plan, slices);
    plan.bytes = slices.used();
    if (plan.bytes > maxBytes) {
        return {};
    }
    return plan;
}

std::optional<IvfDirectPlan> planIvfDirect(
        const IvfKnnProblem& p,
        size_t maxBytes) {
    std::optional<IvfDirectPlan> best;
    double least = INFINITY;
    const auto consider = [&](bool findsLists, bool shared) {
        const auto plan = planIvfDirectWay(p, maxBytes, findsLists, shared);
        const double time = plan ? ivf_times::ofDirect(*plan, p) : INFINITY;
        if (time < least) {
            least = time;
            best = plan;
        }
    };
    consider(canFindLists(p), false);
    consider(canFindLists(p), true);
    return best;
}

void runIvfDirect(
        const IvfDirectPlan& plan,
        const IvfKnnProblem& p,
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
        if (scratch.firstWords) {
            runIvfFirstWords(p.lists, scratch.firstWords, stream);
        }
        if (makesAllBits(p)) {
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
    if (plan.findsLists) {
        params.centroids = p.centroids;
        launchIvfCentroids(params, p.centroidMetric, stream);
    }
    withCoding(p.lists.coding, [&](auto coding) {
        const auto launch = p.metric == Metric::L2
                ? launchScan<Metric::L2, coding()>
                : launchScan<Metric::InnerProduct, coding()>;
        launch(plan,
               params,
               makesAllBits(p) ? nullptr : scratch.bits,
               p.device,
               stream);
    });
    if (plan.selects) {
        select(plan, p, scratch, params, stream);
    } else if (params.bounds) {
        launchIvfBoundedFinish(params, stream);
    } else {
        launchIvfDirectFinish(params, stream);
    }
}

} // namespace faiss_bits
