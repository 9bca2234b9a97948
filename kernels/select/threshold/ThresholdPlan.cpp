#include "kernels/select/threshold/ThresholdPlan.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/select/threshold/ThresholdParams.h"

namespace faiss_bits {

namespace {

/// Survivors that a fused block has room for, beside its tiles.
constexpr idx_t kMostFusedSurvivors = 12 * 1024;
constexpr idx_t kTile = 4096;

/// A run of the sample costs as much memory traffic as this many bytes read in
/// a row, and a survivor about as much time (measured, H200).
constexpr double kRunBytes = 128;
constexpr double kSurvivorBytes = 50;
/// A survivor of a row that one block finishes while the others wait, in bytes
/// that the device could have read.
constexpr double kLateSurvivorBytes = 1700;

/// Survivors in memory at a time, of all rows.
constexpr idx_t kMostSurvivors = idx_t(1) << 27;

/// A row of at most this many columns is not sampled.
constexpr idx_t kNoSampleCols = 2048;

idx_t divUp(idx_t a, idx_t b) {
    return (a + b - 1) / b;
}

/// A sample of `places` places a thread and what it leads to.
struct Sample {
    int places = 0;
    int rank = 0;
    int mostRank = 0; // that the limit may have: exact ranks take longer
    uint32_t parts = 1;
    double survivors = 0; // expected, without a lower limit on the way
    double capacity = 0;
    double cost = HUGE_VAL;
};

/// What a Poisson variable reaches once in three thousand times, within one
/// of the exact count: this runs on every call, so no sums. A row where it
/// happens is read again, which costs less than a wider limit for all.
double rareCount(double mean) {
    return std::ceil(mean + 3.43 * std::sqrt(mean) + 2);
}

/// Survivors if the limit is lowered on the way at the best place: a part f of
/// the row leaves S f, the rest k / f - k.
double loweredSurvivors(double survivors, double k) {
    return survivors <= 1.5 * k ? survivors : 2 * std::sqrt(k * survivors) - k;
}

/// The limit is the r-th least entry of the sample. Fewer than k entries pass
/// if r of the sample are among the k best, which is rare (rareCount) for
/// rows in random order; in rows with runs of neighbouring values, one run of
/// the sample more than expected must not do it.
Sample makeSample(
        double cols,
        int k,
        int threads,
        int places,
        uint32_t parts,
        bool lowers,
        double survivorBytes) {
    Sample sample;
    const double drawn = double(threads) * places * parts;
    const double size = drawn * kSampleItems;
    const double expected = k * size / cols;
    // In a sorted row the best lie in runs of the sample, and no two of them
    // in one group.
    const double least = expected + std::min(k, kSampleRun) + 1;
    double wanted = std::max(rareCount(expected), least);
    double share = std::min(wanted / size, 1.0); // of columns below the limit
    // Entries of the sample are known by the least of their groups only.
    const double groups = parts > 1 ? kSampledGroups : threads * kSampleItems;
    double rank = groups * (1 - std::pow(1 - share, size / groups)) + 0.5;
    if (rank < least && least < groups) {
        rank = least;
        share = 1 - std::pow(1 - rank / groups, groups / size);
        wanted = share * size;
    }
    const double slack = k <= kMaxSelectK ? 1.0 / 8 : 1.0 / 64;
    if (size * 2 > cols || share > 0.5 || rank < least ||
        rank * (1 + slack) > groups * 0.8) {
        return sample;
    }
    sample.places = places;
    sample.parts = parts;
    sample.rank = int(rank);
    sample.mostRank = int(rank * (1 + slack));
    sample.survivors = cols * share * (1 + slack / 2);
    const double deviation = cols * std::sqrt(share / size);
    const double random =
            sample.survivors * (1 + slack / 2) + 5 * deviation + 64;
    // In a sorted row the limit lies up to a run further than the r-th.
    const double runs = size / kSampleRun;
    const double sorted = (wanted / kSampleRun + 2) * cols / runs;
    sample.capacity =
            std::max(std::min(cols, std::max(random, sorted)), double(k));
    const double survivors =
            lowers ? loweredSurvivors(sample.survivors, k) : sample.survivors;
    sample.cost = runs * kRunBytes + survivors * survivorBytes;
    return sample;
}

Sample bestSample(
        const SelectProblem& p,
        int threads,
        uint32_t parts,
        bool lowers,
        double survivorBytes,
        double maxCapacity) {
    Sample best;
    for (int places = 1; places <= 16; places *= 2) {
        const Sample sample = makeSample(
                double(p.cols),
                p.k,
                threads,
                places,
                parts,
                lowers,
                survivorBytes);
        if (sample.cost < best.cost && sample.capacity <= maxCapacity) {
            best = sample;
        }
    }
    return best;
}

/// Few long rows keep few blocks busy for long: large blocks. Many short rows
/// have much to do beside reading: small blocks, so that others read then.
int fusedThreads(const SelectProblem& p) {
    if (p.cols >= idx_t(1) << 19 || (p.cols >= idx_t(1) << 17 && p.k <= 32)) {
        return 512;
    }
    return p.cols >= idx_t(1) << 17 || p.k > 128 ? 256 : 128;
}

/// Whether one block a row keeps the device busy.
bool shouldFuse(const SelectProblem& p, int blocks) {
    const double slots = double(blocks) * p.device.multiprocessors;
    const double waves = p.rows / slots;
    return p.cols <= 4 * kTile || waves >= 8 || waves / std::ceil(waves) >= 0.9;
}

void setSample(ThresholdPlan& plan, const Sample& sample) {
    plan.samplePlaces = sample.places;
    plan.sampleRank = sample.rank;
    plan.mostSampleRank = sample.mostRank;
    plan.sampleParts = sample.parts;
    plan.capacity = uint32_t(sample.capacity);
    plan.expected =
            std::min(plan.capacity, uint32_t(sample.survivors * 1.25 + 64));
}

/// Where a fused block lowers its limit: loweredSurvivors says why there.
void setFirstPart(
        ThresholdPlan& plan,
        const SelectProblem& p,
        double survivors) {
    const double ratio = survivors / p.k;
    const double tile = plan.policy.threads * (p.hasColBias() ? 8.0 : 16.0);
    const uint32_t tiles = uint32_t(p.cols / tile);
    if (ratio <= 1.5 || tiles < 4) {
        return;
    }
    const double best = tiles / std::sqrt(ratio);
    plan.partGrowth = ratio >= 8 ? 4 : 1 << 12;
    plan.firstPart = uint32_t(std::clamp(best + 0.5, 1.0, tiles - 1.0));
}

/// Survivors that each of some blocks of a multiprocessor has room for.
double fusedCapacity(
        const SelectProblem& p,
        const ThresholdPlan& plan,
        int blocks) {
    // Sort and sample take up to 12 KiB, a block 1 KiB of its own.
    const double tiles =
            plan.stages * plan.policy.threads * 16.0 * sizeOf(p.keyType);
    const double bytes =
            double(p.device.blockSharedBytes) / blocks - 13 * 1024 - tiles;
    return std::clamp(bytes / 8, 0.0, double(kMostFusedSurvivors));
}

bool planWholeRows(const SelectProblem& p, ThresholdPlan& plan) {
    if (p.k > kMaxSelectK) {
        return false;
    }
    plan.fused = true;
    plan.policy = policyFor(kWholeRowsPolicies, fusedThreads(p), p.k);
    const int threads = plan.policy.threads;
    if (!shouldFuse(
                p,
                wholeRowBlocks(threads, plan.policy.room, !p.hasColBias()))) {
        return false;
    }
    if (p.cols <= kNoSampleCols || p.cols <= 2 * p.k) {
        plan.capacity = uint32_t(std::max<idx_t>(p.cols, 1));
        return true;
    }
    // Short rows leave little time for more than two tiles a block.
    plan.stages = threads == 256 && p.cols >= idx_t(1) << 17 ? 3 : 2;
    // So many blocks that some sort while others read.
    for (int b = threads == 128 ? 5 : 2; b >= 1; --b) {
        const Sample sample = bestSample(
                p, threads, 1, true, kSurvivorBytes, fusedCapacity(p, plan, b));
        if (sample.places > 0) {
            setSample(plan, sample);
            setFirstPart(plan, p, sample.survivors);
            return true;
        }
    }
    plan.capacity = uint32_t(
            std::min(double(p.cols), std::floor(fusedCapacity(p, plan, 1))));
    return plan.capacity == p.cols;
}

void planSplit(const SelectProblem& p, ThresholdPlan& plan) {
    plan = {};
    const bool few = p.rows <= p.device.multiprocessors;
    plan.policy = policyFor(kFinishRowsPolicies, few ? 1024 : 512, p.k);
    const double weight = kSurvivorBytes + kLateSurvivorBytes / p.rows;
    Sample best;
    const idx_t parts = std::clamp<idx_t>(512 / p.rows, 1, kMaxSampleParts);
    // Not every number of parts: this runs on every call.
    for (const uint32_t n : {std::bit_floor(uint32_t(parts)), 1u}) {
        const Sample sample = bestSample(
                p,
                n > 1 ? kPartThreads : kSplitThreads,
                n,
                false,
                weight,
                double(p.cols));
        if (sample.cost < best.cost) {
            best = sample;
        }
    }
    if (best.places > 0 && p.cols > kNoSampleCols) {
        setSample(plan, best);
    } else {
        plan.capacity = uint32_t(std::max<idx_t>(p.cols, 1));
        plan.expected = plan.capacity;
    }
    // Where many survive, gathering them first is of no use.
    plan.stage =
            plan.capacity > 16 * 1024 && p.cols < 256 * idx_t(plan.capacity)
            ? 0
            : kMaxStage;
    const idx_t most =
            std::clamp<idx_t>(kMostSurvivors / plan.capacity, 1, p.rows);
    plan.batchRows = divUp(p.rows, divUp(p.rows, most));
    // Two rounds of blocks or more, of a size that hides their beginnings.
    const idx_t slots = kSplitBlocks * idx_t(p.device.multiprocessors);
    const idx_t wanted = divUp(2 * slots, plan.batchRows);
    const idx_t segment = std::clamp<idx_t>(
            divUp(divUp(p.cols, wanted), kTile) * kTile, kTile, 32 * kTile);
    plan.segment = uint32_t(segment);
    plan.splits = uint32_t(std::max<idx_t>(1, divUp(p.cols, segment)));
}

} // namespace

std::string ThresholdPlan::toString() const {
    const std::string sample = ", sample of " + std::to_string(samplePlaces) +
            " places by " + std::to_string(sampleParts) +
            " blocks, capacity = " + std::to_string(capacity);
    if (fused) {
        return "a block a row, " + policy.toString() + sample;
    }
    const std::string finish =
            policy.room > 0 ? policy.toString() : "sorted in memory";
    return std::to_string(splits) + " blocks a row, " + finish + sample + ", " +
            std::to_string(batchRows) + " rows at a time";
}

ThresholdPlan planThreshold(const SelectProblem& p) {
    ThresholdPlan plan;
    if (!planWholeRows(p, plan)) {
        planSplit(p, plan);
    }
    return plan;
}

} // namespace faiss_bits
