/// Metrics that are no matrix product, component by component.

#include "kernels/common/Error.h"
#include "kernels/knn/DistanceMethod.h"
#include "kernels/knn/pairwise/PairwiseLaunch.h"
#include "kernels/knn/pairwise/PairwiseRows.h"

namespace faiss_bits {

namespace {

using Launch = void (*)(const PairwiseParams&, PairwiseShape, cudaStream_t);

Launch launchForPower(float p) {
    if (p == 0.5f) {
        return launchPairwise<PowerTerm<1>>;
    }
    if (p == 1.0f) {
        return launchPairwise<L1Term>;
    }
    if (p == 1.5f) {
        return launchPairwise<PowerTerm<3>>;
    }
    if (p == 2.0f) {
        return launchPairwise<PowerTerm<4>>;
    }
    if (p == 3.0f) {
        return launchPairwise<PowerTerm<6>>;
    }
    if (p == 4.0f) {
        return launchPairwise<PowerTerm<8>>;
    }
    return launchPairwise<AnyPowerTerm>;
}

Launch launchFor(const FlatKnnProblem& p) {
    switch (p.metric) {
        case Metric::L1:
            return launchPairwise<L1Term>;
        case Metric::Linf:
            return launchPairwise<LinfTerm>;
        case Metric::Lp:
            return launchForPower(p.metricArg);
        case Metric::L2: // of samples: samplingMethod()
            return launchForPower(2);
        case Metric::Canberra:
            return launchPairwise<CanberraTerm>;
        case Metric::BrayCurtis:
            return launchPairwise<BrayCurtisTerm>;
        case Metric::JensenShannon:
            return launchPairwise<JensenShannonTerm>;
        case Metric::Jaccard:
            return launchPairwise<JaccardTerm>;
        default:
            throw Error(formatMessage(
                    "metric = %d has no pairwise kernel", int(p.metric)));
    }
}

class PairwiseDistances : public TileDistances {
   public:
    PairwiseDistances(
            const FlatKnnProblem& problem,
            const RowFactsOf& facts,
            float* values,
            idx_t stride)
            : problem_(problem),
              facts_(facts),
              values_(values),
              stride_(stride),
              launch_(launchFor(problem)) {}

    void run(const DistanceTile& tile, cudaStream_t stream) const override {
        const PairwiseParams params =
                pairwiseParams(problem_, facts_, tile, values_, stride_);
        // The shape is a matter of speed: a pair has the same bits in all.
        launch_(params, pairwiseShape(tile.numQueries), stream);
    }

   private:
    const FlatKnnProblem& problem_;
    RowFactsOf facts_;
    float* values_;
    idx_t stride_;
    Launch launch_;
};

bool takes(const FlatKnnProblem& p) {
    return p.metric != Metric::L2 && p.metric != Metric::InnerProduct &&
            p.metric != Metric::Cosine;
}

ErrorBound bound(const FlatKnnProblem& p) {
    return errorBound(p.metric, p.metricArg, p.d);
}

std::unique_ptr<TileDistances> prepare(
        const FlatKnnProblem& problem,
        const MethodScratch& scratch,
        float* values,
        idx_t stride,
        cublasHandle_t) {
    return std::make_unique<PairwiseDistances>(
            problem, scratch.facts, values, stride);
}

} // namespace

const DistanceMethod kPairwiseMethod =
        {"pairwise", takes, false, bound, prepare};

} // namespace faiss_bits
