#include "kernels/knn/direct/DirectKnn.h"

#include <algorithm>

#include "kernels/common/Error.h"
#include "kernels/knn/certified/Certified.h"
#include "kernels/knn/direct/DirectFew.h"
#include "kernels/knn/direct/DirectSpread.h"
#include "kernels/knn/direct/DirectTakes.h"
#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/survivors/SurvivorSort.h"

namespace faiss_bits {

namespace {

constexpr size_t kMostKeyBytes = size_t(64) << 20;

/// Vectors of a run (DirectKeys::logRun): as many as make a piece of memory
/// that comes as fast as whole units. These where several queries share what
/// comes, which takes longer by runs; where a place is looked up, of a list or
/// a bit; and where ties of places are those of vectors (DirectFew.cu), whose
/// threads have keys that lie far apart anyway.
uint32_t logRunOf(const FlatKnnProblem& p, bool isFew) {
    if (isFew || p.numQueries > 1 || p.allowedBits || p.allowedIds) {
        return kDirectLogUnit;
    }
    constexpr size_t kPieceBytes = 512;
    const size_t rowBytes = size_t(p.d) * sizeOf(p.dataType);
    uint32_t logRun = 0;
    while (logRun < kDirectLogUnit && rowBytes << logRun < kPieceBytes) {
        ++logRun;
    }
    return logRun;
}

struct DirectScratch {
    CertifiedScratch certified; // the widened queries
    uint32_t* keys = nullptr;
    uint64_t* least = nullptr;
    uint64_t* lists = nullptr;
    DirectSpread spread;

    DirectScratch(
            const FlatKnnProblem& p,
            const DirectPlan& plan,
            WorkspaceSlices& slices) {
        const size_t rows = size_t(p.numQueries);
        keys = slices.take<uint32_t>(rows * plan.stride);
        if (!plan.few) {
            least = slices.take<uint64_t>(rows * plan.groups);
            lists = slices.take<uint64_t>(rows * plan.capacity);
        }
        if (plan.spread) {
            spread.entries =
                    slices.take<uint64_t>(rows * kSpreadBlocks * kSpreadRoom);
            spread.counts = slices.take<uint32_t>(rows * kSpreadBlocks);
            spread.limits = slices.take<uint64_t>(rows);
            spread.cuts = slices.take<uint64_t>(rows * kSpreadBlocks);
        }
        certified.take(p, 0, p.numQueries, slices);
    }
};

} // namespace

std::optional<DirectPlan> planDirect(const FlatKnnProblem& p, size_t maxBytes) {
    if (!takesDirect(p)) {
        return {};
    }
    DirectPlan plan;
    const DirectGroups groups = directGroups(p);
    plan.groups = groups.count;
    plan.logUnits = groups.logUnits;
    const idx_t width = idx_t(kDirectUnit) << plan.logUnits;
    plan.stride = plan.groups * width;
    plan.capacity = uint32_t(
            std::min<idx_t>(plan.stride, idx_t(mostNearGroups(p.k)) * width));
    plan.few = hasFewKeys(p, plan.stride);
    plan.logRun = logRunOf(p, plan.few);
    plan.spread = isSpread(p, plan.groups);
    plan.shape = directShape(p);
    WorkspaceSlices slices;
    DirectScratch(p, plan, slices);
    // So that a run with just these bytes finds the same plan.
    plan.bytes = std::max(slices.used(), kLeastUntiledBytes);
    const size_t keyBytes =
            size_t(p.numQueries) * plan.stride * sizeof(uint32_t);
    if (keyBytes > kMostKeyBytes || plan.bytes > maxBytes) {
        return {};
    }
    return plan;
}

std::string DirectPlan::toString() const {
    return formatMessage(
            "direct: %u groups of %u vectors, lists of %u, %s, %zu bytes",
            groups,
            kDirectUnit << logUnits,
            capacity,
            few              ? "finished in registers"
                    : spread ? "finished by several blocks"
                             : "finished by one block",
            bytes);
}

void runDirect(
        const DirectPlan& plan,
        const FlatKnnProblem& p,
        Workspace workspace,
        cudaStream_t stream) {
    WorkspaceSlices slices(workspace);
    const DirectScratch scratch(p, plan, slices);
    Certifier certifier(p, 0, ErrorBound(), scratch.certified, stream);
    DirectScanParams scan;
    scan.search = certifier.enter(0, p.numQueries);
    scan.out.keys = scratch.keys;
    scan.out.least = scratch.least;
    scan.out.ids = p.allowedIds;
    scan.out.places = directPlaces(p);
    scan.out.stride = plan.stride;
    scan.out.groups = plan.groups;
    scan.out.logUnits = plan.logUnits;
    scan.out.logRun = plan.logRun;
    directLaunchFor(p.metric)(
            scan, plan.shape, p.device.multiprocessors, stream);

    SurvivorOutput output;
    output.k = p.k;
    output.largest = isSimilarity(p.metric);
    output.dropNan = true;
    output.idType = p.idType;
    output.outKeys = p.outDistances;
    output.outIds = p.outIds;
    DirectFinishParams finish;
    static_cast<ResultParams&>(finish) = makeResultParams(output, p.numVectors);
    finish.direct = scan.out;
    finish.survivors = scratch.lists;
    finish.capacity = plan.capacity;
    if (plan.few) {
        launchDirectFew(finish, unsigned(p.numQueries), stream);
    } else if (plan.spread) {
        launchDirectSpread(
                {finish, scratch.spread}, unsigned(p.numQueries), stream);
    } else {
        launchDirectFinish(finish, unsigned(p.numQueries), stream);
    }
}

} // namespace faiss_bits
