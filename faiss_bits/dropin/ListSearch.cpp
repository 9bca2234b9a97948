#include "faiss_bits/dropin/ListSearch.h"

#include <cuda_runtime.h>

#include <climits>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "faiss_bits/dropin/CodeTables.h"
#include "faiss_bits/dropin/Device.h"
#include "faiss_bits/dropin/Finish.h"
#include "faiss_bits/dropin/HostResults.h"
#include "faiss_bits/dropin/KnownLengths.h"
#include "faiss_bits/dropin/ListLengths.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/ivf/IvfKnn.h"

namespace faiss_bits::dropin {

namespace {

/// FAISS's own limit, of k and of lists; above it, it says so itself.
constexpr int kFaissMaxK = 2048;
constexpr size_t kMostScratch = size_t(448) << 20;
constexpr idx_t kMostVectors = INT_MAX - 16; // of the lists of a query
constexpr idx_t kMostTotal = idx_t(1) << 36;
constexpr size_t kMostTables = size_t(512) << 20;
constexpr int kFastDouble = 2; // operations in float32 for one in float64

/// Queries with tables up to which our search was seen to be the faster one
/// where they share no lists (H100, 1 and 16).
constexpr idx_t kFewWithTables = 16;

/// On average; then estimates serve several queries at once (planIvfKnn).
bool shareLists(const IvfKnnProblem& p) {
    return p.numQueries * p.nprobe >= p.lists.numLists;
}

/// What of the shape is better left to FAISS, whatever the lists' lengths:
/// where queries do not meet in lists all distances are found in float64.
std::string leftByShape(const ListRequest& r, const IvfKnnProblem& p) {
    if (r.hasTables && r.numQueries > kFewWithTables && !shareLists(p)) {
        return "searches with tables made before whose queries share no lists";
    }
    return !ivfPairsMeet(p) && p.device.singleToDouble > kFastDouble
            ? "searches of few queries in many lists, where float64 is slow"
            : "";
}

/// Searches of product codes take FAISS and us about so long, in nanoseconds:
/// fitted to 2^20 vectors of 128 dimensions in 4,096 lists, codes of 32 bytes;
/// FAISS's on an H200, ours on an H100, to whole calls of 1,024 and 10,240
/// queries. FAISS makes a table for each pair of query and list, or adds two
/// up, and reads it for each code; we decode each vector once and multiply.
constexpr double kFaissTable = 1.1;         // a part and pair
constexpr double kFaissTables = 0.4;        // likewise, of tables made before
constexpr double kFaissCode = 0.00135;      // a code and pair
constexpr double kOurVector = 0.4 / 128;    // a component
constexpr double kOurProduct = 0.015 / 128; // a component and pair
constexpr double kShortSearch = 1e5;        // launches take most of it

bool isSlowerThanTables(
        const ListRequest& r,
        const IvfKnnProblem& p,
        const ListLengths& lengths) {
    if (r.lists.coding != ListCoding::Product ||
        !(r.hasTables ? shareLists(p) : ivfPairsMeet(p))) {
        return false;
    }
    const double parts = r.lists.decoding.numParts;
    const double pairs = double(r.numQueries) * r.nprobe;
    const double length = double(lengths.total) / double(r.lists.numLists);
    const double faiss = pairs * parts *
            ((r.hasTables ? kFaissTables : kFaissTable) + kFaissCode * length);
    const double ours = r.lists.d *
            (kOurVector * double(lengths.total) + kOurProduct * pairs * length);
    return ours > kShortSearch && ours > faiss;
}

/// Likewise, when they are known.
std::string leftByLengths(
        const ListRequest& r,
        const IvfKnnProblem& p,
        const ListLengths& lengths) {
    if (isSlowerThanTables(r, p, lengths)) {
        return "searches of product codes where too few queries share a list";
    }
    return lengths.mostProbed > kMostVectors || lengths.longest > kMostVectors
            ? "searches of 2^31 vectors and more"
            : lengths.total >= kMostTotal ? "searches in 2^36 vectors and more"
                                          : "";
}

std::string leftByPlan(const IvfKnnPlan& plan, const DeviceTraits& traits) {
    return !plan.byEstimates() && traits.singleToDouble > kFastDouble
            ? "searches of most vectors of the lists, where float64 is slow"
            : "";
}

bool isCaptured(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    BITS_CUDA_CHECK(cudaStreamIsCapturing(stream, &status));
    return status != cudaStreamCaptureStatusNone;
}

/// All but what the lists' lengths tell.
IvfKnnProblem makeProblem(const ListRequest& r, const Device& device) {
    IvfKnnProblem p;
    p.metric = r.metric;
    p.lists = r.lists;
    p.numQueries = r.numQueries;
    p.nprobe = r.nprobe;
    p.k = r.k;
    p.queries = r.queries;
    p.probes = r.probes;
    p.outDistances = r.outDistances;
    p.outIds = r.outIds;
    p.device = device.traits;
    return p;
}

/// What decodes the lists, in scratch, in as far as FAISS does not have it as
/// our kernels read it.
struct CodeTables {
    float* centroids = nullptr;
    idx_t* places = nullptr;
    float* codebook = nullptr;

