/// Rows that one block sorts: which kernel, and the launches.

#include <algorithm>

#include "kernels/common/Error.h"
#include "kernels/select/SelectChecks.h"
#include "kernels/select/large_k/MultiPassLaunch.h"
#include "kernels/select/large_k/RowSortLaunch.h"

namespace faiss_bits {

namespace {

/// A grid's limit in x is 2^31 - 1.
constexpr idx_t kRowsPerLaunch = idx_t(1) << 30;
/// Threads that keep a multiprocessor busy, and items that make up for what
/// each pass costs a thread.
constexpr idx_t kBusyThreads = 1024;
constexpr idx_t kLeastItems = 4;

struct Kernel {
    RowSortPolicy policy;
    bool isNarrow; // for keys of 16 bits alone
};

constexpr Kernel kKernels[] = {
#define BITS_ROW_SORT(threads, items) {{threads, items}, false},
#define BITS_ROW_SORT_NARROW(threads, items) {{threads, items}, true},
#include "kernels/select/large_k/RowSortPolicies.inc"
#undef BITS_ROW_SORT
#undef BITS_ROW_SORT_NARROW
};

using Launch = void (*)(const SelectParams&, unsigned, size_t, cudaStream_t);

template <class Keys, bool IsNarrow>
Launch launchOf(const RowSortPolicy& policy) {
#define BITS_ROW_SORT(kThreads, kItems)               \
    if (policy == RowSortPolicy{kThreads, kItems}) {  \
        return launchRowSort<Keys, kThreads, kItems>; \
    }
#define BITS_ROW_SORT_NARROW(kThreads, kItems)            \
    if constexpr (IsNarrow) {                             \
        if (policy == RowSortPolicy{kThreads, kItems}) {  \
            return launchRowSort<Keys, kThreads, kItems>; \
        }                                                 \
    }
#include "kernels/select/large_k/RowSortPolicies.inc"
#undef BITS_ROW_SORT
#undef BITS_ROW_SORT_NARROW
    throw Error("no kernel of this policy");
}

Launch launchOf(const SelectProblem& p, const RowSortPolicy& policy) {
    if (p.hasColBias()) {
        return launchOf<MultiPassBiased, false>(policy);
    }
    switch (p.keyType) {
        case DataType::Float16:
            return launchOf<MultiPassHalf, true>(policy);
        case DataType::BFloat16:
            return launchOf<MultiPassBFloat16, true>(policy);
        default:
            return launchOf<MultiPassFloat, false>(policy);
    }
}

} // namespace

RowSortPolicy rowSortPolicy(const SelectProblem& p) {
    const bool isNarrow = sizeOf(p.keyType) == 2;
    RowSortPolicy chosen;
    for (const Kernel& one : kKernels) {
        const RowSortPolicy& policy = one.policy;
        if (p.cols > policy.mostCols() || (one.isNarrow && !isNarrow) ||
            rowSortSharedBytes(p, policy) > p.device.blockSharedBytes) {
            continue;
        }
        // Larger blocks only where rows are few.
        const bool isBetter = chosen.threads == 0 ||
                (policy.threads > chosen.threads &&
                 p.rows * chosen.threads <
                         kBusyThreads * p.device.multiprocessors &&
                 p.cols >= kLeastItems * policy.threads);
        chosen = isBetter ? policy : chosen;
    }
    return chosen;
}

size_t rowSortSharedBytes(const SelectProblem& p, const RowSortPolicy& policy) {
    const size_t warps = policy.threads / 32;
    const size_t size =
            (p.cols + policy.threads - 1) / policy.threads * policy.threads;
    return 4 * (warps * kRowSortStride + kRowSortSums) +
            (sizeOf(p.keyType) == 2 ? 4 : 6) * size;
}

void runRowSort(
        const SelectProblem& p,
        const RowSortPolicy& policy,
        cudaStream_t stream) {
    const Launch launch = launchOf(p, policy);
    const size_t sharedBytes = rowSortSharedBytes(p, policy);
    SelectParams params = makeSelectParams(p);
    for (idx_t row = 0; row < p.rows; row += kRowsPerLaunch) {
        params.firstRow = uint32_t(row);
        launch(params,
               unsigned(std::min(kRowsPerLaunch, p.rows - row)),
               sharedBytes,
               stream);
    }
}

} // namespace faiss_bits
