/// Short rows: which kernel, and the launches.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <span>

#include "kernels/common/Error.h"
#include "kernels/select/SelectChecks.h"
#include "kernels/select/SelectImplementation.h"
#include "kernels/select/short_rows/FewOfBlockPlan.h"
#include "kernels/select/short_rows/FewOfLanesPlan.h"
#include "kernels/select/short_rows/FewOfPacksPlan.h"
#include "kernels/select/short_rows/LaneListsLaunch.h"
#include "kernels/select/short_rows/LeastOfRowsLaunch.h"
#include "kernels/select/short_rows/NarrowChunksPlan.h"
#include "kernels/select/short_rows/ShortChunk.h"
#include "kernels/select/short_rows/ShortRowsLaunch.h"
#include "kernels/select/short_rows/ShortRowsPolicy.h"

namespace faiss_bits {

namespace {

constexpr ShortRowsPolicy kFewPolicies[] = {
#define BITS_SHORT_ROWS(lanes, items, sorted, mostCols, mostK)
#define BITS_FEW_SHORT_ROWS(lanes, items, sorted, mostCols, mostK) \
    {lanes, items, sorted, mostCols, mostK},
#include "kernels/select/short_rows/Policies.inc"
#undef BITS_SHORT_ROWS
#undef BITS_FEW_SHORT_ROWS
};

constexpr ShortRowsPolicy kPolicies[] = {
#define BITS_SHORT_ROWS(lanes, items, sorted, mostCols, mostK) \
    {lanes, items, sorted, mostCols, mostK},
#define BITS_FEW_SHORT_ROWS(lanes, items, sorted, mostCols, mostK)
#include "kernels/select/short_rows/Policies.inc"
#undef BITS_SHORT_ROWS
#undef BITS_FEW_SHORT_ROWS
};

/// Only kernels that hold so many columns take rows of more, save k = 1.
#define BITS_SHORT_ROWS(lanes, items, sorted, mostCols, mostK) \
    static_assert(                                             \
            mostCols <= (lanes) * (items) || mostK == 1 ||     \
            (lanes) * (items) == kShortChunkColumns);
#define BITS_FEW_SHORT_ROWS BITS_SHORT_ROWS
#include "kernels/select/short_rows/Policies.inc"
#undef BITS_SHORT_ROWS
#undef BITS_FEW_SHORT_ROWS

const ShortRowsPolicy* firstOf(
        std::span<const ShortRowsPolicy> policies,
        const SelectProblem& p) {
    const auto found = std::find_if(
            policies.begin(), policies.end(), [&](const ShortRowsPolicy& one) {
                return one.takes(p);
            });
    return found == policies.end() ? nullptr : &*found;
}

using Launch = void (*)(const ShortRowsParams&, cudaStream_t);
using LeastLaunch = void (*)(const ShortRowsParams&, bool, cudaStream_t);

template <class T, bool kHasBias>
Launch launchOf(const ShortRowsPolicy& policy) {
#define BITS_SHORT_ROWS(kLanes, kItems, kSorted, mostCols, mostK)     \
    if (policy.lanes == kLanes && policy.items == kItems &&           \
        policy.sorted == kSorted) {                                   \
        return launchShortRows<T, kHasBias, kLanes, kItems, kSorted>; \
    }
#define BITS_FEW_SHORT_ROWS BITS_SHORT_ROWS
#include "kernels/select/short_rows/Policies.inc"
#undef BITS_SHORT_ROWS
#undef BITS_FEW_SHORT_ROWS
    throw Error("no kernel of this policy");
}

Launch launchOf(const SelectProblem& p, const ShortRowsPolicy& policy) {
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

LeastLaunch leastLaunchOf(const SelectProblem& p) {
    if (p.hasColBias()) {
        return launchLeastOfRows<float, true>;
    }
    switch (p.keyType) {
        case DataType::Float16:
            return launchLeastOfRows<__half, false>;
        case DataType::BFloat16:
            return launchLeastOfRows<__nv_bfloat16, false>;
        default:
            return launchLeastOfRows<float, false>;
    }
}

using ListsLaunch =
        void (*)(const ShortRowsParams&, LaneListsShape, cudaStream_t);

ListsLaunch listsLaunchOf(const SelectProblem& p) {
    switch (p.keyType) {
        case DataType::Float16:
            return launchLaneLists<__half>;
        case DataType::BFloat16:
            return launchLaneLists<__nv_bfloat16>;
        default:
            return launchLaneLists<float>;
    }
}

/// Calls launch(first, rows) for all rows, so many at a time.
template <class Launch>
void forRows(idx_t rows, idx_t most, const Launch& launch) {
    for (idx_t row = 0; row < rows; row += most) {
        launch(uint32_t(row), uint32_t(std::min(most, rows - row)));
    }
}

std::string refusal(const SelectProblem& p) {
    if (p.cols == 0) {
        return "cols = 0";
    }
    if (shortRowsPolicy(p)) {
        return "";
    }
    return formatMessage(
            "cols = %lld and k = %d: rows have up to 16384 columns, and k is "
            "up to cols, beyond 1024 columns up to 512; or k = 1 of up to "
            "65536 columns",
            (long long)p.cols,
            p.k);
}

void runChunks(
        const SelectProblem& p,
        const ShortRowsPolicy& policy,
        cudaStream_t stream) {
    const LeastLaunch least = hasLeastKernel(p) ? leastLaunchOf(p) : nullptr;
    const FewOfPacksShape packs = fewOfPacksShape(p);
    const ListsLaunch lists = !least && packs.packs == 0 && hasLaneLists(p)
            ? listsLaunchOf(p)
            : nullptr;
    const int block = fewOfBlockItems(p);
    const FewOfLanesShape few = fewOfLanesShape(p);
    const int narrow = narrowChunksSorted(p);
    const Launch launch = least || lists ? nullptr
            : packs.packs > 0            ? fewOfPacksLaunch(packs)
            : block > 0                  ? fewOfBlockLaunch(block)
            : few.items > 0              ? fewOfLanesLaunch(p.keyType, few)
            : narrow > 0                 ? narrowChunksLaunch(p.keyType, narrow)
                                         : launchOf(p, policy);
    ShortRowsParams params;
    params.select = makeSelectParams(p);
    const idx_t rowsOfBlock = kShortRowsThreads / policy.lanes;
    const idx_t most = (idx_t(1) << 24) * rowsOfBlock;
    forRows(p.rows, most, [&](uint32_t first, uint32_t rows) {
        params.select.firstRow = first;
        params.rows = rows;
        if (least) {
            least(params, areFewShortRows(p), stream);
        } else if (lists) {
            lists(params, laneListsShape(p), stream);
        } else {
            launch(params, stream);
        }
    });
}

struct ShortRowsFamily {
    struct Plan {
        ShortRowsPolicy policy;
        FewOfPacksShape packs;
        int block = 0;
        FewOfLanesShape lanes;
        int narrow = 0;
        bool isLeast = false;
        bool hasLists = false;

        std::string toString() const {
            if (packs.packs > 0) {
                return std::to_string(packs.lanes) +
                        " lanes a row, limits from " +
                        std::to_string(packs.lanes * packs.minima) +
                        " least keys, " + std::to_string(packs.packs) +
                        " packs of a lane";
            }
            if (hasLists) {
                return "lists of lanes";
            }
            if (block > 0) {
                return std::to_string(fewOfBlockThreads(block)) +
                        " threads a row, limits from 128 least keys, " +
                        std::to_string(block) + " keys of a thread";
            }
            if (lanes.items > 0) {
                return "a warp a row, limits from " +
                        std::to_string(32 * lanes.minima) + " least keys, " +
                        std::to_string(lanes.items) +
                        " keys of a lane at a time";
            }
            if (narrow > 0) {
                return "a warp a row, 2048 keys at a time in pairs, " +
                        std::to_string(narrow) + " sorted of a lane";
            }
            return std::to_string(policy.lanes) + " lanes a row, " +
                    (isLeast ? "the least key"
                             : std::to_string(policy.items) +
                                     " keys of each at a time, " +
                                     std::to_string(policy.sorted) + " sorted");
        }
    };

    static Plan plan(const SelectProblem& p) {
        Plan plan;
        plan.policy = *shortRowsPolicy(p);
        plan.isLeast = hasLeastKernel(p);
        plan.hasLists = hasLaneLists(p);
        plan.packs = fewOfPacksShape(p);
        plan.block = fewOfBlockItems(p);
        plan.lanes = fewOfLanesShape(p);
        plan.narrow = narrowChunksSorted(p);
        return plan;
    }
    static size_t workspaceBytes(const SelectProblem&, const Plan&) {
        return 0;
    }
    static void run(
            const SelectProblem& p,
            const Plan& plan,
            Workspace,
            cudaStream_t stream) {
        runChunks(p, plan.policy, stream);
    }
};

} // namespace

const ShortRowsPolicy* shortRowsPolicy(const SelectProblem& p) {
    if (areFewShortRows(p)) {
        if (const ShortRowsPolicy* few = firstOf(kFewPolicies, p)) {
            return few;
        }
    }
    return firstOf(kPolicies, p);
}

const SelectImplementation kShortRowsSelect = {
        "short_rows",
        refusal,
        nullptr,
        nullptr,
        SelectFamilyPlanOf<ShortRowsFamily>::make};

} // namespace faiss_bits
