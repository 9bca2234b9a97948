#include <algorithm>

#include "kernels/select/large_k/DigitSort.h"
#include "kernels/select/large_k/MultiPassParams.h"
#include "kernels/select/large_k/MultiPassPlan.h"

namespace faiss_bits {

namespace {

/// So many rounds of blocks, where rows are many, end at about the same time.
constexpr idx_t kRounds = 4;

idx_t divUp(idx_t a, idx_t b) {
    return (a + b - 1) / b;
}

/// Blocks for `count` keys or entries of each of `rows` rows: one round of
/// blocks if rows are few, as blocks that wait for a multiprocessor would make
/// a second one.
uint32_t splitsFor(const SelectProblem& p, idx_t rows, idx_t count) {
    const idx_t slots = p.device.multiprocessors;
    const idx_t wanted =
            2 * rows <= slots ? slots / rows : divUp(kRounds * slots, rows);
    const idx_t most =
            std::min<idx_t>(divUp(count, kSplitGrain), kMostDigitSplits);
    return uint32_t(std::clamp<idx_t>(wanted, 1, most));
}

} // namespace

std::string DigitSortPlan::toString() const {
    return "by digits, " + std::to_string(splits) + " blocks a row and " +
            std::to_string(entrySplits) + " for its best, " +
            std::to_string(batch) + " rows at a time";
}

DigitSortPlan planDigitSort(const SelectProblem& p) {
    DigitSortPlan plan;
    if (sizeOf(p.keyType) != 2 || p.rows == 0 || p.cols == 0) {
        return plan;
    }
    const idx_t wanted = std::min<idx_t>(p.k, p.cols);
    const auto split = [&](idx_t rows) {
        plan.splits = splitsFor(p, rows, p.cols);
        plan.entrySplits = splitsFor(p, rows, wanted);
    };
    split(p.rows);
    const size_t counts =
            4 * kDigits * (3 * size_t(plan.splits) + plan.entrySplits);
    plan.batch = rowsPerBatch(
            p.rows, 8 * size_t(wanted) + counts + sizeof(LimitDigit));
    split(plan.batch);
    return plan;
}

} // namespace faiss_bits
