#include "kernels/select/threshold/WholeRowsPlan.h"

#include <algorithm>
#include <cmath>

#include "kernels/select/threshold/SampleChoice.h"
#include "kernels/select/threshold/ThresholdParams.h"

namespace faiss_bits {

namespace {

/// Survivors that a fused block has room for, beside its tiles.
constexpr idx_t kMostFusedSurvivors = 12 * 1024;
/// The largest k that one block finds and sorts, and for k > kMaxSelectK the
/// most rows of a multiprocessor: that saves the launches of a sort in memory,
/// but rows of equal keys take it longer (measured, H200).
constexpr int kMostFusedK = 4096;
constexpr idx_t kMostLargeRows = 32;
/// Of keys of 16 bits, among which many are equal, where a multiprocessor has
/// room for one such block.
constexpr int kMostFusedNarrowK = 3072;
constexpr idx_t kTile = 4096;
/// Survivors of a sorted row that a fused block may meet: it makes room in its
/// buffer a few times then, which costs such a row less than room for them
/// costs all rows in blocks of a multiprocessor (measured, H200).
constexpr double kMostSortedSurvivors = 6000;
/// Up to so many columns one block a row reads faster than split rows are read,
/// where every row has its block at the same time and those together fill the
/// memory (measured, H200).
constexpr idx_t kMostAtOnceCols = idx_t(1) << 19;
/// The largest k of such rows; of keys of 16 bits, and that small samples are
/// drawn for: kMostSmallK.
constexpr int kMostAtOnceK = 1024;
constexpr int kMostSmallK = 128;

/// Up to so many columns one block reads a row in less time than the launches
/// of the split plan take, few rows. With a row for nearly each multiprocessor
/// those have few blocks for it (measured, H200).
idx_t mostColsOfABlock(const SelectProblem& p) {
    const double part = double(p.rows) / p.device.multiprocessors;
    if (areFew(p) && part > 0.9) {
        return 25 * kTile;
    }
    // Larger k, and 16-bit keys, gain in random order alone.
    const bool isSmall = part < 0.25 && p.k <= 32 && sizeOf(p.keyType) == 4;
    return (isSmall ? 8 : 4) * kTile;
}

/// Rows of up to two or three blocks for each multiprocessor, all at once.
bool areFewAtOnce(const SelectProblem& p) {
    return 2 * p.rows <= 5 * p.device.multiprocessors;
}

/// Few rows, or long ones, keep few blocks busy for long: large blocks. Many
/// short rows have much to do beside reading: small blocks, so that others read
/// then.
int fusedThreads(const SelectProblem& p) {
    if (p.k > kMaxSelectK) {
        return 512;
    }
    if (areFew(p) && p.cols <= mostColsOfABlock(p)) {
        const bool isLong =
                p.cols >= 4 * kTile || (p.k > 128 && p.cols > 2 * kTile);
        return isLong || p.k > 512 ? 512 : 256;
    }
    if (p.hasColBias() && p.k <= 32 && p.cols >= idx_t(1) << 17) {
        return 512;
    }
    if (p.cols >= kMostAtOnceCols) {
        return 512;
    }
    if (p.k > 32 && p.cols >= idx_t(1) << 17) {
        return 256;
    }
    return p.k > 128 || (areFewAtOnce(p) && !p.hasColBias()) ? 256 : 128;
}

/// Rows of many rounds of blocks are not split if the device is busy for so
/// much of their time: a sample and a finish that nothing is read beside take
/// more.
constexpr double kLeastBusy = 0.8;

/// How full the rounds of so many blocks of a multiprocessor are.
double roundsFilled(const SelectProblem& p, int blocks) {
    const double rounds = p.rows / (double(blocks) * p.device.multiprocessors);
    return rounds / std::ceil(rounds);
}

/// Whether one block a row keeps the device busy.
bool shouldFuse(const SelectProblem& p, int blocks) {
    const double slots = double(blocks) * p.device.multiprocessors;
    const double waves = p.rows / slots;
    if (p.cols <= mostColsOfABlock(p) || waves >= 8 ||
        waves / std::ceil(waves) >= 0.9) {
        return true;
    }
    // All rows at once share the memory's speed as well as any blocks do.
    if (!areFew(p) && waves <= 1 && p.cols < kMostAtOnceCols &&
        p.k <= (sizeOf(p.keyType) == 4 ? kMostAtOnceK : kMostSmallK) &&
        !p.hasColBias()) {
        return true;
    }
    // The blocks of the last round share the memory's speed. One alone on a
    // multiprocessor reads at some two thirds of its part.
    const double rest = std::ceil((waves - std::floor(waves)) * blocks);
    const double rounds = std::floor(waves) * blocks + std::max(rest, 1.5);
    return waves >= 1 && waves * blocks >= kLeastBusy * rounds;
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

/// The same of blocks that stream their rows, to the word.
double streamedCapacity(
        const SelectProblem& p,
        const ThresholdPlan& plan,
        int blocks,
        int stages) {
    const int threads = plan.policy.threads;
    const double room = (plan.policy.room <= 256 ? 1.0 : 2.0) * 8 *
            (plan.policy.room + 128);
    const double tiles =
            std::max(stages * threads * 16.0 * sizeOf(p.keyType), room);
    // A bin for each of a thread's four groups, or for each place of a sort,
    // and what the block's warps tell each other.
    const double storage = 4.0 * std::max(4 * threads, plan.policy.room) + 768;
    const double bytes = std::floor(double(p.device.sharedBytes) / blocks) -
            1024 - storage - tiles;
    return std::clamp(bytes / 8, 0.0, double(kMostFusedSurvivors));
}

/// Rows that stream have room for what random and most other orders leave, so
/// that as many blocks fit a multiprocessor as its registers allow: some sort
/// while others read. False if that is too little.
bool setStreamedRoom(
        ThresholdPlan& plan,
        const SampleChoice& sample,
        const SelectProblem& p) {
    const int threads = plan.policy.threads;
    const int blocks = wholeRowBlocks(threads, plan.policy.room, true);
    const double least = p.k + kLeastFusedRoom +
            (plan.firstPart > 0 ? 1.5 * sample.lowered : sample.random);
    const auto fits = [&](int n, int stages) {
        return streamedCapacity(p, plan, n, stages) >= least;
    };
    int wanted = threads == 256 && plan.stages == 3 ? 3 : blocks;
    if (threads == 128) {
        // Fewer blocks with more in flight, where that fills the last round.
        const int fewer = blocks * 3 / 4;
        if (fits(blocks, 3)) {
            plan.stages = 3;
        } else if (
                roundsFilled(p, fewer) > roundsFilled(p, blocks) + 0.1 &&
                fits(fewer, 3)) {
            plan.stages = 3;
            wanted = fewer;
        }
    }
    if (!fits(wanted, plan.stages)) {
        return false;
    }
    plan.capacity = std::min(
            plan.capacity,
            uint32_t(streamedCapacity(p, plan, wanted, plan.stages)));
    plan.expected = std::min(plan.expected, plan.capacity);
    return true;
}

/// Blocks that fit a multiprocessor, at most: by what they hold at least.
int mostBlocks(const SelectProblem& p, const ThresholdPlan& plan) {
    const int threads = plan.policy.threads;
    const int bins = std::max(4 * threads, plan.policy.room);
    const double tiles = plan.stages * threads * 16.0 * sizeOf(p.keyType);
    const double sorted = plan.policy.room <= 256 ? 0 : 16.0 * plan.policy.room;
    const double bytes =
            1024 + 4.0 * bins + std::max(tiles, sorted) + 8.0 * plan.capacity;
    return std::min(
            int(p.device.sharedBytes / bytes),
            wholeRowBlocks(threads, plan.policy.room, true));
}

/// Rows whose neighbours are alike have a limit of higher rank: room for what
/// it leaves, where that costs no block of a multiprocessor. To make room in a
/// full buffer takes a row as long as some tiles.
void setAlikeRoom(
        ThresholdPlan& plan,
        const SampleChoice& sample,
        const SelectProblem& p) {
    if (p.hasColBias() || p.k > kMaxSelectK) {
        return;
    }
    const int blocks = std::max(1, mostBlocks(p, plan));
    const double room = std::min(
            streamedCapacity(p, plan, blocks, plan.stages),
            fusedCapacity(p, plan, 1));
    const double alike = mostAlikeSurvivors(sample, p);
    plan.capacity = std::max(plan.capacity, uint32_t(std::min(room, alike)));
}

/// A sample whose usual survivors are at most `room`, which fits the device.
bool planSample(const SelectProblem& p, ThresholdPlan& plan, double room) {
    const bool streams = !p.hasColBias() && p.k <= kMaxSelectK && !areFew(p);
    const ThresholdPlan before = plan;
    // Sorted rows of small k would ask for more.
    for (const double most : {kMostSortedSurvivors, room}) {
        if (most > room &&
            !(streams && p.k <= kMostSmallK && plan.policy.threads < 512)) {
            continue;
        }
        const SampleChoice sample = bestSample(
                p, plan.policy.threads, 1, true, kSurvivorBytes, most);
        if (sample.places == 0) {
            continue;
        }
        setSample(plan, sample, p, true);
        setFirstPart(plan, p, sample.survivors);
        const bool fits = streams && setStreamedRoom(plan, sample, p);
        if (fits || most <= room) {
            setAlikeRoom(plan, sample, p);
            return true;
        }
        plan = before;
    }
    return false;
}

} // namespace

double fusedCapacity(
        const SelectProblem& p,
        const ThresholdPlan& plan,
        int blocks) {
    // Sort and sample take up to 12 KiB, or a bin for each place, and a block
    // 1 KiB of its own. The sort takes the place of the tiles.
    const bool isLarge = plan.policy.room > kMaxSelectK;
    const double tiles = std::max(
            plan.stages * plan.policy.threads * 16.0 * sizeOf(p.keyType),
            isLarge ? 16.0 * plan.policy.room : 0.0);
    const double bytes = double(p.device.blockSharedBytes) / blocks -
            (isLarge ? 5 * 1024 + 4.0 * plan.policy.room : 13.0 * 1024) - tiles;
    return std::clamp(bytes / 8, 0.0, double(kMostFusedSurvivors));
}

bool planWholeRows(const SelectProblem& p, ThresholdPlan& plan) {
    plan = {};
    if (p.k > (sizeOf(p.keyType) == 2 ? kMostFusedNarrowK : kMostFusedK) ||
        (p.k > kMaxSelectK &&
         p.rows > kMostLargeRows * p.device.multiprocessors)) {
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
        // Beyond that the sort takes room too, which some devices have not.
        return p.k <= kMaxSelectK || plan.capacity <= fusedCapacity(p, plan, 1);
    }
    // Short rows leave little time for more than two tiles a block.
    plan.stages = threads == 256 && p.cols >= idx_t(1) << 17 ? 3 : 2;
    // So many blocks that some sort while others read.
    for (int b = threads == 128 ? 5 : 2; b >= 1; --b) {
        if (planSample(p, plan, fusedCapacity(p, plan, b))) {
            return true;
        }
    }
    plan.capacity = uint32_t(
            std::min(double(p.cols), std::floor(fusedCapacity(p, plan, 1))));
    return plan.capacity == p.cols;
}

} // namespace faiss_bits
