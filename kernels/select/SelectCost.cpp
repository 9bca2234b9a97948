#include "kernels/select/SelectCost.h"

#include <algorithm>
#include <cmath>

#include "kernels/select/bits/BitsPlan.h"
#include "kernels/select/large_k/RowSortLaunch.h"
#include "kernels/select/short_rows/FewOfBlockPlan.h"
#include "kernels/select/short_rows/FewOfLanesPlan.h"
#include "kernels/select/short_rows/FewOfPacksPlan.h"
#include "kernels/select/short_rows/ShortRowsPolicy.h"
#include "kernels/select/threshold/ThresholdPlan.h"

namespace faiss_bits {

namespace {

// The constants below are microseconds on an H200, fitted to the median times
// of select.json, select_orders.json and select_sweep.json in
// benchs/results/h200, and to those of the paper's algorithms in papers.json;
// of rows that one block sorts, to those that tuned the table; of clusters, to
// twelve cells of an H100 that are not kept; of held rows, and k = 1 in short
// rows, to select_held_against_6337708.json; of k > 2048 by split
// rows, to select_against_562faa8.json.

/// What every term is made of.
struct Shape {
    double rows = 0;
    double cols = 0;
    double k = 0; // that there are keys for
    bool isAligned = true;
    double read = 0; // microseconds of all keys
    double arithmetic = 1;

