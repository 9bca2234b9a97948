/// Fused scans component by component: every metric, where no tensor cores do
/// it better.

#include <algorithm>

#include "kernels/knn/RowFacts.h"
#include "kernels/knn/fused/FusedMethod.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/fused/SampleKernels.h"
#include "kernels/knn/fused/pairwise/FusedPairwise.h"

namespace faiss_bits {

namespace {

/// Beyond so many components, products of matrices take less time.
constexpr int kMostProductDims = 16;

class PairwiseFusedScan : public FusedScan {
   public:
    PairwiseFusedScan(
            const FlatKnnProblem& problem,
            idx_t tileQueries,
            WorkspaceSlices& slices)
            : problem_(problem) {
        if (rowFactsOf(problem.metric) != RowFacts::None) {
            if (!problem.vectorFacts) {
                vectorFacts_ = slices.take<float>(problem.numVectors);
            }
            queryFacts_ = slices.take<float>(tileQueries);
        }
    }

    Sample begin(float* room, idx_t samples, cudaStream_t stream) override {
        const FlatKnnProblem& p = problem_;
        if (vectorFacts_) {
            runRowFacts(
                    rowFactsOf(p.metric),
                    p.vectors,
                    p.dataType,
                    p.vectorsRowMajor,
                    p.numVectors,
                    p.d,
                    vectorFacts_,
                    stream);
        }
        if (samples > 0) {
            runGatherSample(p, samples, room, stream);
        }
        return {room, nullptr};
    }

    void run(
            const CertifiedParams& params,
            const PassedLists& lists,
            cudaStream_t stream) override {
        const FlatKnnProblem& p = problem_;
        if (queryFacts_) {
            runRowFacts(
                    rowFactsOf(p.metric),
                    params.queries,
                    DataType::Float32,
                    true,
                    params.rows,
                    p.d,
                    queryFacts_,
                    stream);
        }
        FusedPairwiseProblem scan;
        scan.metric = p.metric;
        scan.metricArg = p.metricArg;
        scan.d = p.d;
        scan.vectors = p.vectors;
        scan.vectorType = p.dataType;
        scan.vectorsRowMajor = p.vectorsRowMajor;
        scan.numVectors = p.numVectors;
        scan.queries = params.queries;
        scan.numQueries = params.rows;
        scan.vectorFacts = vectorFacts_ ? vectorFacts_ : p.vectorFacts;
        scan.queryFacts = queryFacts_;
        scan.allowedBits = p.allowedBits;
        scan.passed = lists;
        scan.device = p.device;
        runFusedPairwise(scan, stream);
    }

   private:
    const FlatKnnProblem& problem_;
    float* vectorFacts_ = nullptr;
    float* queryFacts_ = nullptr;
};

bool takes(const FlatKnnProblem& p) {
    const bool isProduct = p.metric == Metric::L2 ||
            p.metric == Metric::InnerProduct || p.metric == Metric::Cosine;
    return !isProduct || p.d <= kMostProductDims ||
            std::max(p.batchQueries, p.numQueries) <= kFewQueries;
}

ErrorBound bound(const FlatKnnProblem& p) {
    return fusedPairwiseBound(p.metric, p.metricArg, p.d);
}

std::unique_ptr<FusedScan> prepare(
        const FlatKnnProblem& problem,
        idx_t tileQueries,
        LimitsOf,
        WorkspaceSlices& slices) {
    return std::make_unique<PairwiseFusedScan>(problem, tileQueries, slices);
}

} // namespace

const FusedMethod kPairwiseFusedMethod =
        {"pairwise", takes, DataType::Float32, false, nullptr, bound, prepare};

} // namespace faiss_bits
