/// The expected times of selections against those that were measured on an
/// H200, and what they must be anywhere.

#include "kernels/select/SelectCost.h"
#include "kernels/select/bits/BitsPlan.h"
#include "kernels/select/large_k/RowSortLaunch.h"
#include "kernels/select/short_rows/FewOfBlockPlan.h"
#include "kernels/select/short_rows/FewOfLanesPlan.h"
#include "kernels/select/short_rows/FewOfPacksPlan.h"
#include "kernels/select/short_rows/ShortRowsPolicy.h"
#include "kernels/select/threshold/CombPlan.h"
#include "kernels/select/threshold/HeldPlan.h"
#include "tests/common/BenchResults.h"

namespace faiss_bits::test {
namespace {

const char* const kSelect =
#include "select.json.inc"
        ;
const char* const kOrders =
#include "select_orders.json.inc"
        ;
const char* const kSweep =
#include "select_sweep_7bde480.json.inc"
        ;
const char* const kOldSweep =
#include "select_sweep_9d47d0d.json.inc"
        ;
const char* const kHeld =
#include "select_held_against_6337708.json.inc"
        ;
const char* const kChanged =
#include "select_against_562faa8.json.inc"
        ;

SelectProblem problemOf(const ResultRow& row) {
    SelectProblem p;
    p.rows = idx_t(row.number("rows"));
    p.cols = idx_t(row.number("cols"));
    p.k = int(row.number("k"));
    p.rowStride = idx_t(row.number("stride"));
    p.largest = row.number("largest") > 0;
    p.keyType = row.text("dtype") == "float32" ? DataType::Float32
            : row.text("dtype") == "float16"   ? DataType::Float16
                                               : DataType::BFloat16;
    return p;
}

double expectedMs(const SelectProblem& p, const DeviceSpeed& speed = {}) {
    return selectMicroseconds(planSelection(p), p, speed) / 1e3;
}

/// Whether a time of the older files is of the way that is taken today. Where a
/// block sorts the row today, or holds it, or a cluster shares it, or a few of
/// the best have kernels of their own, it was another one; warps gather
/// survivors of k beyond 2048 since, and k = 1 of long rows has a second pass
/// of its own.
bool isOfToday(const ResultRow& row) {
    const SelectProblem p = problemOf(row);
    const SelectAlgorithm algorithm = planSelection(p).algorithm();
    if (algorithm == SelectAlgorithm::Sort) {
        return rowSortPolicy(p).threads == 0;
    }
    if (algorithm == SelectAlgorithm::ShortRows) {
        return !hasLeastKernel(p) && !hasLaneLists(p) &&
                fewOfLanesShape(p).items == 0 &&
                fewOfPacksShape(p).packs == 0 && fewOfBlockItems(p) == 0;
    }
    if (algorithm == SelectAlgorithm::Bits) {
        return planBits(p).numPasses == 1;
    }
    const ThresholdPlan plan = planThreshold(p);
    return algorithm != SelectAlgorithm::SampleThreshold ||
            !(plan.isHeld || plan.isCluster || p.k > kMaxSelectK);
}

/// Of rows that `takes` says; `field` has the measured time.
template <class Takes>
Fit fitOf(const char* json, const char* field, const Takes& takes) {
    Fit fit;
    for (const ResultRow& row : rowsOf(json, "faiss_bits")) {
        if (takes(row) && isOfToday(row)) {
            fit.add(expectedMs(problemOf(row)), row.number(field), row.line());
        }
    }
    return fit;
}

bool all(const ResultRow&) {
    return true;
}

/// Of the sweep, whose rows have the names of today.
bool isOfAlgorithm(const ResultRow& row) {
    return row.text("algorithm") ==
            nameOf(planSelection(problemOf(row)).algorithm());
}

bool isRandom(const ResultRow& row) {
    return row.text("order") == "random";
}

/// Whether short rows have another kernel since that sweep.
bool areNewShortRows(const SelectProblem& p) {
    if (fewOfLanesShape(p).items > 0 || fewOfPacksShape(p).packs > 0 ||
        fewOfBlockItems(p) > 0) {
        return true;
    }
    if (hasLaneLists(p)) {
        return laneListsShape(p).lanes == 4;
    }
    SelectProblem floats = p;
    floats.keyType = DataType::Float32;
    const ShortRowsPolicy* policy = shortRowsPolicy(p);
    return p.cols <= 512 && policy != shortRowsPolicy(floats);
}

/// Whether a row of it has another kernel since.
bool isNew(const ResultRow& row) {
    constexpr idx_t kMostCombColsThen = 36864;
    const SelectProblem p = problemOf(row);
    const SelectAlgorithm algorithm = planSelection(p).algorithm();
    if (algorithm == SelectAlgorithm::ShortRows) {
        return areNewShortRows(p) || (p.k == 1 && p.cols > 16384);
    }
    return combsAreFaster(p) ||
            (algorithm == SelectAlgorithm::SampleThreshold &&
             planThreshold(p).isComb && p.cols > kMostCombColsThen);
}

/// All of the sweep that the model was not made from.
Fit fitOfNewSweep(const char* field) {
    Fit fit;
    for (const ResultRow& row : rowsOf(kSweep, "faiss_bits")) {
        if (isNew(row)) {
            continue;
        }
        EXPECT_TRUE(isOfAlgorithm(row)) << row.line();
        fit.add(expectedMs(problemOf(row)), row.number(field), row.line());
    }
    return fit;
}

/// Rows that blocks hold, and k = 1 in short rows, of a run of such cells
/// alone.
void addHeldRows(Fit& fit) {
    for (const ResultRow& row : rowsOf(kHeld, "new")) {
        const SelectProblem p = problemOf(row);
        ASSERT_TRUE(holdsRows(p) || hasLeastKernel(p)) << row.line();
        fit.add(expectedMs(p), row.number("random_ms"), row.line());
    }
}

/// k > 2048 by split rows, of a run of what had changed.
void addChangedRows(Fit& fit) {
    for (const ResultRow& row : rowsOf(kChanged, "new")) {
        const SelectProblem p = problemOf(row);
        const SelectPlan plan = planSelection(p);
        const bool isSplit =
                plan.algorithm() == SelectAlgorithm::SampleThreshold &&
                p.k > kMaxSelectK && !planThreshold(p).fused;
        if (isSplit) {
            fit.add(expectedMs(p), row.number("random_ms"), row.line());
        }
    }
}

TEST(SelectCost, KeysInRandomOrder) {
    expectFit(fitOf(kSelect, "ms", isRandom), 60, 0.98, 1.5);
    expectFit(fitOf(kOrders, "ms", isRandom), 42, 0.98, 1.5);
    // The cells of a sweep with random keys, and of a later one those that are
    // selected in another way since.
    Fit sweep = fitOf(kOldSweep, "random_ms", isOfAlgorithm);
    addHeldRows(sweep);
    addChangedRows(sweep);
    expectFit(sweep, 470, 0.95, 3);
    expectFit(fitOfNewSweep("random_ms"), 530, 0.93, 2);
}

TEST(SelectCost, HeldRowsAndLeastOfRows) {
    Fit fit;
    addHeldRows(fit);
    expectFit(fit, 100, 0.95, 2);
}

TEST(SelectCost, LargeK) {
    Fit fit;
    addChangedRows(fit);
    expectFit(fit, 120, 0.95, 2.5);
}

/// Orders that do not mislead the sample take about as long.
TEST(SelectCost, OtherOrders) {
    expectFit(fitOf(kSelect, "ms", all), 170, 0.97, 2);
    expectFit(fitOf(kOrders, "ms", all), 294, 0.98, 2);
    // Adversaries that know the sample are among these: no bound for all.
    EXPECT_GE(fitOfNewSweep("ms").shareWithin(1.5), 0.86);
}

/// The fit is a test: a model that is half or twice as much fails it.
TEST(SelectCost, AnotherModelFails) {
    for (double factor : {0.5, 2.0}) {
        Fit fit;
        for (const ResultRow& row : rowsOf(kSweep, "faiss_bits")) {
            fit.add(factor * expectedMs(problemOf(row)),
                    row.number("random_ms"),
                    row.line());
        }
        EXPECT_LT(fit.shareWithin(1.5), 0.5) << fit;
    }
}

SelectProblem shapeOf(idx_t rows, idx_t cols, int k) {
    SelectProblem p;
    p.rows = rows;
    p.cols = cols;
    p.k = k;
    return p;
}

TEST(SelectCost, IsFiniteForEveryAlgorithmAndShape) {
    EXPECT_EQ(expectedMs(shapeOf(0, 100, 10)), 0);
    for (SelectAlgorithm algorithm : selectAlgorithms()) {
        for (idx_t rows : {1, 77, 100000}) {
            for (idx_t cols : {1, 100, 5000, 1 << 20}) {
                for (int k : {1, 100, 2048, 100000}) {
                    SelectProblem p = shapeOf(rows, cols, k);
                    p.algorithm = algorithm;
                    SelectPlan plan;
                    try {
                        plan = planSelection(p);
                    } catch (const Error&) {
                        continue; // that it cannot take
                    }
                    const double time = selectMicroseconds(plan, p);
                    EXPECT_TRUE(std::isfinite(time) && time > 1)
                            << nameOf(algorithm) << " " << rows << " x " << cols
                            << ", k = " << k << ": " << time;
                }
            }
        }
    }
    EXPECT_GT(expectedMs(shapeOf(10, 0, 5)), 0);
}

TEST(SelectCost, ScalesWithTheDevice) {
    const SelectProblem p = shapeOf(1024, 1 << 20, 10);
    DeviceSpeed slow;
    slow.bytesPerSecond /= 4;
    EXPECT_NEAR(expectedMs(p, slow) / expectedMs(p), 4, 0.4);
    slow = {};
    slow.arithmetic = 0.25;
    EXPECT_GT(expectedMs(p, slow), expectedMs(p));
    EXPECT_LT(expectedMs(p, slow), 2 * expectedMs(p));
}

} // namespace
} // namespace faiss_bits::test
