#include "kernels/cpu/Plan.h"

#include "kernels/common/Error.h"

namespace faiss_bits::cpu {

std::string toString(const Plan& plan) {
    std::string text = formatMessage(
            "%s%s target=%s threads=%d over %s blocks=%d x %d x %d tile=%d x "
            "%d "
            "batch=%lld scratch=%.1f MB predicted=%.3g ms",
            nameOf(plan.variant),
            plan.byInt16             ? " int16"
                    : plan.byBytes   ? " bytes"
                    : plan.byDoubles ? " doubles"
                                     : "",
            plan.target.c_str(),
            plan.threads,
            plan.acrossVectors ? "vectors" : "queries",
            plan.queryBlock,
            plan.vectorBlock,
            plan.depthBlock,
            plan.tileQueries,
            plan.tileVectors,
            (long long)plan.batchQueries,
            double(plan.scratchBytes) / 1e6,
            plan.predictedSeconds * 1e3);
    const char* separator = " (";
    for (const auto& [variant, seconds] : plan.predictions) {
        text += separator;
        text += formatMessage("%s %.3g", nameOf(variant), seconds * 1e3);
        separator = ", ";
    }
    return text + (plan.predictions.empty() ? "" : ")");
}

} // namespace faiss_bits::cpu
