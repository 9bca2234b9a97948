#include "kernels/common/Error.h"
#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/knn/fused/FusedMethod.h"

namespace faiss_bits {

std::string FusedPlan::toString() const {
    if (strips.perRow > 0) {
        return formatMessage(
                "fused %s: %lld queries a scan, limits from %u strips%s, "
                "lists of %u, %zu bytes",
                method->name,
                (long long)tileQueries,
                strips.perRow,
                atOnce ? " at once" : "",
                capacity,
                bytes);
    }
    if (givenLimits) {
        return formatMessage(
                "fused %s: %lld queries a scan, limits are given, lists of %u, "
                "%zu bytes",
                method->name,
                (long long)tileQueries,
                capacity,
                bytes);
    }
    if (secondStrips.perRow > 0) {
        return formatMessage(
                "fused %s: %lld queries a scan, limits from %u strips of a "
                "sample of %lld, rank %u, lists of %u, %zu bytes",
                method->name,
                (long long)tileQueries,
                secondStrips.perRow,
                (long long)secondSamples,
                secondRank,
                capacity,
                bytes);
    }
    return formatMessage(
            "fused %s: %lld queries a scan, a sample of %u by %s, rank %u, "
            "rank %u of a second, lists of %u, %zu bytes",
            method->name,
            (long long)tileQueries,
            samples,
            sampling ? sampling->name : "canonical distances",
            rank,
            secondRank,
            capacity,
            bytes);
}

} // namespace faiss_bits
