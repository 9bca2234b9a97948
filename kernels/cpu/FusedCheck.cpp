#include <omp.h>

#include <algorithm>
#include <cmath>

#include "kernels/common/Error.h"
#include "kernels/cpu/FusedSearch.h"

namespace faiss_bits {

namespace {

template <class T>
FusedKernelMetric kernelMetricOf(FusedMetric metric, T metricArg) {
    switch (metric) {
        case FusedMetric::L2:
            return FusedKernelMetric::L2;
        case FusedMetric::InnerProduct:
            return FusedKernelMetric::Product;
        case FusedMetric::Cosine:
            return FusedKernelMetric::Cosine;
        case FusedMetric::L1:
            return FusedKernelMetric::L1;
        case FusedMetric::Linf:
            return FusedKernelMetric::Linf;
        case FusedMetric::Lp:
            BITS_THROW_IF_NOT_FMT(
                    metricArg > 0 && std::isfinite(metricArg),
                    "metricArg = %g is not a finite p > 0",
                    double(metricArg));
            return metricArg == 1    ? FusedKernelMetric::L1
                    : metricArg == 2 ? FusedKernelMetric::Squares
                                     : FusedKernelMetric::Power;
    }
    throw Error(formatMessage("metric = %d is not known", int(metric)));
}

void checkIds(const char* name, const idx_t* ids, idx_t count) {
    for (idx_t i = 0; i < count; ++i) {
        BITS_THROW_IF_NOT_FMT(
                ids[i] >= 0,
                "%s[%lld] = %lld is negative",
                name,
                (long long)i,
                (long long)ids[i]);
    }
}

} // namespace

template <class T>
FusedSetup<T> checkFused(const FusedProblem<T>& p, bool shapeOnly) {
    BITS_THROW_IF_NOT_FMT(p.d >= 1, "d = %d is below 1", p.d);
    BITS_THROW_IF_NOT_FMT(
            p.numQueries >= 0,
            "numQueries = %lld is negative",
            (long long)p.numQueries);
    BITS_THROW_IF_NOT_FMT(
            p.numVectors >= 0 && p.numVectors <= INT32_MAX,
            "numVectors = %lld is outside 0 .. 2^31 - 1",
            (long long)p.numVectors);
    BITS_THROW_IF_NOT_FMT(
            p.queryStride == 0 || p.queryStride >= p.d,
            "queryStride = %lld is below d = %d",
            (long long)p.queryStride,
            p.d);
    BITS_THROW_IF_NOT_FMT(
            p.vectorStride == 0 || p.vectorStride >= p.d,
            "vectorStride = %lld is below d = %d",
            (long long)p.vectorStride,
            p.d);
    BITS_THROW_IF_NOT_FMT(
            p.threads >= 0, "threads = %d is negative", p.threads);
    const struct {
        const char* name;
        int value;
    } blocks[] = {
            {"choice.queryBlock", p.choice.queryBlock},
            {"choice.vectorBlock", p.choice.vectorBlock},
            {"choice.depthBlock", p.choice.depthBlock}};
    for (const auto& block : blocks) {
        BITS_THROW_IF_NOT_FMT(
                block.value >= 0,
                "%s = %d is negative",
                block.name,
                block.value);
    }
    const int variant = int(p.choice.variant);
    BITS_THROW_IF_NOT_FMT(
            variant >= int(FusedVariant::Auto) &&
                    variant <= int(FusedVariant::Direct),
            "choice.variant = %d is not a variant",
            variant);
    FusedSetup<T> setup;
    setup.metric = kernelMetricOf(p.metric, p.metricArg);
    setup.similarity = p.metric == FusedMetric::InnerProduct ||
            p.metric == FusedMetric::Cosine;
    setup.power = p.metricArg;
    setup.depth = p.d;
    setup.queries = {
            p.queries, p.queryStride ? p.queryStride : p.d, p.queryIds};
    setup.vectors = {
            p.vectors, p.vectorStride ? p.vectorStride : p.d, p.vectorIds};
    setup.numQueries = p.numQueries;
    setup.numVectors = p.numVectors;
    setup.team = p.threads ? p.threads : omp_get_max_threads();
    setup.target = fusedTargetOf(p.choice.target);
    setup.common = fusedCommonKernels<T>(setup.target);
    setup.kernels = fusedMetricKernels<T>(setup.metric, setup.target);
    setup.interrupt = &p.interrupt;
    if (shapeOnly) {
        return setup;
    }
    BITS_THROW_IF_NOT_FMT(
            p.queries || p.numQueries == 0,
            "queries is null, numQueries = %lld",
            (long long)p.numQueries);
    BITS_THROW_IF_NOT_FMT(
            p.vectors || p.numVectors == 0,
            "vectors is null, numVectors = %lld",
            (long long)p.numVectors);
    if (p.queryIds) {
        checkIds("queryIds", p.queryIds, p.numQueries);
    }
    if (p.vectorIds) {
        checkIds("vectorIds", p.vectorIds, p.numVectors);
        const idx_t* end = p.vectorIds + p.numVectors;
        if (!std::is_sorted(p.vectorIds, end)) {
            setup.sortedIds.assign(p.vectorIds, end);
            std::sort(setup.sortedIds.begin(), setup.sortedIds.end());
            setup.vectors.ids = setup.sortedIds.data();
        }
    }
    return setup;
}

template FusedSetup<float> checkFused(const FusedProblem<float>&, bool);
template FusedSetup<double> checkFused(const FusedProblem<double>&, bool);

} // namespace faiss_bits
