#include "kernels/knn/FlatKnnSummary.h"

#include "kernels/common/Error.h"
#include "kernels/knn/FlatKnnCost.h"
#include "kernels/knn/fused/FusedLists.h"

namespace faiss_bits {

FlatKnnSummary summaryOf(
        const FlatKnnPlan& plan,
        const FlatKnnProblem& problem,
        const DeviceSpeed& speed) {
    FlatKnnSummary summary;
    summary.scratchBytes = plan.bytes;
    summary.microseconds = flatKnnMicroseconds(plan, problem, speed);
    summary.details = plan.toString();
    summary.tileVectors = problem.numVectors;
    if (plan.parts) {
        summary.method = "parts";
        summary.tileQueries = plan.parts->tileQueries;
        summary.tileVectors = plan.parts->partVectors;
    } else if (plan.line) {
        summary.method = "line";
        summary.tileQueries = problem.numQueries;
    } else if (plan.sortedLine) {
        summary.method = "sorted_line";
        summary.tileQueries = problem.numQueries;
    } else if (plan.direct) {
        summary.method = "direct";
        summary.tileQueries = problem.numQueries;
        summary.candidates =
                problem.allowedIds ? problem.numAllowed : problem.numVectors;
    } else if (plan.fewDims) {
        summary.method = "few_dims";
        summary.tileQueries = plan.fewDims->tileQueries;
    } else if (plan.fewDimsTop) {
        summary.method = "few_dims_top";
        summary.tileQueries = plan.fewDimsTop->tileQueries;
    } else if (plan.allPairs) {
        summary.method = "all_pairs";
        summary.tileQueries = plan.allPairs->tileQueries;
        summary.candidates = problem.numVectors;
        summary.selection = plan.allPairs->selection.toString();
    } else if (plan.nearest) {
        summary.method = "nearest";
        summary.tileQueries = plan.nearest->tileQueries;
    } else if (plan.fused) {
        summary.method = std::string("fused_") + plan.fused->method->name;
        summary.tileQueries = plan.fused->tileQueries;
        summary.candidates =
                answersByKeys(*plan.fused, seenBy(*plan.fused, problem))
                ? 0
                : plan.fused->capacity;
    } else if (plan.method) {
        summary.method = plan.method->name;
        summary.tileQueries = plan.tileQueries;
        summary.tileVectors = plan.tileVectors;
        summary.candidates = plan.certified ? plan.places : 0;
        summary.selection = plan.selections.front().plan.toString();
    } else {
        summary.tileVectors = 0;
    }
    return summary;
}

std::string FlatKnnPlan::toString() const {
    if (parts) {
        return parts->toString();
    }
    if (line) {
        return line->toString();
    }
    if (sortedLine) {
        return sortedLine->toString();
    }
    if (direct) {
        return direct->toString();
    }
    if (fewDims) {
        return fewDims->toString();
    }
    if (fewDimsTop) {
        return fewDimsTop->toString();
    }
    if (allPairs) {
        return allPairs->toString();
    }
    if (nearest) {
        return nearest->toString();
    }
    if (fused) {
        return fused->toString();
    }
    if (!method) {
        return "no queries";
    }
    return formatMessage(
                   "%s%s: %lld queries x %lld vectors a tile, %lld tiles of "
                   "vectors, %d slots, %zu bytes; ",
                   method->name,
                   byList ? " by list" : "",
                   (long long)tileQueries,
                   (long long)tileVectors,
                   (long long)numVectorTiles,
                   slots,
                   bytes) +
            selections.front().plan.toString();
}

} // namespace faiss_bits
