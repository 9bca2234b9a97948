#include "kernels/knn/direct/DirectKnn.h"

#include <algorithm>
#include <cmath>

#include "kernels/common/Error.h"
#include "kernels/knn/certified/Certified.h"
#include "kernels/knn/direct/DirectFew.h"
#include "kernels/knn/direct/DirectLaunch.h"
#include "kernels/knn/direct/DirectSpread.h"
#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/survivors/SurvivorSort.h"

namespace faiss_bits {

namespace {

/// Of the queries in shared memory, in float64.
constexpr int kMostDims = 4096;
constexpr int kMostDimsOfSeveral = 1024;
/// One block finishes a query.
constexpr idx_t kMostQueries = 1024;
constexpr size_t kMostKeyBytes = size_t(64) << 20;
constexpr uint32_t kMostLogUnits = 5;
/// That many warps have work, where there are as many units.
constexpr double kLeastGroups = 8192;

/// So few pairs of so many dimensions that eight lanes a pair take less time.
constexpr idx_t kMostSlotPairs = 32768;
constexpr int kLeastSlotDims = 64;

/// Of fewer dimensions what follows the sums is most of the time.
constexpr int kLeastCosineDims = 17;
constexpr int kLeastProductDims = 64;

/// Larger k have much to look for, where groups are many.
constexpr int kMostOfOneBlock = 512;

using Launch =
        void (*)(const DirectScanParams&, DirectShape, int, cudaStream_t);

/// nullptr for metrics whose terms cost more than to read a component.
Launch launchFor(Metric metric) {
    switch (metric) {
        case Metric::L2:
            return launchDirectScan<Metric::L2>;
        case Metric::InnerProduct:
            return launchDirectScan<Metric::InnerProduct>;
#ifndef FAISS_BITS_PRODUCTS_ONLY
        case Metric::L1:
            return launchDirectScan<Metric::L1>;
        case Metric::Linf:
            return launchDirectScan<Metric::Linf>;
        case Metric::Cosine:
            return launchDirectScan<Metric::Cosine>;
#endif
        default:
            return nullptr;
    }
}

/// Vectors, or members of the list.
idx_t placesOf(const FlatKnnProblem& p) {
    return p.allowedIds ? std::min(p.numAllowed, p.numVectors) : p.numVectors;
}

bool takes(const FlatKnnProblem& p) {
    return p.mode != SearchMode::Plain && launchFor(p.metric) &&
            (p.vectorsRowMajor || p.d == 1) && p.k <= kMaxFinishK &&
            p.d <= kMostDims && p.numVectors > 0 &&
            p.numQueries <= kMostQueries && p.device.singleToDouble <= 2;
}

bool bySlots(const FlatKnnProblem& p) {
    return p.d >= kLeastSlotDims &&
            p.numQueries * placesOf(p) <= kMostSlotPairs;
}

/// Up to four inner products of short rows that begin on 16 bytes share reads
/// as it is: 131,072 x 128 of them take 3 to 12% longer by DirectProducts.cuh
/// (measured, H200).
bool sharesReads(const FlatKnnProblem& p) {
    constexpr int kMostShared = 256;
    constexpr int kOfAnyType = 8; // components of 16 bits in 16 bytes
    return p.metric == Metric::InnerProduct && batchOf(p) <= kDirectQueries &&
            p.d <= kMostShared && p.d % kOfAnyType == 0;
}

/// Whether several queries share what is read and converted, and their vectors'
/// own sums (DirectProducts.cuh).
bool byProducts(const FlatKnnProblem& p) {
    const bool isCosine = p.metric == Metric::Cosine;
    return (isCosine || p.metric == Metric::InnerProduct) && p.numQueries > 1 &&
            batchOf(p) <= kFewQueries &&
            p.d >= (isCosine ? kLeastCosineDims : kLeastProductDims) &&
            !bySlots(p) && !sharesReads(p) &&
            directProductQueries(p.numQueries, p.d) > 0;
}

struct Groups {
    uint32_t count = 0;
    uint32_t logUnits = 0; // of kDirectUnit vectors each
};

Groups groupsOf(const FlatKnnProblem& p) {
    Groups groups;
    // As many bytes of least entries as of keys of the k groups.
    const double places = double(std::max<idx_t>(placesOf(p), 1));
    const double group = std::sqrt(2 * places / p.k);
    const double most = places / kLeastGroups;
    while (!bySlots(p) && groups.logUnits < kMostLogUnits &&
           (kDirectUnit << groups.logUnits) < std::min(group, most)) {
        ++groups.logUnits;
    }
    const idx_t width = idx_t(kDirectUnit) << groups.logUnits;
    groups.count = uint32_t((idx_t(places) + width - 1) / width);
    return groups;
}

/// Whether a block of each query has all of its keys in registers: blocks of
/// which a multiprocessor has one at a time.
bool hasFewKeys(const FlatKnnProblem& p, idx_t keys) {
    return p.k <= kMostFewK && keys <= kMostFewKeys &&
            p.numQueries <= p.device.multiprocessors;
}

/// Whether several blocks finish a query: while they have multiprocessors of
/// their own.
bool isSpread(const FlatKnnProblem& p, uint32_t groups) {
    return p.k > kMostOfOneBlock &&
            groups >= kLeastSpreadGroups * uint32_t(p.k) &&
            p.numQueries * kSpreadBlocks <= p.device.multiprocessors;
}

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

/// What a finish of a large k takes beside that of a small one.
double largeKMicroseconds(const FlatKnnProblem& p) {
    if (directMeetsAllKeys(p)) {
        return 1.2e-3 * double(placesOf(p));
    }
    if (p.k <= kMostOfOneBlock) {
        return 0;
    }
    return isSpread(p, groupsOf(p).count) ? 4 : 12.0 * p.k / 1024;
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

bool directMeetsAllKeys(const FlatKnnProblem& p) {
    constexpr idx_t kStaged = 2048; // kDirectStaged
    return !hasFewKeys(p, placesOf(p)) && placesOf(p) > kStaged &&
            idx_t(groupsOf(p).count) <= p.k;
}

// Microseconds here are as they were measured on an H200
// (docs/design/flat_few_pairs.md).

namespace {

/// Of DirectProducts.cuh, without what finishes. Not fitted: by arithmetic,
/// sums and conversions of float64 one after the other, or a read. Large
/// searches took 1.4 to 1.8 times as long (an H200, flat_few_pairs.md).
double productsMicroseconds(const FlatKnnProblem& p) {
    const double part = p.device.multiprocessors / 132.0;
    const double d = double(p.d);
    const int ofBlock = directProductQueries(p.numQueries, p.d);
    const double sets = std::ceil(double(p.numQueries) / ofBlock);
    const double ends = p.metric == Metric::Cosine ? 1 : 0.4; // of all sums
    const double pass = ends * (ofBlock == 8 ? 5e-5 : 3e-5) +
            (ofBlock == 8 ? 1.0e-6 : 0.65e-6) * d;
    const double read =
            (p.dataType == DataType::Float32 ? 1.03e-6 : 0.52e-6) * d;
    const double latency = 0.9 * d / kDirectProductStep;
    return 2 +
            std::max(
                    double(placesOf(p)) * std::max(sets * pass, read) / part,
                    latency);
}

} // namespace

double directMicroseconds(const FlatKnnProblem& p) {
    const double part = p.device.multiprocessors / 132.0;
    const double q = double(p.numQueries);
    const double d = double(p.d);
    // A read of the vectors and the terms of up to four queries, of cosines of
    // one.
    const bool readsOften = p.metric == Metric::Cosine && !bySlots(p);
    const double sharedReads = std::ceil(q / kDirectQueries);
    const double reads = readsOften ? q : sharedReads;
    // Queries have smaller blocks.
    const double slow = batchOf(p) <= kFewQueries || readsOften ? 1 : 1.45;
    const bool isFloat = p.dataType == DataType::Float32;
    const double pass = p.numQueries == 1 || readsOften
            ? 1e-5 + (isFloat ? 1.03e-6 : 0.78e-6) * d
            : 2.05e-5 + 1.13e-6 * d;
    // Of a few reads one after another, each a part of the first.
    const bool areFew = batchOf(p) <= kFewQueries && !bySlots(p);
    const double latency = (bySlots(p)                  ? 0.4
                                    : p.numQueries == 1 ? 0.9
                                                        : 1.9) *
            d / 32 * (areFew ? 1 + 0.65 * (sharedReads - 1) : 1);
    const double finish =
            8 * (std::ceil(q / (2.0 * p.device.multiprocessors)) - 1);
    if (byProducts(p)) {
        return 9.3 + finish + largeKMicroseconds(p) + productsMicroseconds(p);
    }
    // Of three sums no block has several queries that share what it reads.
    const double alone = p.metric == Metric::Cosine && bySlots(p)
            ? 1.35e-6 * q * double(placesOf(p)) * d / part
            : 0.0;
    return 9.3 + finish + largeKMicroseconds(p) +
            std::max(
                    {reads * slow * double(placesOf(p)) * pass / part,
                     latency,
                     alone});
}

double sampledCosineMicroseconds(const FlatKnnProblem& p) {
    const double part = p.device.multiprocessors / 132.0;
    const double rate = 3.4e-6 + 0.06e-6 * double(p.numQueries);
    return 55 + rate * double(placesOf(p)) * double(p.d) / part;
}

bool directPays(const FlatKnnProblem& p, bool withImage) {
    if (!takes(p)) {
        return false;
    }
    // The launches of others keep the host busy for longer, too.
    constexpr double kHost = 8;
    constexpr double kBytes = 4e6; // in one
    const double part = p.device.multiprocessors / 132.0;
    const double n = double(p.numVectors);
    const double d = double(p.d);
    const double places = double(placesOf(p));
    double other = kHost;
    if (p.metric == Metric::Cosine && batchOf(p) <= kFewQueries) {
        other += sampledCosineMicroseconds(p);
    } else if (batchOf(p) > kFewQueries) {
        other += 38 + double(p.numQueries) * places * (2e-6 + d / 100e6) / part;
    } else if (
            withImage && canUseSearchImage(p) && searchImageHelps(p) &&
            places > n / 4) {
        const bool addsNorms = p.metric == Metric::L2;
        if (p.k > kMostOfOneBlock) {
            other += 6 + 7.0 * p.k / 1024;
        }
        other += (addsNorms ? 36 : 27) +
                n * (2 * d + (addsNorms ? 32 : 0)) / kBytes / part;
    } else {
        // Scans for inner products of few dimensions take longer than reads.
        constexpr int kFewDims = 8;
        constexpr idx_t kFew = 3;
        const bool areProducts = p.metric == Metric::InnerProduct &&
                p.d <= kFewDims && p.numQueries > kFew;
        other += 27 +
                places *
                        std::max(
                                areProducts ? 28e-6 : 0.0,
                                d * sizeOf(p.dataType) / kBytes) /
                        part;
        if (p.k > kMostOfOneBlock) {
            other += 20 + 1e-6 * double(p.numQueries) * p.k * d / part;
        }
    }
    // Copies by the thousand, which have others search again: one dimension has
    // no more than 65,536 vectors of 16 bits.
    const bool areCopies = p.d == 1 && p.dataType != DataType::Float32;
    return directMicroseconds(p) < (areCopies ? 3 : 1) * other;
}

std::optional<DirectPlan> planDirect(const FlatKnnProblem& p, size_t maxBytes) {
    if (!takes(p)) {
        return {};
    }
    DirectPlan plan;
    const Groups groups = groupsOf(p);
    plan.groups = groups.count;
    plan.logUnits = groups.logUnits;
    const idx_t width = idx_t(kDirectUnit) << plan.logUnits;
    plan.stride = plan.groups * width;
    plan.capacity = uint32_t(
            std::min<idx_t>(plan.stride, idx_t(mostNearGroups(p.k)) * width));
    plan.few = hasFewKeys(p, plan.stride);
    plan.logRun = logRunOf(p, plan.few);
    plan.spread = isSpread(p, plan.groups);
    plan.shape = bySlots(p) ? DirectShape::Slots
            : byProducts(p) ? DirectShape::Products
            : p.numQueries > 1 && p.d <= kMostDimsOfSeveral
            ? DirectShape::SeveralQueries
            : DirectShape::OneQuery;
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
    scan.out.places = placesOf(p);
    scan.out.stride = plan.stride;
    scan.out.groups = plan.groups;
    scan.out.logUnits = plan.logUnits;
    scan.out.logRun = plan.logRun;
    launchFor(p.metric)(scan, plan.shape, p.device.multiprocessors, stream);

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
