#include "kernels/cpu/Setup.h"

#include <omp.h>

#include <algorithm>
#include <cmath>

#include "kernels/common/Error.h"
#include "kernels/cpu/KernelTable.h"
#include "kernels/cpu/Targets.h"

namespace faiss_bits::cpu {

namespace {

template <class T>
KernelMetric kernelMetricOf(Metric metric, T metricArg) {
    switch (metric) {
        case Metric::L2:
            return KernelMetric::L2;
        case Metric::InnerProduct:
            return KernelMetric::Product;
        case Metric::Cosine:
            return KernelMetric::Cosine;
        case Metric::L1:
            return KernelMetric::L1;
        case Metric::Linf:
            return KernelMetric::Linf;
        case Metric::Lp:
            BITS_THROW_IF_NOT_FMT(
                    metricArg > 0 && std::isfinite(metricArg),
                    "metricArg = %g is not a finite p > 0",
                    double(metricArg));
            return metricArg == 1    ? KernelMetric::L1
                    : metricArg == 2 ? KernelMetric::Squares
                                     : KernelMetric::Power;
        case Metric::Canberra:
            return KernelMetric::Canberra;
        case Metric::BrayCurtis:
            return KernelMetric::BrayCurtis;
        case Metric::JensenShannon:
            return KernelMetric::JensenShannon;
        case Metric::Jaccard:
            return KernelMetric::Jaccard;
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
Setup<T> checkProblem(const Problem<T>& p, bool shapeOnly) {
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
    BITS_THROW_IF_NOT_FMT(
            p.mode <= SearchMode::Fast,
            "mode = %d is none of Certified, Plain and Fast",
            int(p.mode));
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
            variant >= int(Variant::Auto) && variant <= int(Variant::Direct),
            "choice.variant = %d is not a variant",
            variant);
    const int arithmetic = int(p.choice.arithmetic);
    BITS_THROW_IF_NOT_FMT(
            arithmetic >= int(Arithmetic::Auto) &&
                    arithmetic <= int(Arithmetic::Doubles),
            "choice.arithmetic = %d is no arithmetic",
            arithmetic);
    Setup<T> setup;
    setup.metric = kernelMetricOf(p.metric, p.metricArg);
    setup.similarity = isSimilarity(p.metric);
    setup.power = p.metricArg;
    setup.depth = p.d;
    setup.queries = {
            p.queries, p.queryStride ? p.queryStride : p.d, p.queryIds};
    setup.vectors = {
            p.vectors, p.vectorStride ? p.vectorStride : p.d, p.vectorIds};
    setup.numQueries = p.numQueries;
    setup.numVectors = p.numVectors;
    setup.team = p.threads ? p.threads : omp_get_max_threads();
    setup.target = targetOf(p.choice.target);
    setup.common = commonKernelsFor<T>(setup.target);
    setup.kernels = metricKernelsFor<T>(setup.metric, setup.target);
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

template Setup<float> checkProblem(const Problem<float>&, bool);
template Setup<double> checkProblem(const Problem<double>&, bool);

} // namespace faiss_bits::cpu
