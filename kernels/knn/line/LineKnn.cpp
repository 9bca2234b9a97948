#include "kernels/knn/line/LineKnn.h"

#include <algorithm>

#include "kernels/common/Error.h"
#include "kernels/knn/line/LineKernels.h"

namespace faiss_bits {

namespace {

/// A block adds up the counts of those before it.
constexpr idx_t kMostChunks = 1024;

idx_t divUp(idx_t a, idx_t b) {
    return (a + b - 1) / b;
}

struct LineScratch {
    uint32_t* counts = nullptr;
    uint32_t* lists = nullptr;
    uint32_t* totals = nullptr;

    LineScratch(const LinePlan& plan, WorkspaceSlices& slices) {
        counts = slices.take<uint32_t>(size_t(plan.chunks) * kLineKinds);
        lists = slices.take<uint32_t>(size_t(plan.listed) * kLineKinds);
        totals = slices.take<uint32_t>(kLineKinds);
    }
};

} // namespace

std::optional<LinePlan> planLine(const FlatKnnProblem& p, size_t maxBytes) {
    if (p.metric != Metric::Cosine || p.d != 1 || p.mode == SearchMode::Plain ||
        p.numVectors == 0) {
        return {};
    }
    LinePlan plan;
    plan.listed = std::min<idx_t>(p.k, p.numVectors);
    plan.chunkVectors =
            divUp(divUp(p.numVectors, kMostChunks), kLineStep) * kLineStep;
    plan.chunks = divUp(p.numVectors, plan.chunkVectors);
    WorkspaceSlices slices;
    LineScratch(plan, slices);
    plan.bytes = slices.used();
    if (plan.bytes > maxBytes) {
        return {};
    }
    return plan;
}

double lineMicroseconds(const FlatKnnProblem& p) {
    // Three launches, two reads and a write at 2e12 bytes a second.
    const double read = 2.0 * double(p.numVectors) * double(sizeOf(p.dataType));
    return 15 + (read + 12.0 * double(p.numQueries) * double(p.k)) / 2e6;
}

std::string LinePlan::toString() const {
    return formatMessage(
            "line: %lld chunks of %lld vectors, lists of %lld, %zu bytes",
            (long long)chunks,
            (long long)chunkVectors,
            (long long)listed,
            bytes);
}

void runLine(
        const LinePlan& plan,
        const FlatKnnProblem& p,
        Workspace workspace,
        cudaStream_t stream) {
    WorkspaceSlices slices(workspace);
    const LineScratch scratch(plan, slices);
    LineParams params;
    params.type = p.dataType;
    params.vectors = p.vectors;
    params.n = p.numVectors;
    params.allowedBits = p.allowedBits;
    params.queries = p.queries;
    params.numQueries = p.numQueries;
    params.k = p.k;
    params.listed = plan.listed;
    params.chunkVectors = plan.chunkVectors;
    params.chunks = uint32_t(plan.chunks);
    params.counts = scratch.counts;
    params.lists = scratch.lists;
    params.totals = scratch.totals;
    params.outDistances = p.outDistances;
    params.outIds = p.outIds;
    params.ids64 = p.idType == IdType::Int64;
    launchLine(params, stream);
}

} // namespace faiss_bits
