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

/// Keys of a problem whose misled rows all blocks read again: one launch more.
constexpr idx_t kLeastAgain = idx_t(1) << 22;
/// What each block draws of a row that is read again: places of a thread, and
/// at most this part of the columns that it reads otherwise.
constexpr int kLeastAgainPlaces = 4;
constexpr int kAgainPart = 2;

/// Room for the survivors of rows whose neighbours are alike, of all rows.
constexpr double kMostAlike = 1 << 26;

/// A row of at most this many columns is not sampled.
constexpr idx_t kNoSampleCols = 2048;

idx_t divUp(idx_t a, idx_t b) {
    return (a + b - 1) / b;
}

/// What is drawn of a row: entries, that are known by the least of their
/// groups.
struct Draw {
    double size = 0;
    double groups = 0;

    /// Groups that have one of so many entries in random places.
    double rankOf(double entries) const {
        const double share = std::min(entries / size, 1.0);
        return groups * (1 - std::pow(1 - share, size / groups)) + 0.5;
    }
    /// The other way round.
    double entriesOf(double rank) const {
        return size * (1 - std::pow(1 - rank / groups, groups / size));
    }
};

/// A sample of `places` places a thread and what it leads to.
struct Sample {
    int places = 0;
    uint32_t parts = 1;
    Draw draw;
    double rank = 0;      // of the limit, in random order
    double survivors = 0; // then, without a lower limit on the way
    double usual = 0;     // most of them in random order and in sorted rows
    double alike = 0;     // where neighbours are as alike as can be
    double cost = HUGE_VAL;
};

/// What the sum of Poisson many numbers of at most `size` reaches once in three
/// thousand times, within one of the exact count for size = 1: this runs on
/// every call, so no sums. A row where it happens is read again, which costs
/// less than a wider limit for all.
double rareSum(double mean, double size = 1) {
    return std::ceil(mean + 3.43 * std::sqrt(size * mean) + 2 * size);
}

/// Part of the rank that the limit's may turn out to be above it.
double slackOf(int k) {
    return k <= kMaxSelectK ? 1.0 / 8 : 1.0 / 64;
}

/// Largest rank: beyond, the groups tell little.
double mostRank(const Draw& draw, int k) {
    return draw.groups * 0.8 / (1 + slackOf(k));
}

/// Survivors if the limit is lowered on the way at the best place: a part f of
/// the row leaves S f, the rest k / f - k.
double loweredSurvivors(double survivors, double k) {
    return survivors <= 1.5 * k ? survivors : 2 * std::sqrt(k * survivors) - k;
}

/// The limit is the r-th least entry of the sample. Fewer than k entries pass
/// if r of the sample are among the k best, which is rare (rareSum) for
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
    Draw& draw = sample.draw;
    draw.size = double(threads) * places * parts * kSampleItems;
    draw.groups = parts > 1 ? kSampledGroups : threads * kSampleItems;
    const double expected = k * draw.size / cols;
    // In a sorted row the best lie in runs of the sample, and no two of them
    // in one group.
    const double least = expected + std::min(k, kSampleRun) + 1;
    double wanted = std::max(rareSum(expected), least);
    double rank = draw.rankOf(wanted);
    if (rank < least && least < draw.groups) {
        rank = least;
        wanted = draw.entriesOf(rank);
    }
    const double share = wanted / draw.size; // of columns below the limit
    if (draw.size * 2 > cols || share > 0.5 || rank < least ||
        rank > mostRank(draw, k)) {
        return sample;
    }
    sample.places = places;
    sample.parts = parts;
    sample.rank = rank;
    const double slack = slackOf(k);
    sample.survivors = cols * share * (1 + slack / 2);
    const double deviation = cols * std::sqrt(share / draw.size);
    const double random =
            sample.survivors * (1 + slack / 2) + 5 * deviation + 64;
    // In a sorted row the limit lies up to a run further than the r-th.
    const double runs = draw.size / kSampleRun;
    const auto inRuns = [&](double entries) {
        return (entries / kSampleRun + 2) * cols / runs;
    };
    sample.usual = std::max(
            std::min(cols, std::max(random, inRuns(wanted))), double(k));
    // Twice: the sample may have too few of the k best, and too few of those
    // that are not above its limit.
    const double alike = rareSum(rareSum(expected, kSampleRun), kSampleRun) *
            cols / draw.size;
    sample.alike = std::max(sample.usual, std::min(cols, alike));
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
        if (sample.cost < best.cost && sample.usual <= maxCapacity) {
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

/// Ranks of the limit by dispersion; where they may not grow, all are that of
/// random order.
std::array<SampleRank, kSampleRanks> ranksOf(
        const Sample& sample,
        const SelectProblem& p,
        bool mayGrow) {
    std::array<SampleRank, kSampleRanks> ranks;
    const double most = mayGrow ? mostRank(sample.draw, p.k) : sample.rank;
    const double expected = p.k * sample.draw.size / p.cols;
    for (int i = 0; i < kSampleRanks; ++i) {
        const double alike =
                std::min<double>(kLeastDispersion * (1 << i), kSampleRun);
        const double rank = i == 0
                ? sample.rank
                : sample.draw.rankOf(rareSum(expected, alike));
        // Of rows more alike it is no lower.
        const double taken = std::clamp(rank, sample.rank, most);
        ranks[i] = {int(taken), int(taken * (1 + slackOf(p.k)))};
    }
    return ranks;
}

void setSample(
        ThresholdPlan& plan,
        const Sample& sample,
        const SelectProblem& p,
        bool mayGrow) {
    plan.samplePlaces = sample.places;
    plan.sampleParts = sample.parts;
    plan.sampleRanks = ranksOf(sample, p, mayGrow);
    plan.capacity = uint32_t(sample.usual);
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
            // It makes room when its buffer is full.
            setSample(plan, sample, p, true);
            setFirstPart(plan, p, sample.survivors);
            return true;
        }
    }
    plan.capacity = uint32_t(
            std::min(double(p.cols), std::floor(fusedCapacity(p, plan, 1))));
    return plan.capacity == p.cols;
}