    CodeTables(const ListRequest& r, WorkspaceSlices& slices) {
        const IvfLists& lists = r.lists;
        if (r.residualBases) {
            centroids = slices.take<float>(size_t(lists.numLists) * lists.d);
            places = slices.take<idx_t>(size_t(lists.numLists));
        }
        if (r.codebook) {
            codebook = slices.take<float>(
                    size_t(lists.d) << lists.decoding.partBits);
        }
    }

    void fill(const ListRequest& r, cudaStream_t stream, IvfLists& lists)
            const {
        if (r.residualBases) {
            gatherCentroids(
                    {r.residualBases,
                     r.probes,
                     r.numQueries * r.nprobe,
                     lists.numLists,
                     lists.d},
                    centroids,
                    places,
                    stream);
            lists.decoding.centroids = centroids;
        }
        if (r.codebook) {
            transposeCodebook(
                    r.codebook,
                    lists.decoding.numParts,
                    lists.d / lists.decoding.numParts,
                    1 << lists.decoding.partBits,
                    codebook,
                    stream);
            lists.decoding.codebook = codebook;
        }
    }
};

size_t bytesOfTables(const ListRequest& r) {
    WorkspaceSlices slices;
    const CodeTables tables(r, slices);
    return slices.used();
}

/// A search of lists that are so long.
struct PlannedSearch {
    IvfKnnProblem problem;
    IvfKnnPlan plan;

    PlannedSearch(const IvfKnnProblem& p, const ListLengths& lengths)
            : problem(p) {
        problem.lists.numVectors = lengths.total;
        problem.mostVectors = lengths.mostProbed;
        problem.longestList = lengths.longest;
        plan = planIvfKnn(problem, kMostScratch);
    }
};

/// What a search reads in place of FAISS's lengths and probes, in scratch
/// (ListGuard).
struct SafeProbes {
    int32_t* lengths;
    idx_t* probes;

