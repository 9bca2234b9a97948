#include "kernels/knn/line/SortedLineKnn.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/common/Error.h"
#include "kernels/knn/all_pairs/AllPairsKnn.h"
#include "kernels/knn/direct/DirectKnn.h"
#include "kernels/knn/fused/FusedCost.h"
#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/line/SortedLineKernels.h"
#include "kernels/knn/nearest/FewDimsKnn.h"
#include "kernels/knn/nearest/NearestKnn.h"
#include "kernels/select/large_k/RadixSort.h"

namespace faiss_bits {

namespace {

constexpr idx_t kMostVectors = idx_t(1) << 26; // 1 GiB of entries
/// Of larger k the results of a query are for a block.
constexpr int kMostWarpK = 128;

bool takes(const FlatKnnProblem& p) {
    return p.d == 1 && p.mode != SearchMode::Plain && p.k <= kMostLineK &&
            p.numVectors > 0 && p.numVectors <= kMostVectors &&
            !p.allowedBits && !p.limits &&
            (p.metric == Metric::L2 || p.metric == Metric::InnerProduct);
}

struct SortedLineScratch {
    uint64_t* entries[2] = {};
    Workspace sort;

    SortedLineScratch(const FlatKnnProblem& p, WorkspaceSlices& slices) {
        for (uint64_t*& one : entries) {
            one = slices.take<uint64_t>(size_t(p.numVectors));
        }
        sort.bytes = radixSortTempBytes(size_t(p.numVectors));
        sort.data = slices.take<uint8_t>(sort.bytes);
    }
};

/// The lowest bit of an entry that differs between numbers of that type, but
/// for those that a bit above tells apart.
int lowestBit(DataType type) {
    constexpr int kColumnBits = 32;
    return kColumnBits +
            (type == DataType::Float32           ? 0
                     : type == DataType::Float16 ? 13
                                                 : 16);
}

// Microseconds here are as they were measured on an H200
// (docs/design/flat_few_dimensions.md).

/// Of the certified search that runs where this one does not.
double otherMicroseconds(const FlatKnnProblem& p) {
    constexpr double kNone = std::numeric_limits<double>::infinity();
    const double pairs = allPairsPays(p) ? allPairsMicroseconds(p) : kNone;
    if (directPays(p, false) && directMicroseconds(p) <= pairs) {
        return directMicroseconds(p);
    }
    if (fewDimsPays(p)) {
        return fewDimsMicroseconds(p);
    }
    if (pairs < kNone) {
        return pairs;
    }
    if (takesNearest(p)) {
        return nearestMicroseconds(p);
    }
    if (!planFused(p, SIZE_MAX)) {
        return candidatesMicroseconds(p);
    }
    // Component by component; of many vectors a second sample saves some.
    const double n = double(p.numVectors);
    const double query =
            20e-3 + 0.2e-3 * p.k + std::min(0.7e-6 * n, 0.12 + 0.35e-6 * n);
    const double part = p.device.multiprocessors / 132.0;
    return 45 + query * double(p.numQueries) / part;
}

} // namespace

double sortedLineMicroseconds(const FlatKnnProblem& p) {
    constexpr idx_t kOneBlock = 2304; // that CUB sorts in one kernel
    constexpr int kBitsOfPass = 8;
    const double n = double(p.numVectors);
    const double k = double(std::min<idx_t>(p.k, p.numVectors));
    const double part = p.device.multiprocessors / 132.0;
    const int passes = p.numVectors <= kOneBlock
            ? 0
            : (64 - lowestBit(p.dataType) + kBitsOfPass - 1) / kBitsOfPass;
    const double sort = passes * (7.8 + 10.5e-6 * n);
    const bool isL2 = p.metric == Metric::L2; // of two sides
    const double query = (isL2 ? 1.3e-3 : 0.8e-3) + 50e-6 * k;
    return (isL2 ? 23 : 17) + sort + query * double(p.numQueries) / part;
}

bool sortedLinePays(const FlatKnnProblem& p) {
    return takes(p) && batchOf(p) > kFewQueries &&
            sortedLineMicroseconds(p) < 0.9 * otherMicroseconds(p);
}

std::optional<SortedLinePlan> planSortedLine(
        const FlatKnnProblem& p,
        size_t maxBytes) {
    if (!takes(p)) {
        return {};
    }
    SortedLinePlan plan;
    plan.threads = p.k <= kMostWarpK ? kLineWarp : kLineBlock;
    plan.room = lineRoom(uint32_t(p.k));
    WorkspaceSlices slices;
    SortedLineScratch(p, slices);
    plan.bytes = slices.used();
    if (plan.bytes > maxBytes) {
        return {};
    }
    return plan;
}

std::string SortedLinePlan::toString() const {
    return formatMessage(
            "sorted_line: %d threads a query, room for %u, %zu bytes",
            threads,
            room,
            bytes);
}

void runSortedLine(
        const SortedLinePlan& plan,
        const FlatKnnProblem& p,
        Workspace workspace,
        cudaStream_t stream) {
    WorkspaceSlices slices(workspace);
    const SortedLineScratch scratch(p, slices);
    SortedLineParams params;
    params.metric = p.metric;
    params.type = p.dataType;
    params.vectors = p.vectors;
    params.n = uint32_t(p.numVectors);
    params.entries = scratch.entries[0];
    params.queryType = p.exactQueries ? DataType::Float32 : p.dataType;
    params.queries = p.exactQueries ? p.exactQueries : p.queries;
    params.numQueries = p.numQueries;
    params.k = uint32_t(p.k);
    params.threads = plan.threads;
    params.room = plan.room;
    params.outDistances = p.outDistances;
    params.outIds = p.outIds;
    params.ids64 = p.idType == IdType::Int64;
    launchLineEntries(params, stream);
    params.entries = radixSort(
            scratch.entries[0],
            scratch.entries[1],
            params.n,
            lowestBit(p.dataType),
            64,
            scratch.sort.data,
            scratch.sort.bytes,
            stream);
    launchSortedLine(params, stream);
}

} // namespace faiss_bits