/// Columns of a block, if so many rows are split: two rounds of blocks or more,
/// of a size that hides their beginnings.
idx_t segmentOf(const SelectProblem& p, idx_t rows) {
    const idx_t slots = kSplitBlocks * idx_t(p.device.multiprocessors);
    const idx_t wanted = divUp(2 * slots, rows);
    return std::clamp<idx_t>(
            divUp(divUp(p.cols, wanted), kTile) * kTile, kTile, 32 * kTile);
}

/// Of a row that is read again: the largest that tells something.
Sample secondSample(const SelectProblem& p) {
    const idx_t most =
            segmentOf(p, p.rows) / (kAgainPart * kSampleItems * kSplitThreads);
    const int places = int(
            std::bit_floor(uint32_t(std::max<idx_t>(kLeastAgainPlaces, most))));
    for (int n = places; n >= 1; n /= 2) {
        const Sample sample =
                makeSample(double(p.cols), p.k, kSplitThreads, n, 1, false, 0);
        if (sample.places > 0) {
            return sample;
        }
    }
    return {};
}

/// The samples of both turns, and lists with room for either. Rows whose
/// neighbours are alike get it too, unless they are so many and so short that
/// it would cost more memory than it saves time.
void setSplitSamples(
        ThresholdPlan& plan,
        const Sample& first,
        const SelectProblem& p) {
    const auto fits = [&](double survivors) {
        return p.rows * survivors <= kMostAlike || 64 * survivors <= p.cols;
    };
    const bool mayGrow = fits(first.alike);
    setSample(plan, first, p, mayGrow);
    double capacity = mayGrow ? first.alike : first.usual;
    const Sample second =
            p.rows * p.cols >= kLeastAgain ? secondSample(p) : Sample();
    if (second.places > 0 && (fits(second.usual) || second.usual <= capacity)) {
        const bool mayGrowToo =
                second.alike <= 2.5 * capacity || 64 * second.alike <= p.cols;
        plan.againPlaces = second.places;
        plan.againRanks = ranksOf(second, p, mayGrowToo);
        capacity = std::max(capacity, mayGrowToo ? second.alike : second.usual);
    }
    plan.capacity = uint32_t(capacity);
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
    uint32_t usual = 0;
    if (best.places > 0 && p.cols > kNoSampleCols) {
        setSplitSamples(plan, best, p);
        usual = uint32_t(best.usual);
    } else {
        plan.capacity = uint32_t(std::max<idx_t>(p.cols, 1));
        plan.expected = plan.capacity;
        usual = plan.capacity;
    }
    // Where many survive, gathering them first is of no use.
    plan.stage =
            usual > 16 * 1024 && p.cols < 256 * idx_t(usual) ? 0 : kMaxStage;
    const idx_t most =
            std::clamp<idx_t>(kMostSurvivors / plan.capacity, 1, p.rows);
    plan.batchRows = divUp(p.rows, divUp(p.rows, most));
    const idx_t segment = segmentOf(p, plan.batchRows);
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