    SafeProbes(const IvfKnnProblem& p, WorkspaceSlices& slices)
            : lengths(slices.take<int32_t>(size_t(p.lists.numLists))),
              probes(slices.take<idx_t>(size_t(p.numQueries) * p.nprobe)) {}
};

/// guard(safe): enqueues what fills these, before all else; or nullptr.
void run(
        const ListRequest& r,
        const PlannedSearch& search,
        const std::function<void(const SafeProbes&)>& guard,
        cudaStream_t stream) {
    const auto layOut = [&](WorkspaceSlices& slices) {
        const CodeTables tables(r, slices);
        std::optional<SafeProbes> safe;
        if (guard) {
            safe.emplace(search.problem, slices);
        }
        return std::pair(tables, safe);
    };
    WorkspaceSlices sizes;
    layOut(sizes);
    const size_t before = sizes.used();
    const Scratch scratch(
            currentDevice().pool, before + search.plan.bytes, stream);
    WorkspaceSlices slices({scratch.data(), before});
    const auto [tables, safe] = layOut(slices);
    IvfKnnProblem problem = search.problem;
    if (safe) {
        guard(*safe);
        problem.lists.lengths = safe->lengths;
        problem.lists.lengths64 = false;
        problem.probes = safe->probes;
    }
    tables.fill(r, stream, problem.lists);
    Request results;
    results.rows = r.numQueries;
    results.cols = problem.mostVectors;
    results.k = r.k;
    results.largest = isSimilarity(r.metric);
    results.idType = IdType::Int64;
    results.outKeys = r.outDistances;
    results.outIds = r.outIds;
    runIvfKnn(
            search.plan,
            problem,
            {static_cast<uint8_t*>(scratch.data()) + before, search.plan.bytes},
            stream,
            [&] {
                // Before the host waits; again where some were searched again.
                dropWorst(results, stream);
                HostResults::isUnderWay(r.outDistances);
            });
}

/// A search that is enqueued before the lengths are known: that they are as
/// they were is found out on the way, and the host waits once, at the end.
/// False: nothing was searched, or not what the lists are now.
bool searchKnownLists(
        const ListRequest& r,
        const IvfKnnProblem& problem,
        const ListProbes& probes,
        KnownLengths& known,
        cudaStream_t stream) {
    ListLengths expected = known.found();
    if (!known.isTrusted(r.nprobe, expected.mostProbed) ||
        !leftByLengths(r, problem, expected).empty()) {
        return false;
    }
    const PlannedSearch search(problem, expected);
    if (!search.plan.byEstimates()) {
        return false;
    }
    std::optional<ListGuard> guard;
    run(
            r,
            search,
            [&](const SafeProbes& safe) {
                guard.emplace(
                        probes,
                        known.lengths(),
                        expected.mostProbed,
                        safe.lengths,
                        safe.probes,
                        stream);
            },
            stream);
    const ListLengths found = guard->read();
    if (found.numOthers > 0) {
        return false;
    }
    known.confirm(r.nprobe, found.mostProbed);
    if (found.total < expected.total / 2) {
        forgetLengths(r.lists); // plans are made for far more
    }
    return true;
}

} // namespace

std::string refusalOf(const ListRequest& r) {
    if (!r.mismatch.empty()) {
        return r.mismatch;
    }
    const auto outside = [](const char* name, int value) {
        return std::string(name) + " = " + std::to_string(value) +
                " is outside 1.." + std::to_string(kFaissMaxK);
    };
    if (r.k < 1 || r.k > kFaissMaxK) {
        return outside("k", r.k);
    }
    if (r.nprobe < 1 || r.nprobe > kFaissMaxK) {
        return outside("nprobe", r.nprobe);
    }
    return "";
}

std::string searchLists(const ListRequest& r, cudaStream_t stream) {
    if (!r.left.empty() || r.numQueries == 0) {
        return r.left;
    }
    const Device& device = currentDevice();
    if (isCaptured(stream)) {
        return "searches under graph capture";
    }
    const IvfKnnProblem problem = makeProblem(r, device);
    const std::string left = leftByShape(r, problem);
    if (!left.empty()) {
        return left;
    }
    if (bytesOfTables(r) > kMostTables) {
        return "searches of residuals in lists that are too many";
    }
    const ListProbes probes{r.lists, r.probes, r.numQueries, r.nprobe};
    // Others do not wait at the end, so it is of no use to them.
    const bool mayKnow = shareLists(problem);
    const std::shared_ptr<KnownLengths> known =
            mayKnow ? knownLengthsOf(r.lists) : nullptr;
    if (known && searchKnownLists(r, problem, probes, *known, stream)) {
        return "";
    }
    const ListLengths lengths =
            findListLengths(probes, known ? known->lengths() : nullptr, stream);
    if (known && lengths.numOthers == 0) {
        known->confirm(r.nprobe, lengths.mostProbed);
    } else if (mayKnow) {
        rememberLengths(r.lists, lengths, stream);
    }
    const std::string leftThen = leftByLengths(r, problem, lengths);
    if (!leftThen.empty()) {
        return leftThen;
    }
    const PlannedSearch search(problem, lengths);
    const std::string leftOfPlan = leftByPlan(search.plan, device.traits);
    if (!leftOfPlan.empty()) {
        return leftOfPlan;
    }
    run(r, search, nullptr, stream);
    return "";
}

} // namespace faiss_bits::dropin
