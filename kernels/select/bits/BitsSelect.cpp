/// Bits: the row split, the workspace and the launches.

#include <algorithm>

#include "kernels/common/Error.h"
#include "kernels/select/SelectChecks.h"
#include "kernels/select/SelectImplementation.h"
#include "kernels/select/bits/BitsLaunch.h"
#include "kernels/select/bits/BitsPlan.h"
#include "kernels/select/bits/BitsPolicy.h"

namespace faiss_bits {

namespace {

/// A launch has at most this many blocks (the grid's limit in x is 2^31 - 1).
constexpr idx_t kMaxBlocks = idx_t(1) << 30;

using Launch = void (*)(const SelectParams&, unsigned, cudaStream_t);

template <class Keys>
Launch bitsLaunch(int k) {
#define BITS_ITEMS(items, mostK)              \
    if (bitsItemsFor(k) == items) {           \
        return launchBitsSelect<Keys, items>; \
    }
#include "kernels/select/bits/Policies.inc"
#undef BITS_ITEMS
    throw Error(formatMessage("no kernel of bits for k = %d", k));
}

/// Columns that a thread samples. Each costs a sector of memory: few where the
/// selection is bound by reading, one for every item where it is by sorting.
constexpr int samplesFor(int k) {
    return std::max(2, bitsItemsFor(k));
}

template <class Keys>
Launch keysLaunch(int k) {
    return k == 1 ? launchBestSelect<Keys> : bitsLaunch<Keys>(k);
}

Launch firstPass(const SelectProblem& p) {
    if (p.hasColBias()) {
        return keysLaunch<BiasedKeys>(p.k);
    }
    switch (p.keyType) {
        case DataType::Float16:
            return keysLaunch<HalfKeys>(p.k);
        case DataType::BFloat16:
            return keysLaunch<BFloat16Keys>(p.k);
        default:
            return keysLaunch<FloatKeys>(p.k);
    }
}

template <class Keys, class Candidates>
Launch laterLaunch(int k) {
    return k == 1 ? launchBestOfParts<Keys> : bitsLaunch<Candidates>(k);
}

Launch laterPass(const SelectProblem& p, const BitsPass& pass) {
    BITS_THROW_IF_NOT_FMT(
            p.k > 1 || pass.splits == 1,
            "a second pass of k = 1 has %u blocks a row",
            pass.splits);
    switch (p.keyType) {
        case DataType::Float16:
            return laterLaunch<HalfKeys, HalfCandidates>(p.k);
        case DataType::BFloat16:
            return laterLaunch<BFloat16Keys, BFloat16Candidates>(p.k);
        default:
            return laterLaunch<FloatKeys, FloatCandidates>(p.k);
    }
}

void launchRows(
        Launch launch,
        SelectParams params,
        idx_t rows,
        cudaStream_t stream) {
    const idx_t rowsPerLaunch = kMaxBlocks / params.splits;
    for (idx_t row = 0; row < rows; row += rowsPerLaunch) {
        params.firstRow = uint32_t(row);
        const idx_t now = std::min(rowsPerLaunch, rows - row);
        launch(params, unsigned(now * params.splits), stream);
    }
}

/// Candidates that a pass leaves.
size_t numCandidates(const SelectProblem& p, const BitsPass& pass) {
    return pass.splits > 1 ? size_t(p.rows) * pass.splits * p.k : 0;
}

std::string refusal(const SelectProblem& p) {
    return p.k <= kMaxSelectK ? ""
                              : "k = " + std::to_string(p.k) + " is above " +
                    std::to_string(kMaxSelectK);
}

struct BitsFamily {
    using Plan = BitsPlan;
    static constexpr auto plan = planBits;

    static size_t workspaceBytes(
            const SelectProblem& problem,
            const BitsPlan& plan) {
        WorkspaceSlices slices;
        for (int i = 0; i < plan.numPasses; ++i) {
            slices.take<uint64_t>(numCandidates(problem, plan.passes[i]));
        }
        return slices.used();
    }

    static void run(
            const SelectProblem& problem,
            const BitsPlan& plan,
            Workspace workspace,
            cudaStream_t stream) {
        // Every slice is taken before the first launch: a workspace that is too
        // small leaves the output as it was.
        uint64_t* outCandidates[BitsPlan::kMaxPasses];
        WorkspaceSlices slices(workspace);
        for (int i = 0; i < plan.numPasses; ++i) {
            outCandidates[i] = slices.take<uint64_t>(
                    numCandidates(problem, plan.passes[i]));
        }

        SelectParams params = makeSelectParams(problem);
        for (int i = 0; i < plan.numPasses; ++i) {
            const BitsPass& pass = plan.passes[i];
            params.segment = pass.segment;
            params.splits = pass.splits;
            params.blocksAtATime = pass.blocksAtATime;
            params.outCandidates = outCandidates[i];
            params.samplesPerThread = i == 0 ? samplesFor(problem.k) : 0;
            if (i > 0) {
                params.candidates = outCandidates[i - 1];
                params.numCandidates = pass.length;
            }
            launchRows(
                    i == 0 ? firstPass(problem) : laterPass(problem, pass),
                    params,
                    problem.rows,
                    stream);
        }
    }
};

} // namespace

const SelectImplementation kBitsSelect = {
        "bits",
        refusal,
        nullptr,
        nullptr,
        SelectFamilyPlanOf<BitsFamily>::make};

} // namespace faiss_bits