    Shape(const SelectProblem& p, const DeviceSpeed& speed)
            : rows(double(p.rows)),
              cols(double(p.cols)),
              k(double(std::min<idx_t>(p.k, std::max<idx_t>(p.cols, 1)))),
              arithmetic(speed.arithmetic) {
        const double size = double(sizeOf(p.keyType));
        const idx_t stride = p.rowStride ? p.rowStride : p.cols;
        // Heads and tails of other rows are loaded key by key.
        isAligned = p.rows == 1 || stride * idx_t(size) % 16 == 0;
        read = readMicroseconds(rows * cols * size, speed);
    }
};

/// One block a row, all in one kernel.
double wholeRows(const Shape& s, const ThresholdPlan& plan, double survivors) {
    const int blocks = 1024 / plan.policy.threads;
    const double rounds = std::max(1.0, s.rows / (132 * s.arithmetic * blocks));
    const double sorts = s.rows * (4.7e-6 * survivors + 5.1e-6 * s.k);
    return (plan.samplePlaces > 0 ? 10.3 : 6.5) +
            (s.isAligned ? 0.99 : 1.36) * s.read +
            rounds * (5.9 + 4.4e-3 * s.k) + sorts / s.arithmetic;
}

/// The same with tiles that span their row (fitted to 76 cells of an H200,
/// within a tenth).
double combRows(const Shape& s, const ThresholdPlan& plan) {
    const int blocks = kCombThreads / plan.policy.threads;
    const double rounds = std::max(1.0, s.rows / (132 * s.arithmetic * blocks));
    return 14.8 + 1.02 * s.read + 2.5 * rounds +
            55e-6 * s.rows * s.k / s.arithmetic;
}

/// The blocks of a cluster a row, all in one kernel. The constants are an
/// H100's.
double clusterRows(const SelectProblem& p, const Shape& s, int blocks) {
    const double bytes = s.cols * double(sizeOf(p.keyType)) / blocks;
    return 19.3 + std::max(s.read, bytes / 60e3) + 3.0e-3 * s.k / s.arithmetic;
}

/// Blocks that hold a row, all in one kernel.
double heldRows(const Shape& s, int blocks) {
    const double keysOfThread = s.cols / blocks / 512;
    return 11.5 + s.read + (blocks > 1 ? 2.3 : 0) +
            (0.15 * keysOfThread + 4.6e-3 * s.k) / s.arithmetic;
}

/// Several blocks a row, and one that sorts up to 2048 in shared memory.
double splitRows(const Shape& s, double survivors) {
    return 25.3 + (s.isAligned ? 0.99 : 1.04) * s.read +
            66e-6 * s.rows * survivors / s.arithmetic;
}

/// The same with survivors that are sorted in memory.
double splitRowsSortedInMemory(const Shape& s, double survivors) {
    const double work = 5.1 * std::log2(s.k / 2048 + 1) +
            26e-6 * s.rows * survivors + 5e-6 * s.rows * s.k;
    return 28 + 1.15 * s.read + work / s.arithmetic;
}

double sampleThreshold(const SelectProblem& p, const Shape& s) {
    const ThresholdPlan plan = planThreshold(p);
    // `expected` is a quarter more.
    const double survivors = std::min(plan.expected / 1.25, s.cols);
    if (plan.isHeld) {
        return heldRows(s, plan.sampleParts);
    }
    if (plan.isCluster) {
        return clusterRows(p, s, plan.sampleParts);
    }
    if (plan.isComb) {
        return combRows(s, plan);
    }
    if (plan.fused) {
        return wholeRows(s, plan, survivors);
    }
    return plan.policy.room > 0 ? splitRows(s, survivors)
                                : splitRowsSortedInMemory(s, survivors);
}

double bits(const SelectProblem& p, const Shape& s) {
    const double second = p.k == 1 ? 1.8 : 7.6;
    return 6.2 + second * std::min(1, planBits(p).numPasses - 1) +
            (s.isAligned ? 1.01 : 1.12) * s.read +
            2.1 * std::log2(s.k + 1) / s.arithmetic;
}

/// k = 1 in short rows.
double leastOfRows(const SelectProblem& p, const Shape& s) {
    const bool areFew = areFewShortRows(p);
    const bool hasBlock = (areFew && p.cols > 256) || p.cols > 1024;
    const double lanes = p.cols <= 128 ? 8 : hasBlock ? 128 : 32;
    const double items = p.cols > 256 ? 16 : p.cols > 128 ? 8 : s.cols / 8;
    const double steps = std::ceil(s.cols / (lanes * items));
    const double row = 3e-6 * lanes + 0.45e-6 * steps * lanes * items;
    return 8.3 + 0.15 * steps + std::max(s.read, s.rows * row / s.arithmetic);
}

/// Instructions that an H200 issues in a microsecond.
constexpr double kIssued = 925e3;

/// The same by numbers of a key and its column: counted instructions, fitted to
/// the cells of select_sweep.json.
double narrowLists(const SelectProblem& p, const Shape& s) {
    const LaneListsShape shape = laneListsShape(p);
    const double lanes = shape.lanes;
    const double parts = std::ceil(s.cols / (lanes * shape.items));
    const double levels = p.k <= 2 ? 1 : p.k <= 4 ? 2 : p.k <= 8 ? 3 : 4;
    const double best = std::exp2(levels);
    const double instructions = 180 +
            parts * (40 + shape.items * (4 + 4.5 * levels)) +
            std::log2(lanes) * best * (3 + 1.7 * levels);
    const double row = instructions * lanes / 32 / kIssued * 0.95;
    return 7.4 + 0.4 * (parts - 1) +
            std::max(s.read, s.rows * row / s.arithmetic);
}

/// A few of the best of rows of some hundred columns, by lists of lanes.
/// Counted instructions.
double laneLists(const SelectProblem& p, const Shape& s) {
    if (sizeOf(p.keyType) == 2) {
        return narrowLists(p, s);
    }
    const double lanes = laneListsShape(p).lanes;
    const double items = std::ceil(s.cols / lanes);
    const double best = p.k <= 2 ? 2 : p.k <= 4 ? 4 : kMostLaneListsK;
    const double instructions =
            250 + items * (14 + 2 * best) + std::log2(lanes) * (4 + 5 * best);
    const double row = instructions * lanes / 32 / kIssued * 1.2;
    return 8.3 + std::max(s.read, s.rows * row / s.arithmetic);
}

/// A few of the best of rows in registers (fitted to twelve cells of an H200,
/// within a tenth).
double fewOfLanes(FewOfLanesShape shape, const Shape& s) {
    const double turns = std::ceil((s.cols + 31) / (32 * shape.items));
    const double row = 0.2e-3 + 24e-6 * turns * shape.items +
            0.2e-3 * (shape.minima - 1) + 7e-6 * s.k;
    return 8.5 + turns + std::max(1.02 * s.read, s.rows * row / s.arithmetic);
}

/// A few of the best of rows of packs (fitted to cells of an H100: 215 of 227
/// within a quarter).
double fewOfPacks(FewOfPacksShape shape, const Shape& s) {
    const double row =
            shape.lanes / 8 * (0.09e-3 + 12e-6 * shape.packs + 9e-6 * s.k);
    return 7 + std::max(1.04 * s.read, s.rows * row / s.arithmetic);
}

/// The same of rows that a block holds (issue slots by profile, H100).
double fewOfBlock(int items, const Shape& s) {
    const double warps = fewOfBlockThreads(items) / 128.0;
    const double row = 1.1e-3 + 38e-6 * items * warps + 20e-6 * s.k;
    return 8.5 + std::max(1.04 * s.read, s.rows * row / s.arithmetic);
}

/// Keys in registers: loads, a bisection, a sort of what is left.
double shortRows(const SelectProblem& p, const Shape& s) {
    const FewOfPacksShape packs = fewOfPacksShape(p);
    if (packs.packs > 0) {
        return fewOfPacks(packs, s);
    }
    if (hasLaneLists(p)) {
        return laneLists(p, s);
    }
    if (hasLeastKernel(p)) {
        return leastOfRows(p, s);
    }
    const int block = fewOfBlockItems(p);
    if (block > 0) {
        return fewOfBlock(block, s);
    }
    const FewOfLanesShape lanes = fewOfLanesShape(p);
    if (lanes.items > 0) {
        return fewOfLanes(lanes, s);
    }
    const ShortRowsPolicy& policy = *shortRowsPolicy(p);
    const double step = double(policy.lanes) * policy.items;
    const double steps = std::ceil(std::max(1.0, s.cols) / step);
    const double sorted = double(policy.lanes) * policy.sorted;
    const double levels = std::log2(std::max(2.0, sorted));
    double row = 3.3e-6 * policy.lanes + 5.3e-6 * s.k;
    double late = 8.7 + 0.5 * steps;
    if (p.k == 1) {
        row += 0.61e-6 * steps * step;
    } else {
        // Of 16-bit keys numbers of 32 bits are sorted, in less time.
        const bool isNarrow = sizeOf(p.keyType) == 2;
        row += (isNarrow ? 1.41e-6 : 1.43e-6) * steps * step +
                (isNarrow ? 0.07e-6 : 0.114e-6) * sorted * levels * levels;
        late += 0.056 * levels * levels;
    }
    return late + std::max(s.read, s.rows * row / s.arithmetic);
}

/// Rows that one block sorts, digit by digit. The constants are an H100's.
double rowSort(const SelectProblem& p, const Shape& s, RowSortPolicy policy) {
    const double passes = double(sizeOf(p.keyType));
    const bool drops = kRowSortPart * s.k <= s.cols;
    const double sorted = drops ? std::min(s.cols, 1.3 * s.k) : s.cols;
    const double items = (drops ? s.cols : 0) + passes * sorted;
    const double blocksAtATime =
            132 * s.arithmetic * rowSortBlocks(policy.threads, policy.items);
    const double rounds = std::max(1.0, s.rows / blocksAtATime);
    return 11.1 + rounds * (0.35 * items + 0.64 * s.cols) / policy.threads +
            (rounds > 1 ? 8.7 * rounds : 0);
}

/// Of a plan of several passes that comes down to that sort.
RowSortPolicy rowSortOf(const SelectPlan& plan, const SelectProblem& p) {
    const bool isSort = plan.algorithm() == SelectAlgorithm::Sort;
    const bool isAll = p.k >= p.cols;
    return p.cols > 0 && (isAll ? p.sorted : isSort) ? rowSortPolicy(p)
                                                     : RowSortPolicy();
}

/// Several passes, or a sort of all.
double severalPasses(
        const SelectPlan& plan,
        const SelectProblem& p,
        const Shape& s) {
    const bool isSort = plan.algorithm() == SelectAlgorithm::Sort;
    const bool sortsAll = isSort || p.k >= p.cols;
    const double keys = s.rows * s.cols;
    const double work = (isSort             ? 42e-6
                                 : sortsAll ? 0
                                            : 8.9e-6) *
                    keys +
            (p.sorted ? 58e-6 : 0) * s.rows * s.k +
            (s.cols < 1e5 ? 2.8e-3 * s.cols : 0);
    return 34 + std::max(s.read, work / s.arithmetic);
}

} // namespace

double selectMicroseconds(
        const SelectPlan& plan,
        const SelectProblem& shape,
        const DeviceSpeed& speed) {
    if (shape.rows == 0) {
        return 0;
    }
    const Shape s(shape, speed);
    switch (plan.algorithm()) {
        case SelectAlgorithm::ShortRows:
            return shortRows(shape, s);
        case SelectAlgorithm::Bits:
            return bits(shape, s);
        case SelectAlgorithm::SampleThreshold:
            return sampleThreshold(shape, s);
        default: {
            const RowSortPolicy policy = rowSortOf(plan, shape);
            return policy.threads > 0 ? rowSort(shape, s, policy)
                                      : severalPasses(plan, shape, s);
        }
    }
}

} // namespace faiss_bits
