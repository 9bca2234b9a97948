#include "kernels/knn/fused/pairwise/FusedPairwise.h"

#include "kernels/common/Error.h"
#include "kernels/knn/fused/few_queries/FewQueriesScanParams.h"
#include "kernels/knn/fused/pairwise/FusedPairwiseLaunch.h"
#include "kernels/knn/pairwise/PairwiseRows.h"

namespace faiss_bits {

namespace {

struct Launches {
    void (*smallDims)(const FusedPairwiseParams&, SmallDimsShape, cudaStream_t);
    void (*fewQueries)(const FusedPairwiseParams&, cudaStream_t);
    void (*tiles)(const FusedPairwiseParams&, bool, cudaStream_t);
};

template <class Term>
constexpr Launches launchesOf() {
    return {launchSmallDims<Term>,
            launchFewQueriesScan<Term>,
            launchTileScan<Term>};
}

#ifndef FAISS_BITS_PRODUCTS_ONLY
Launches launchesForPower(float p) {
    if (p == 0.5f) {
        return launchesOf<PowerTerm<1>>();
    }
    if (p == 1.0f) {
        return launchesOf<L1Term>();
    }
    if (p == 1.5f) {
        return launchesOf<PowerTerm<3>>();
    }
    if (p == 2.0f) {
        return launchesOf<PowerTerm<4>>();
    }
    if (p == 3.0f) {
        return launchesOf<PowerTerm<6>>();
    }
    if (p == 4.0f) {
        return launchesOf<PowerTerm<8>>();
    }
    return launchesOf<AnyPowerTerm>();
}
#endif

Launches launchesFor(Metric metric, [[maybe_unused]] float p) {
    switch (metric) {
        case Metric::L2:
            return launchesOf<PowerTerm<4>>();
        case Metric::InnerProduct:
            return launchesOf<ProductTerm>();
#ifdef FAISS_BITS_PRODUCTS_ONLY
        default:
            break;
#else
        case Metric::L1:
            return launchesOf<L1Term>();
        case Metric::Linf:
            return launchesOf<LinfTerm>();
        case Metric::Lp:
            return launchesForPower(p);
        case Metric::Cosine:
            return launchesOf<CosineTerm>();
        case Metric::Canberra:
            return launchesOf<CanberraTerm>();
        case Metric::BrayCurtis:
            return launchesOf<BrayCurtisTerm>();
        case Metric::JensenShannon:
            return launchesOf<JensenShannonTerm>();
        case Metric::Jaccard:
            return launchesOf<JaccardTerm>();
#endif
    }
    throw Error(formatMessage("metric = %d is unknown", int(metric)));
}

void checkProblem(const FusedPairwiseProblem& p) {
    BITS_THROW_IF_NOT_FMT(p.d >= 1, "d = %d is below 1", p.d);
    BITS_THROW_IF_NOT_FMT(
            p.numVectors >= 0 && p.numVectors <= INT32_MAX,
            "numVectors = %lld is not in [0, 2^31)",
            (long long)p.numVectors);
    BITS_THROW_IF_NOT_FMT(
            p.numQueries >= 0 && p.numQueries <= INT32_MAX,
            "numQueries = %lld is not in [0, 2^31)",
            (long long)p.numQueries);
    BITS_THROW_IF_NOT_FMT(
            p.metric != Metric::Lp || (p.metricArg > 0 && p.metricArg < 1e38f),
            "metricArg = %g is no power for Lp",
            double(p.metricArg));
}

void checkPointers(const FusedPairwiseProblem& p) {
    const bool facts = rowFactsOf(p.metric) != RowFacts::None;
    const struct {
        const char* name;
        const void* value;
        bool wanted;
    } pointers[] = {
            {"vectors", p.vectors, true},
            {"queries", p.queries, true},
            {"vectorFacts", p.vectorFacts, facts},
            {"queryFacts", p.queryFacts, facts},
            {"passed.limits", p.passed.limits, true},
            {"passed.counts", p.passed.counts, !p.passed.bits},
            {"passed.columns", p.passed.columns, p.passed.capacity > 0}};
    for (const auto& one : pointers) {
        BITS_THROW_IF_NOT_FMT(
                one.value || !one.wanted, "%s = nullptr", one.name);
    }
}

/// Of the two shapes with queries in lanes the one with less to do: tiles of 64
/// take longer for a query than tiles of 256, but leave fewer lanes idle.
SmallDimsShape smallDimsShape(idx_t queries, int d) {
    if (queries <= kMaxFewQueriesScan) {
        return SmallDimsShape::VectorsInLanes;
    }
    const idx_t many = d <= 8 ? 256 : 128;
    const auto padded = [&](idx_t tile) {
        return (queries + tile - 1) / tile * tile;
    };
    return 5 * padded(64) < 4 * padded(many) ? SmallDimsShape::SomeQueries
                                             : SmallDimsShape::ManyQueries;
}

} // namespace

ErrorBound fusedPairwiseBound(
        Metric metric,
        float metricArg,
        int d,
        double vectorSum,
        double querySum) {
    if (metric != Metric::L2 && metric != Metric::InnerProduct) {
        return errorBound(metric, metricArg, d, vectorSum, querySum);
    }
    // As kernels/knn/few_queries: sums of fused squares of differences, or of
    // products, in some order.
    ErrorBound bound;
    const double error = errorOfRoundings(d + 4.0, kFloat32Unit);
    bound.ofProducts = metric == Metric::InnerProduct;
    (bound.ofProducts ? bound.ofNorms : bound.relative) = error;
    bound.absolute = (d + 8.0) * 0x1p-124;
    return bound;
}

void runFusedPairwise(const FusedPairwiseProblem& p, cudaStream_t stream) {
    checkProblem(p);
    const Launches launches = launchesFor(p.metric, p.metricArg);
    if (p.numVectors == 0 || p.numQueries == 0) {
        return;
    }
    checkPointers(p);
    FusedPairwiseParams params;
    params.pairs.vectors = pairwiseRows(
            p.vectors,
            p.vectorType,
            p.vectorsRowMajor,
            p.numVectors,
            p.d,
            p.vectorFacts);
    params.pairs.queries = pairwiseRows(
            p.queries,
            p.queryType,
            p.queriesRowMajor,
            p.numQueries,
            p.d,
            p.queryFacts);
    params.pairs.d = p.d;
    params.pairs.power = p.metricArg;
    params.passed = p.passed;
    params.allowedBits = p.allowedBits;
    params.multiprocessors = p.device.multiprocessors;

    const bool few = p.numQueries <= kMaxFewQueriesScan;
    const bool logs = p.metric == Metric::JensenShannon;
    // In few dimensions the sums of many queries over lanes take longer than
    // vectors that are read by one lane each.
    const bool byLanes = p.d > kMostSmallDims || (p.d > 8 && p.numQueries <= 4);
    if (few && byLanes && p.vectorsRowMajor &&
        fewQueriesScanBytes(int(p.numQueries), p.d, logs) <=
                kMaxFewQueriesScanBytes) {
        launches.fewQueries(params, stream);
    } else if (p.d <= kMostSmallDims) {
        launches.smallDims(params, smallDimsShape(p.numQueries, p.d), stream);
    } else {
        launches.tiles(params, p.numQueries > kMostQueriesBySixteen, stream);
    }
}

} // namespace faiss_bits
