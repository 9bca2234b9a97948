#include <algorithm>
#include <cmath>

#include "kernels/common/Error.h"
#include "kernels/knn/all_pairs/AllPairsKnn.h"
#include "kernels/knn/fused/FusedCost.h"
#include "kernels/knn/fused/FusedFilter.h"
#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/knn/fused/FusedLists.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/fused/FusedScratch.h"
#include "kernels/knn/fused/tensor/PassAtOnce.h"
#include "kernels/knn/fused/tensor/SearchImage.h"
#include "kernels/knn/fused/tensor/TensorScan.h"
#include "kernels/knn/nearest/NearestKnn.h"
#include "kernels/survivors/SurvivorSort.h"

namespace faiss_bits {

namespace {

/// Fewer vectors are not worth a sample.
constexpr idx_t kLeastVectors = 8192;
/// Vectors for each place of the result, at least.
constexpr idx_t kLeastShare = 16;
/// Strips for each place of the result, at least (1.4 k vectors pass then).
constexpr uint32_t kLeastStripsOfPlace = 2;
/// Fewer vectors are no more than some strips of each.
constexpr idx_t kLeastStripVectors = 256;
/// Lists that hold what 16 bits do not tell from the k-th, mostly: of n vectors
/// one in so many, and some more.
constexpr idx_t kStripCapacityShare = 16;
constexpr idx_t kLeastStripCapacity = 1024;
/// Queries of one scan: enough that its tiles fill the GPU many times, also
/// where vectors are few.
constexpr idx_t kMostTileQueries = 16384;
constexpr idx_t kMostStripQueries = 65536;
/// Scratch: distances to the sample; and lists.
constexpr size_t kMostSampleBytes = size_t(256) << 20;
constexpr size_t kMostListBytes = size_t(512) << 20;

/// Lists are no shorter: what passes is more where vectors lie closer together
/// than 16 bits tell apart, and to search a query again costs more than memory.
/// With these 10,240 queries of 2^20 x 128 and the image of the vectors take
/// less than the 1 GiB that the drop-in library keeps from call to call.
constexpr uint32_t kLeastCapacity = 3584;

/// Room for so many entries of most queries.
uint32_t capacityFor(double expected, idx_t n) {
    const double room = std::ceil(1.25 * expected / 32) * 32;
    return uint32_t(std::min<double>(
            double((n + 31) / 32 * 32),
            std::max<double>(room, kLeastCapacity)));
}

/// Vectors not above the rank'th of a sample: rank / share, with a deviation of
/// the root of the rank over it; and what the bound lets through beside them.
uint32_t roomFor(uint32_t rank, double share, idx_t n) {
    return capacityFor(
            (rank + rank / 8 + 6 * std::sqrt(double(rank)) + 8) / share, n);
}

/// Strips of the second sample, of which the limits of so many queries are
/// made: so many for each place of the rank that 1.05 of it are within, as each
/// stands for 16 vectors that pass; and so many that the scan's items fill the
/// GPU.
StripPlan secondStripsFor(
        uint32_t rank,
        idx_t queries,
        const FlatKnnProblem& p) {
    constexpr uint32_t kOfPlace = 10;
    constexpr uint32_t kLeast = 256;
    constexpr uint32_t kItems = 4096; // strips of tiles of 256 queries
    const auto tiles = uint32_t((queries + 255) / 256);
    return planStrips(
            queries,
            secondSamplesOf(p.numVectors),
            p.d,
            std::clamp(
                    std::max(kOfPlace * rank, kItems / tiles),
                    kLeast,
                    kMostStrips / 2),
            TensorScanKernel::Auto,
            p.device);
}

/// Sets what a search with limits from strips of the second sample has in place
/// of planSamples(); false: it is no such search, and nothing is set.
bool planSecondStrips(FusedPlan& plan, const FlatKnnProblem& p) {
    if (plan.method != &kTensorFusedMethod || batchOf(p) <= kFewQueries ||
        secondSamplesOf(p.numVectors) == 0) {
        return false;
    }
    const idx_t samples = secondSamplesOf(p.numVectors);
    const double share = double(samples) / double(p.numVectors);
    // The sample may have all of the k nearest: one more, as keys are off by
    // what 16 bits lose.
    const uint32_t least = sampleRank(p.k, share);
    const uint32_t rank = least + (idx_t(least) >= p.k);
    const StripPlan strips = secondStripsFor(rank, plan.tileQueries, p);
    if (strips.perRow < kLeastStripsOfPlace * rank ||
        strips.perRow > kMostStrips) {
        return false;
    }
    plan.secondSamples = samples;
    plan.secondRank = rank;
    plan.secondStrips = strips;
    plan.capacity = roomFor(
            uint32_t(std::ceil(secondReach(plan))), share, p.numVectors);
    return true;
}

/// Samples, ranks and lists.
void planSamples(FusedPlan& plan, const FlatKnnProblem& p) {
    const double n = double(p.numVectors);
    const auto useFirst = [&](uint32_t samples) {
        plan.samples = samples;
        plan.rank = std::min(sampleRank(p.k, samples / n), samples / 2);
        plan.room = plan.rank + plan.rank / 8;
        plan.capacity = roomFor(plan.rank, samples / n, p.numVectors);
    };
    const uint32_t samples = samplesOf(p);
    useFirst(samples);
    const idx_t second =
            plan.method->secondSamples ? plan.method->secondSamples(p) : 0;
    if (second == 0) {
        return;
    }
    // It has to be worth the reading: fewer than so much pass. A quarter of the
    // first sample is enough then, if what passes in the second one is few.
    constexpr double kWorth = 0.75;
    const double share = double(second) / n;
    const uint32_t rank = sampleRank(p.k, share);
    for (uint32_t part : {samples / 4, samples}) {
        useFirst(part);
        const double passing = plan.rank / (part / n);
        // Of the second sample, with some deviations of the first limit.
        const double listed =
                passing * share * (1 + 6 / std::sqrt(double(plan.rank)));
        if (listed <= kMostSecondEntries && rank / share < kWorth * passing) {
            plan.secondSamples = second;
            plan.secondRank = rank;
            plan.capacity = roomFor(rank, share, p.numVectors);
            return;
        }
    }
}

size_t measure(const FlatKnnProblem& p, const FusedPlan& plan) {
    WorkspaceSlices slices;
    FusedScratch(p, plan, slices);
    return slices.used();
}

/// As many queries a scan as fit; cut() sets what depends on them, or says that
/// there is no plan.
template <class Cut>
std::optional<FusedPlan> fitQueries(
        FusedPlan plan,
        const FlatKnnProblem& p,
        idx_t mostQueries,
        size_t maxBytes,
        const Cut& cut) {
    for (idx_t tile = std::min(p.numQueries, mostQueries);;
         tile = (tile + 1) / 2) {
        const idx_t tiles = (p.numQueries + tile - 1) / tile;
        plan.tileQueries = (p.numQueries + tiles - 1) / tiles;
        if (!cut(plan)) {
            return {};
        }
        // So that a run with just these bytes finds the same plan.
        plan.bytes = std::max(measure(p, plan), kLeastUntiledBytes);
        const ListPlaces places = listPlaces(plan, p);
        const size_t lists = size_t(plan.tileQueries) *
                (places.entries * sizeof(uint64_t) +
                 places.columns * sizeof(uint32_t));
        if (plan.bytes <= maxBytes &&
            (lists <= kMostListBytes || plan.tileQueries == 1)) {
            return plan;
        }
        if (tile == 1) {
            return {};
        }
    }
}

/// Whether limits of strips are for such a problem.
bool takesStrips(const FlatKnnProblem& p, size_t maxBytes) {
    return p.mode != SearchMode::Plain && !p.allowedBits &&
            batchOf(p) > kFewQueries && p.numVectors >= kLeastStripVectors &&
            2 * kLeastStripsOfPlace * p.k <= kMostStrips &&
            maxBytes >= kLeastUntiledBytes &&
            fusedMethodFor(p) == &kTensorFusedMethod;
}

FusedPlan beginStrips(const FlatKnnProblem& p) {
    FusedPlan plan;
    plan.method = &kTensorFusedMethod;
    plan.rank = uint32_t(p.k);
    const idx_t whole = (p.numVectors + 31) / 32 * 32;
    const idx_t alike = std::clamp<idx_t>(
            whole / kStripCapacityShare / 32 * 32,
            kLeastStripCapacity,
            kLeastCapacity);
    plan.capacity =
            uint32_t(std::min(whole, std::max<idx_t>(alike, 8 * idx_t(p.k))));
    return plan;
}

} // namespace

uint32_t sampleRank(double k, double p) {
    const double mean = k * p;
    if (mean > 100) {
        return uint32_t(std::ceil(mean + 5.2 * std::sqrt(mean) + 4));
    }
    double term = std::exp(k * std::log1p(-p)); // none
    double below = term;
    uint32_t m = 1;
    while (1 - below > 1e-6 && m < k) {
        term *= (k - m + 1) / m * p / (1 - p);
        below += term;
        ++m;
    }
    return m;
}

bool enoughVectors(const FlatKnnProblem& p, idx_t vectors) {
    return vectors >= kLeastVectors && vectors >= kLeastShare * p.k;
}

uint32_t samplesOf(const FlatKnnProblem& p) {
    // Few queries: the sample is all latency.
    const bool isSmall = batchOf(p) <= kFewQueries && p.k <= 128;
    const idx_t most = isSmall ? kMostSamples / 4 : kMostSamples;
    return uint32_t(std::min<idx_t>(most, p.numVectors / 8));
}

namespace {

std::optional<FusedPlan> planBySamples(
        const FlatKnnProblem& p,
        size_t maxBytes) {
    if (p.mode == SearchMode::Plain || p.k > kMaxFinishK ||
        !enoughVectors(p, p.numVectors) || maxBytes < kLeastUntiledBytes) {
        return {};
    }
    FusedPlan plan;
    plan.method = fusedMethodFor(p);
    if (!plan.method || leavesMost(p, *plan.method)) {
        return {};
    }
    if (p.limits) {
        plan.givenLimits = true;
        plan.capacity = capacityFor(double(p.numWithin), p.numVectors);
        return fitQueries(plan, p, kMostTileQueries, maxBytes, [](FusedPlan&) {
            return true;
        });
    }
    const auto byStrips = fitQueries(
            plan, p, kMostTileQueries, maxBytes, [&](FusedPlan& plan) {
                return planSecondStrips(plan, p);
            });
    // What strips need of a filter (AllowedVectors) may leave room for few
    // queries a scan. The first sample is taken where its scans have more than
    // twice as many; both sides of that edge were not measured.
    if (byStrips && (!p.allowedBits || byStrips->tileQueries == p.numQueries)) {
        return byStrips;
    }
    planSamples(plan, p);
    if (batchOf(p) > kFewQueries) {
        plan.sampling = &samplingMethod(p, plan);
    }
    const auto bySample = fitQueries(
            plan, p, kMostTileQueries, maxBytes, [](FusedPlan& plan) {
                plan.sampleQueries = std::clamp<idx_t>(
                        idx_t(kMostSampleBytes / sizeof(float) / plan.samples),
                        1,
                        plan.tileQueries);
                return true;
            });
    return byStrips &&
                    (!bySample ||
                     bySample->tileQueries <= 2 * byStrips->tileQueries)
            ? byStrips
            : bySample;
}

} // namespace

std::optional<FusedPlan> planFused(const FlatKnnProblem& p, size_t maxBytes) {
    auto plan = planBySamples(p, maxBytes);
    // A copy of the listed vectors may leave no room, or room for few queries a
    // scan. Of a short list a matrix takes less than a scan of all.
    constexpr idx_t kShort = 8;
    if (batchOf(p) <= kFewQueries || !scansList(p) || hasShortList(p, kShort) ||
        (plan && plan->tileQueries == p.numQueries)) {
        return plan;
    }
    FusedPlan byBits;
    byBits.leavesList = true;
    auto other = planBySamples(seenBy(byBits, p), maxBytes);
    if (other && (!plan || other->tileQueries > 2 * plan->tileQueries)) {
        other->leavesList = true;
        return other;
    }
    return plan;
}

std::optional<FusedPlan> planAtOnce(const FlatKnnProblem& p, size_t maxBytes) {
    if (!takesStrips(p, maxBytes) || p.metric != Metric::L2 ||
        !hasTensorScan(TensorScanKernel::Wgmma, p.device)) {
        return {};
    }
    FusedPlan plan = beginStrips(p);
    if (!canPassAtOnce(p.numVectors, p.d, plan.rank, p.device)) {
        return {};
    }
    plan.atOnce = true;
    plan.strips = {1, stripsAtOnce(p.numVectors, plan.rank)};
    // Bits are few bytes: more queries are fewer launches.
    const auto found = fitQueries(
            plan,
            p,
            std::min(4 * kMostStripQueries, mostQueriesOfBits(p, true)),
            maxBytes,
            [](FusedPlan&) { return true; });
    return found && passesToBits(*found, p) ? found : std::nullopt;
}

std::optional<FusedPlan> planFusedByStrips(
        const FlatKnnProblem& p,
        size_t maxBytes) {
    if (!takesStrips(p, maxBytes)) {
        return {};
    }
    if (atOncePays(p)) {
        if (const auto once = planAtOnce(p, maxBytes)) {
            return once;
        }
    }
    if (takesNearest(p)) { // which needs no limits
        return {};
    }
    const FusedPlan plan = beginStrips(p);
    const auto fit = [&](idx_t mostQueries) {
        return fitQueries(plan, p, mostQueries, maxBytes, [&](FusedPlan& plan) {
            plan.strips = planStrips(
                    plan.tileQueries,
                    p.numVectors,
                    p.d,
                    leastStripsOf(plan, p),
                    TensorScanKernel::Auto,
                    p.device);
            return plan.strips.perRow >= kLeastStripsOfPlace * plan.rank &&
                    plan.strips.perRow <= kMostStrips;
        });
    };
    const std::optional<FusedPlan> usual = fit(kMostStripQueries);
    if (usual && passesToBits(*usual, p)) {
        // Bits are few bytes: twice as many queries are half of the launches.
        const std::optional<FusedPlan> wide = fit(2 * kMostStripQueries);
        if (wide && passesToBits(*wide, p)) {
            return wide;
        }
    }
    return usual;
}

bool stripsPay(const FusedPlan& byStrips, const FlatKnnProblem& p) {
    if (takesNearest(p) && !allPairsPays(p)) {
        return true; // the other way is that of one nearest: atOncePays()
    }
    // A way that is not taken is none.
    double others = allPairsPays(p) ? allPairsMicroseconds(p) : INFINITY;
    if (enoughVectors(p, p.numVectors)) {
        FusedPlan sampled;
        sampled.method = byStrips.method;
        sampled.tileQueries = std::min(p.numQueries, kMostTileQueries);
        if (!planSecondStrips(sampled, p)) {
            planSamples(sampled, p);
        }
        others = std::min(others, fusedTensorMicroseconds(sampled, p));
    } else {
        others = std::min(others, candidatesMicroseconds(p));
    }
    // It has to be worth the memory of an image, where that is not there.
    // Cosines of few dimensions may all be nearer each other than 16 bits tell.
    constexpr int kShortCosine = 8;
    const double worth = p.searchImage                          ? 0.95
            : p.metric == Metric::Cosine && p.d <= kShortCosine ? 0.4
                                                                : 0.8;
    return fusedTensorMicroseconds(byStrips, p) < worth * others;
}

} // namespace faiss_bits
