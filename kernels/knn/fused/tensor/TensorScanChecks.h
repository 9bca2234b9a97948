/// Arguments of scans on tensor cores.
#pragma once

#include "kernels/common/Error.h"
#include "kernels/knn/fused/tensor/TensorScan.h"

namespace faiss_bits {

/// Cosines are distances of normalised rows.
inline bool isByL2(const TensorScanProblem& problem) {
    return problem.metric != Metric::InnerProduct;
}

inline void checkTensorScan(const TensorScanProblem& problem) {
    BITS_THROW_IF_NOT_FMT(
            problem.metric == Metric::L2 ||
                    problem.metric == Metric::InnerProduct ||
                    problem.metric == Metric::Cosine,
            "metric = %d is no product",
            int(problem.metric));
    BITS_THROW_IF_NOT_FMT(
            problem.numQueries >= 0 && problem.numQueries < idx_t(1) << 31,
            "numQueries = %lld is outside 0..2^31 - 1",
            (long long)problem.numQueries);
    BITS_THROW_IF_NOT_FMT(
            problem.numVectors >= 0 &&
                    problem.numVectors < (idx_t(1) << 32) - 1024,
            "numVectors = %lld is outside 0..2^32 - 1025",
            (long long)problem.numVectors);
    BITS_THROW_IF_NOT_FMT(
            problem.d >= 1 && problem.d <= 1 << 21,
            "d = %d is outside 1..2^21",
            problem.d);
    if (problem.numQueries == 0 || problem.numVectors == 0) {
        return;
    }
    BITS_THROW_IF_NOT_FMT(problem.queries.pieces, "queries.pieces = nullptr");
    BITS_THROW_IF_NOT_FMT(
            problem.queries.inverses, "queries.inverses = nullptr");
    BITS_THROW_IF_NOT_FMT(problem.vectors.pieces, "vectors.pieces = nullptr");
    BITS_THROW_IF_NOT_FMT(problem.vectors.facts, "vectors.facts = nullptr");
    if (isByL2(problem)) {
        BITS_THROW_IF_NOT_FMT(problem.vectors.norms, "vectors.norms = nullptr");
        BITS_THROW_IF_NOT_FMT(
                problem.vectors.normSteps, "vectors.normSteps = nullptr");
        BITS_THROW_IF_NOT_FMT(problem.queryNorms, "queryNorms = nullptr");
    }
}

inline void checkPassedLists(const PassedLists& passed) {
    BITS_THROW_IF_NOT_FMT(passed.limits, "passed.limits = nullptr");
    BITS_THROW_IF_NOT_FMT(
            passed.counts || passed.bits, "passed.counts = nullptr");
    BITS_THROW_IF_NOT_FMT(
            passed.columns || passed.capacity == 0 || passed.bits ||
                    passed.products,
            "passed.columns = nullptr");
}

inline void checkTensorScanKernel(
        TensorScanKernel kernel,
        const DeviceTraits& device) {
    BITS_THROW_IF_NOT_FMT(
            hasTensorScan(kernel, device),
            "kernel = %d is not in this build, or not for compute capability "
            "%d.%d",
            int(kernel),
            device.computeCapability / 10,
            device.computeCapability % 10);
}

} // namespace faiss_bits
