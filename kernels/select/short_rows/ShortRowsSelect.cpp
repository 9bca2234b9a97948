/// Short rows: which kernel, and the launches.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "kernels/common/Error.h"
#include "kernels/select/SelectChecks.h"
#include "kernels/select/SelectImplementation.h"
#include "kernels/select/short_rows/ShortRowsLaunch.h"

namespace faiss_bits {

namespace {

struct Policy {
    int lanes;
    int items;
    int sorted;
    int mostCols;
    int mostK;

    bool takes(const SelectProblem& p) const {
        const bool sortsAll = sorted == items;
        return p.cols <= mostCols && p.k <= mostK &&
                (sortsAll || p.k <= p.cols);
    }
};

constexpr Policy kPolicies[] = {
#define BITS_SHORT_ROWS(lanes, items, sorted, mostCols, mostK) \
    {lanes, items, sorted, mostCols, mostK},
#include "kernels/select/short_rows/Policies.inc"
#undef BITS_SHORT_ROWS
};

const Policy* policyFor(const SelectProblem& p) {
    const auto found = std::find_if(
            std::begin(kPolicies), std::end(kPolicies), [&](const Policy& one) {
                return one.takes(p);
            });
    return found == std::end(kPolicies) ? nullptr : found;
}

using Launch = void (*)(const ShortRowsParams&, cudaStream_t);

template <class T, bool kHasBias>
Launch launchOf(const Policy& policy) {
#define BITS_SHORT_ROWS(kLanes, kItems, kSorted, mostCols, mostK)     \
    if (policy.lanes == kLanes && policy.items == kItems &&           \
        policy.sorted == kSorted) {                                   \
        return launchShortRows<T, kHasBias, kLanes, kItems, kSorted>; \
    }
#include "kernels/select/short_rows/Policies.inc"
#undef BITS_SHORT_ROWS
    throw Error("no kernel of this policy");
}

Launch launchOf(const SelectProblem& p, const Policy& policy) {
    if (p.hasColBias()) {
        return launchOf<float, true>(policy);
    }
    switch (p.keyType) {
        case DataType::Float16:
            return launchOf<__half, false>(policy);
        case DataType::BFloat16:
            return launchOf<__nv_bfloat16, false>(policy);
        default:
            return launchOf<float, false>(policy);
    }
}

std::string refusal(const SelectProblem& p) {
    if (p.cols == 0) {
        return "cols = 0";
    }
    if (policyFor(p)) {
        return "";
    }
    return formatMessage(
            "cols = %lld and k = %d: rows have up to 16384 columns, and k is "
            "up to cols, beyond 1024 columns up to 512",
            (long long)p.cols,
            p.k);
}

size_t workspaceBytes(const SelectProblem&) {
    return 0;
}

void run(const SelectProblem& p, Workspace, cudaStream_t stream) {
    const Policy& policy = *policyFor(p);
    const Launch launch = launchOf(p, policy);
    ShortRowsParams params;
    params.select = makeSelectParams(p);
    const idx_t rowsOfBlock = kShortRowsThreads / policy.lanes;
    const idx_t rowsOfLaunch = (idx_t(1) << 24) * rowsOfBlock;
    for (idx_t row = 0; row < p.rows; row += rowsOfLaunch) {
        params.select.firstRow = uint32_t(row);
        params.rows = uint32_t(std::min(rowsOfLaunch, p.rows - row));
        launch(params, stream);
    }
}

} // namespace

const SelectImplementation kShortRowsSelect = {
        "short_rows",
        refusal,
        workspaceBytes,
        run};

} // namespace faiss_bits
