#include "kernels/select/threshold/ThresholdPlan.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/select/threshold/CombPlan.h"
#include "kernels/select/threshold/HeldPlan.h"
#include "kernels/select/threshold/SampleChoice.h"
#include "kernels/select/threshold/SecondSample.h"
#include "kernels/select/threshold/ThresholdParams.h"
#include "kernels/select/threshold/WholeRowsPlan.h"

namespace faiss_bits {

namespace {

constexpr idx_t kTile = 4096;
/// A survivor of a row that one block finishes while the others wait, in bytes
/// that the device could have read.
constexpr double kLateSurvivorBytes = 1700;

/// Survivors in memory at a time, of all rows.
constexpr idx_t kMostSurvivors = idx_t(1) << 27;

/// Keys of a problem, or columns, whose misled rows all blocks read again: one
/// launch more. One block takes 0.06 ms for a row of so many columns (H200).
constexpr idx_t kLeastAgain = idx_t(1) << 22;
constexpr idx_t kLeastAgainCols = idx_t(1) << 17;
/// The same of rows whose survivors are sorted in memory, which takes so many
/// launches that one more tells little.
constexpr idx_t kLeastSortedAgainCols = idx_t(1) << 15;

/// Bytes of a problem whose second sample is drawn beside the first, each by
/// half as many blocks as the first one alone has; and its most rows, for which
/// a row has two blocks or more of either.
constexpr idx_t kLeastDrawnBeside = idx_t(1) << 27;
constexpr idx_t kMostRowsBeside = 128;
/// Bytes of one whose second sample has a launch of its own, which takes up to
/// 3 us where it is not needed (measured, H200).
constexpr idx_t kLeastDrawnAlone = idx_t(1) << 29;

/// Columns that a block reads at a time of a row which both turns misled.
constexpr idx_t kLastTile = idx_t(1) << 14;

/// Room for the survivors of rows whose neighbours are alike, of all rows.
constexpr double kMostAlike = 1 << 26;
/// Most of a row that survives where there is a second turn: a limit that lets
/// more through is far too high, and the sort of so many takes longer than
/// another read.
constexpr double kMostOfRow = 15.0 / 16;

/// Rows that a cluster of so many blocks or more reads: from so many columns
/// on, and up to so many for each of its blocks, or so many bytes.
constexpr int kLeastClusterBlocks = 4;
constexpr idx_t kLeastClusterCols = 8 * kTile + 1;
constexpr idx_t kMostClusterCols = idx_t(1) << 16;
constexpr idx_t kMostFullClusterBytes = idx_t(1) << 20;
/// And with k > kMaxSelectK so many rows (measured, H200).
constexpr idx_t kMostLargeClusterRows = 1;

idx_t divUp(idx_t a, idx_t b) {
    return (a + b - 1) / b;
}

/// Blocks that share a row of so many columns: a power of two, and no more than
/// have a multiprocessor each.
int clusterBlocks(const SelectProblem& p) {
    const idx_t most = std::min<idx_t>(
            {p.device.multiprocessors / std::max<idx_t>(p.rows, 1),
             divUp(p.cols, kTile),
             mostClusterBlocks(p.device)});
    return int(std::bit_floor(uint64_t(std::max<idx_t>(most, 0))));
}

/// One launch for few rows: a cluster reads a row in less time than the
/// launches of the split plan take (measured, H100).
bool planClusterRows(const SelectProblem& p, ThresholdPlan& plan) {
    const int blocks = clusterBlocks(p);
    plan.policy = policyFor(kClusterRowsPolicies, kSplitThreads, p.k);
    if (plan.policy.room == 0 || p.hasColBias() ||
        (p.k > kMaxSelectK && p.rows > kMostLargeClusterRows) ||
        blocks < kLeastClusterBlocks || p.device.computeCapability < 90 ||
        p.cols < kLeastClusterCols) {
        return false;
    }
    // Few blocks read no faster than they can; where nearly all multiprocessors
    // have one, they do better.
    const bool isFull = p.rows * blocks * 4 >= 3 * p.device.multiprocessors;
    const idx_t size = sizeOf(p.keyType);
    const idx_t most = isFull ? kMostFullClusterBytes : size * kMostClusterCols;
    if (p.cols * size > blocks * most) {
        return false;
    }
    const uint32_t room = clusterRoom(plan.policy.room);
    const SampleChoice sample = bestSample(
            p,
            plan.policy.threads,
            blocks,
            false,
            kSurvivorBytes + kLateSurvivorBytes / p.rows,
            room);
    if (sample.places == 0) {
        return false;
    }
    plan.stages = 3;
    // And the groups of the sample, and what the sort wants beyond the tiles.
    if (room + 4096 > fusedCapacity(p, plan, 1)) {
        return false;
    }
    setSample(plan, sample, p, true);
    plan.isCluster = true;
    plan.capacity = room;
    plan.batchRows = p.rows;
    plan.segment = uint32_t(divUp(divUp(p.cols, blocks), kTile) * kTile);
    return true;
}

/// Columns of a block, if so many rows are split: two rounds of blocks or more,
/// of a size that hides their beginnings.
idx_t segmentOf(const SelectProblem& p, idx_t rows) {
    const idx_t slots = kSplitBlocks * idx_t(p.device.multiprocessors);
    const idx_t wanted = divUp(2 * slots, rows);
    return std::clamp<idx_t>(
            divUp(divUp(p.cols, wanted), kTile) * kTile, kTile, 32 * kTile);
}

idx_t bytesOf(const SelectProblem& p) {
    return p.rows * p.cols * idx_t(sizeOf(p.keyType));
}

/// Whether both samples are drawn by as many blocks as the first one alone has
/// otherwise, each in more places.
bool drawsBeside(const SelectProblem& p) {
    return p.rows <= kMostRowsBeside && bytesOf(p) >= kLeastDrawnBeside &&
            bytesOf(p) < kLeastDrawnAlone;
}

/// Blocks that draw the first sample of a row, at most.
uint32_t samplePartsOf(const SelectProblem& p) {
    const uint32_t most = std::bit_floor(
            uint32_t(std::clamp<idx_t>(512 / p.rows, 1, kMaxSampleParts)));
    const bool areBusy = 2 * p.rows * most > p.device.multiprocessors;
    return drawsBeside(p) && areBusy ? most / 2 : most;
}

/// A second sample by the blocks of a launch, not by each that reads: by
/// multiprocessors that have nothing else to do, or where the read takes far
/// longer than to draw it, or than another launch.
SecondDraw secondDrawOf(
        const SelectProblem& p,
        const SampleChoice& first,
        bool mayGrow) {
    if (first.parts == 1 || !mayGrow) {
        return SecondDraw::ByEachBlock;
    }
    const bool areIdle = 2 * p.rows * first.parts <= p.device.multiprocessors;
    const bool isBeside =
            (areIdle || drawsBeside(p)) && sampleBeside(p, first).places > 0;
    return isBeside                          ? SecondDraw::WithFirst
            : bytesOf(p) >= kLeastDrawnAlone ? SecondDraw::Alone
                                             : SecondDraw::ByEachBlock;
}

/// The samples of both turns, and lists with room for either. Rows whose
/// neighbours are alike get it too, unless they are so many and so short that
/// it would cost more memory than it saves time.
void setSplitSamples(
        ThresholdPlan& plan,
        const SampleChoice& first,
        const SelectProblem& p) {
    const auto fits = [&](double survivors) {
        return p.rows * survivors <= kMostAlike || 64 * survivors <= p.cols;
    };
    const bool mayGrow = fits(first.alike);
    setSample(plan, first, p, mayGrow);
    double capacity = mayGrow ? first.alike : first.usual;
    const idx_t least =
            p.k > kMaxSelectK ? kLeastSortedAgainCols : kLeastAgainCols;
    const bool isLong = p.rows * p.cols >= kLeastAgain || p.cols >= least;
    if (!isLong) {
        plan.capacity = uint32_t(capacity);
        return;
    }
    const auto roomOf = [&](double survivors) {
        const double most = std::max(kMostOfRow * p.cols, first.usual);
        return uint32_t(std::min(survivors, most));
    };
    plan.secondDraw = secondDrawOf(p, first, mayGrow);
    SampleChoice second = first;
    if (plan.secondDraw == SecondDraw::WithFirst) {
        second = sampleBeside(p, first);
    } else if (plan.secondDraw == SecondDraw::ByEachBlock) {
        second = secondSample(p, segmentOf(p, p.rows));
    }
    bool mayGrowToo =
            second.alike <= 2.5 * capacity || 64 * second.alike <= p.cols;
    if (plan.secondDraw == SecondDraw::ByEachBlock && !fits(second.usual) &&
        second.usual > capacity) {
        // Of many rows of large k: with fewer places the list of the first
        // turn is long enough, and one block would read them several times.
        second = secondSampleWithin(p, second.places / 2, capacity);
        mayGrowToo = false;
    }
    if (second.places > 0) {
        plan.againPlaces = second.places;
        plan.againRanks = sampleRanks(second, p, mayGrowToo);
        capacity = roomOf(
                std::max(capacity, mayGrowToo ? second.alike : second.usual));
    }
    plan.capacity = uint32_t(capacity);
}

void planSplit(const SelectProblem& p, ThresholdPlan& plan) {
    plan = {};
    const bool few = p.rows <= p.device.multiprocessors;
    plan.policy = policyFor(kFinishRowsPolicies, few ? 1024 : 512, p.k);
    const double weight = kSurvivorBytes + kLateSurvivorBytes / p.rows;
    SampleChoice best;
    // Not every number of parts: this runs on every call.
    for (const uint32_t n : {samplePartsOf(p), 1u}) {
        const SampleChoice sample = bestSample(
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
    const idx_t most =
            std::clamp<idx_t>(kMostSurvivors / plan.capacity, 1, p.rows);
    plan.batchRows = divUp(p.rows, divUp(p.rows, most));
    const idx_t segment = segmentOf(p, plan.batchRows);
    plan.segment = uint32_t(segment);
    // A block that is full has gathered in vain.
    const double ofBlock = double(usual) * std::min(segment, p.cols) /
            std::max<idx_t>(p.cols, 1);
    plan.stage = ofBlock > 0.8 * kMaxStage ? 0 : kMaxStage;
    plan.splits = uint32_t(std::max<idx_t>(1, divUp(p.cols, segment)));
    if (p.device.computeCapability >= 90) {
        const idx_t most =
                std::min(mostClusterBlocks(p.device), p.device.multiprocessors);
        plan.lastBlocks = std::bit_floor(
                uint32_t(std::clamp<idx_t>(p.cols / kLastTile, 1, most)));
    }
}

} // namespace

void setSample(
        ThresholdPlan& plan,
        const SampleChoice& sample,
        const SelectProblem& p,
        bool mayGrow) {
    plan.samplePlaces = sample.places;
    plan.sampleParts = sample.parts;
    plan.sampleRanks = sampleRanks(sample, p, mayGrow);
    plan.capacity = uint32_t(sample.usual);
    plan.expected =
            std::min(plan.capacity, uint32_t(sample.survivors * 1.25 + 64));
}

int ThresholdPlan::sampleThreads() const {
    return fused || isComb || isCluster || isHeld ? policy.threads
            : sampleParts > 1                     ? kPartThreads
                                                  : kSplitThreads;
}

std::string ThresholdPlan::toString() const {
    const std::string sample = ", sample of " + std::to_string(samplePlaces) +
            " places by " + std::to_string(sampleParts) +
            " blocks, capacity = " + std::to_string(capacity);
    if (isHeld) {
        return std::to_string(sampleParts) + " blocks hold a row, " +
                policy.toString() + ", capacity = " + std::to_string(capacity);
    }
    if (isCluster) {
        return "a cluster a row, " + policy.toString() + sample;
    }
    if (isComb) {
        return "a block a row by combs, " + policy.toString() + ", " +
                "first part = " + std::to_string(firstPart) +
                " tiles, capacity = " + std::to_string(capacity);
    }
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
    if (!planHeldRows(p, plan) && !planClusterRows(p, plan) &&
        !planCombRows(p, plan) && !planWholeRows(p, plan)) {
        planSplit(p, plan);
    }
    return plan;
}

} // namespace faiss_bits
