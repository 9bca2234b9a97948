#include <algorithm>

#include "kernels/common/Error.h"
#include "kernels/select/SelectLaunch.h"
#include "kernels/select/SelectPlan.h"

namespace faiss_bits {

namespace {

/// A launch has at most this many blocks (the grid's limit in x is 2^31 - 1).
constexpr idx_t kMaxBlocks = idx_t(1) << 30;

using Launch = void (*)(const SelectParams&, unsigned, cudaStream_t);

/// Items of 256 threads that hold the list. A list of twice k makes the first
/// radius useful.
constexpr int itemsFor(int k) {
    return k <= 128 ? 1 : k <= 256 ? 2 : k <= 1024 ? 4 : 8;
}

template <class Keys, bool GivenIds>
Launch bitsLaunch(int k) {
    switch (itemsFor(k)) {
        case 1:
            return launchBitsSelect<Keys, 1, GivenIds>;
        case 2:
            return launchBitsSelect<Keys, 2, GivenIds>;
        case 4:
            return launchBitsSelect<Keys, 4, GivenIds>;
        default:
            return launchBitsSelect<Keys, 8, GivenIds>;
    }
}

/// Columns that a thread samples. Each costs a sector of memory: few where the
/// selection is bound by reading, one for every item where it is by sorting.
constexpr int samplesFor(int k) {
    return std::max(2, itemsFor(k));
}

template <class Keys>
Launch keysLaunch(int k, bool givenIds) {
    if (k == 1 && !givenIds) {
        return launchBestSelect<Keys>;
    }
    return givenIds ? bitsLaunch<Keys, true>(k) : bitsLaunch<Keys, false>(k);
}

Launch firstPass(const SelectProblem& p) {
    if (p.colBias) {
        return p.k == 1 ? launchBestSelect<BiasedKeys>
                        : bitsLaunch<BiasedKeys, false>(p.k);
    }
    return p.keyType == DataType::Float32 ? keysLaunch<FloatKeys>(p.k, p.ids)
                                          : keysLaunch<HalfKeys>(p.k, p.ids);
}

Launch laterPass(const SelectProblem& p) {
    if (p.keyType == DataType::Float32) {
        return p.ids ? bitsLaunch<FloatCandidates, true>(p.k)
                     : bitsLaunch<FloatCandidates, false>(p.k);
    }
    return p.ids ? bitsLaunch<HalfCandidates, true>(p.k)
                 : bitsLaunch<HalfCandidates, false>(p.k);
}

void checkPointers(const SelectProblem& p) {
    BITS_THROW_IF_NOT_FMT(p.keys || p.cols == 0, "keys = nullptr");
    BITS_THROW_IF_NOT_FMT(p.outKeys, "outKeys = nullptr");
    BITS_THROW_IF_NOT_FMT(p.outIds, "outIds = nullptr");
    BITS_THROW_IF_NOT_FMT(
            p.outStride == 0 || p.outStride >= p.k,
            "outStride = %lld is below k = %d",
            (long long)p.outStride,
            p.k);
    BITS_THROW_IF_NOT_FMT(
            !p.colBias == !p.rowBias,
            "colBias = %p and rowBias = %p: give both or neither",
            (const void*)p.colBias,
            (const void*)p.rowBias);
    BITS_THROW_IF_NOT_FMT(
            !p.colBias ||
                    (p.keyType == DataType::Float32 && !p.ids && !p.largest),
            "colBias needs Float32 keys, implicit ids and largest = false");
    const idx_t lastId = p.idOffset + std::max<idx_t>(p.cols, 1) - 1;
    BITS_THROW_IF_NOT_FMT(
            p.ids || p.idType == IdType::Int64 ||
                    (p.idOffset >= INT32_MIN && lastId <= INT32_MAX),
            "idOffset = %lld makes ids that Int32 cannot hold",
            (long long)p.idOffset);
}

bool canLoadVectors(const SelectProblem& p, idx_t rowStride) {
    const auto aligned = [](const void* pointer) {
        return reinterpret_cast<uintptr_t>(pointer) % 16 == 0;
    };
    return aligned(p.keys) && aligned(p.colBias) &&
            (p.rows == 1 || rowStride * sizeOf(p.keyType) % 16 == 0);
}

SelectParams makeParams(const SelectProblem& p) {
    SelectParams params;
    params.keys = p.keys;
    params.rowStride = p.rowStride ? p.rowStride : p.cols;
    params.cols = uint32_t(p.cols);
    params.signMask = p.largest ? 0x80000000u : 0u;
    params.vectorLoads = canLoadVectors(p, params.rowStride);
    params.k = p.k;
    params.colBias = p.colBias;
    params.rowBias = p.rowBias;
    params.ids = p.ids;
    params.ids64 = p.idType == IdType::Int64;
    params.idOffset = p.idOffset;
    params.outKeys = p.outKeys;
    params.outIds = p.outIds;
    params.outStride = p.outStride ? p.outStride : p.k;
    return params;
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
size_t numCandidates(const SelectProblem& p, const SelectPass& pass) {
    return pass.splits > 1 ? size_t(p.rows) * pass.splits * p.k : 0;
}

} // namespace

size_t selectWorkspaceBytes(const SelectProblem& problem) {
    const SelectPlan plan = planSelect(problem);
    WorkspaceSlices slices;
    for (int i = 0; i < plan.numPasses; ++i) {
        slices.take<uint64_t>(numCandidates(problem, plan.passes[i]));
    }
    return slices.used();
}

void runSelect(
        const SelectProblem& problem,
        Workspace workspace,
        cudaStream_t stream) {
    const SelectPlan plan = planSelect(problem);
    if (plan.numPasses == 0) {
        return;
    }
    checkPointers(problem);
    // Every slice is taken before the first launch: a workspace that is too
    // small leaves the output as it was.
    uint64_t* outCandidates[SelectPlan::kMaxPasses];
    WorkspaceSlices slices(workspace);
    for (int i = 0; i < plan.numPasses; ++i) {
        outCandidates[i] =
                slices.take<uint64_t>(numCandidates(problem, plan.passes[i]));
    }

    SelectParams params = makeParams(problem);
    for (int i = 0; i < plan.numPasses; ++i) {
        const SelectPass& pass = plan.passes[i];
        params.segment = pass.segment;
        params.splits = pass.splits;
        params.outCandidates = outCandidates[i];
        params.samplesPerThread = i == 0 ? samplesFor(problem.k) : 0;
        if (i > 0) {
            params.candidates = outCandidates[i - 1];
            params.numCandidates = pass.length;
        }
        launchRows(
                i == 0 ? firstPass(problem) : laterPass(problem),
                params,
                problem.rows,
                stream);
    }
}

} // namespace faiss_bits
