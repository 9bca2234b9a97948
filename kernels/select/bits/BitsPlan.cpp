#include "kernels/select/bits/BitsPlan.h"

#include <algorithm>
#include <cmath>

#include "kernels/select/bits/BitsPolicy.h"

namespace faiss_bits {

namespace {

constexpr idx_t kTile = 4096;

idx_t divUp(idx_t a, idx_t b) {
    return (a + b - 1) / b;
}

/// k = 1: up to so many columns one block reads a row in less time than a
/// second pass takes; with more rows there are fewer blocks for each (measured,
/// H200).
idx_t mostColsOfABlock(const SelectProblem& p) {
    const idx_t rounds = divUp(2 * p.rows, p.device.multiprocessors);
    if (p.k > 1) {
        return 0;
    }
    return rounds <= 2 ? 6 * kTile : std::min<idx_t>(rounds, 4) * 8 * kTile;
}

/// How full the last round of blocks is, on average over all.
double roundsFilled(const SelectProblem& p, idx_t blocksAtATime) {
    const double rounds =
            double(p.rows) / (blocksAtATime * p.device.multiprocessors);
    return rounds / std::ceil(rounds);
}

/// Splits the rows of one pass so that the device is full, but never so finely
/// that the candidates are many against the columns they come from.
BitsPass planPass(const SelectProblem& p, idx_t length) {
    const idx_t slots =
            bitsBlocksAtOnce(p.device, p.k) * p.device.multiprocessors;
    // Few rows: two rounds of blocks, so that a slow one does little harm.
    const idx_t wanted = p.rows >= slots ? 1 : 2 * slots / p.rows;
    const idx_t least = std::max<idx_t>(kTile, 8 * idx_t(p.k));
    const idx_t splits = length <= mostColsOfABlock(p)
            ? 1
            : std::clamp<idx_t>(length / least, 1, wanted);

    BitsPass pass;
    pass.length = uint32_t(length);
    // Whole tiles keep the loads of every segment aligned.
    pass.segment = uint32_t(
            std::max(divUp(divUp(length, splits), kTile) * kTile, kTile));
    pass.splits = uint32_t(std::max<idx_t>(1, divUp(length, pass.segment)));
    // k = 1 leaves a block nothing to do but read: what it costs is a last
    // round that few blocks share. One block fewer still fills the memory.
    const idx_t usual = bitsBlocksAtOnce(p.device, p.k);
    if (p.k == 1 && pass.splits == 1 && p.rows >= slots &&
        roundsFilled(p, usual - 1) > roundsFilled(p, usual) + 0.05) {
        pass.blocksAtATime = int(usual - 1);
    }
    return pass;
}

} // namespace

std::string BitsPlan::toString() const {
    std::string text;
    for (int i = 0; i < numPasses; ++i) {
        text += (i > 0 ? ", then " : "") + std::to_string(passes[i].splits) +
                " blocks a row of " + std::to_string(passes[i].length);
    }
    return text;
}

BitsPlan planBits(const SelectProblem& p) {
    BitsPlan plan;
    if (p.rows == 0) {
        return plan;
    }
    idx_t length = p.cols;
    do {
        const BitsPass pass = planPass(p, length);
        plan.passes[plan.numPasses++] = pass;
        length = idx_t(pass.splits) * p.k;
    } while (plan.passes[plan.numPasses - 1].splits > 1);
    return plan;
}

} // namespace faiss_bits
