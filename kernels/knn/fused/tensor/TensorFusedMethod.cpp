/// Fused scans on tensor cores: L2 and inner products of many queries.

#include <algorithm>

#include "kernels/knn/Norms.h"
#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/knn/fused/FusedMethod.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/fused/SampleKernels.h"
#include "kernels/knn/fused/tensor/SearchImage.h"
#include "kernels/knn/fused/tensor/TensorScan.h"

namespace faiss_bits {

namespace {

SearchImage takeImage(const FlatKnnProblem& p, WorkspaceSlices& slices) {
    if (!p.searchImage) {
        return SearchImage(p, slices);
    }
    WorkspaceSlices kept(
            Workspace{const_cast<void*>(p.searchImage), searchImageBytes(p)});
    return SearchImage(p, kept);
}

class TensorFusedScan : public FusedScan {
   public:
    TensorFusedScan(
            const FlatKnnProblem& problem,
            idx_t tileQueries,
            WorkspaceSlices& slices)
            : problem_(problem),
              tileQueries_(tileQueries),
              vectors_(takeImage(problem, slices)) {
        queryImage_ = slices.take<uint8_t>(
                tensorImageBytes(tileQueries, problem.d, true));
        queryNorms_ = slices.take<float>(tileQueries);
        if (problem.metric == Metric::L2) {
            centered_ = slices.take<float>(size_t(tileQueries) * problem.d);
        }
    }

    Sample begin(float*, idx_t, cudaStream_t stream) override {
        if (!problem_.searchImage) {
            runSearchImage(problem_, vectors_, stream);
        }
        return {vectors_.sample, vectors_.sampleNorms};
    }

    const float* enter(CertifiedParams& params, cudaStream_t stream) override {
        const FlatKnnProblem& p = problem_;
        const float* queries = params.queries;
        if (vectors_.center) {
            runSubtract(
                    queries,
                    params.rows,
                    p.d,
                    vectors_.center,
                    centered_,
                    stream);
            queries = centered_;
        }
        TensorImageProblem image;
        image.rows = queries;
        image.n = params.rows;
        image.d = p.d;
        image.areQueries = true;
        if (p.metric == Metric::L2) {
            image.vectorFacts = vectors_.image.facts;
        }
        image.image = queryImage();
        runTensorImage(image, stream);
        runSquaredNorms(
                queries,
                DataType::Float32,
                true,
                params.rows,
                p.d,
                queryNorms_,
                stream);
        params.imageResidual = &vectors_.image.facts->residual;
        params.imageNormError = &vectors_.image.facts->normError;
        params.queryResiduals = image.image.residuals;
        params.queryNorms = queryNorms_;
        return queries;
    }

    void run(
            const CertifiedParams& params,
            const PassedLists& lists,
            cudaStream_t stream) override {
        TensorScanProblem scan;
        scan.metric = problem_.metric;
        scan.numQueries = params.rows;
        scan.numVectors = problem_.numVectors;
        scan.d = problem_.d;
        scan.queries = queryImage();
        scan.vectors = vectors_.image;
        scan.queryNorms = queryNorms_;
        scan.allowedBits = problem_.allowedBits;
        scan.passed = lists;
        runTensorScan(scan, problem_.device, stream);
    }

   private:
    TensorImage queryImage() const {
        return tensorImageAt(queryImage_, tileQueries_, problem_.d, true);
    }

    const FlatKnnProblem& problem_;
    const idx_t tileQueries_;
    const SearchImage vectors_;
    void* queryImage_ = nullptr;
    float* queryNorms_ = nullptr;
    // L2: distances do not change where all are moved, and images lose less.
    float* centered_ = nullptr;
};

bool takes(const FlatKnnProblem& p) {
    return std::max(p.batchQueries, p.numQueries) > kFewQueries &&
            canUseSearchImage(p);
}

ErrorBound bound(const FlatKnnProblem& p) {
    // The rest is of the images: RowBound.
    ErrorBound bound;
    bound.ofProducts = p.metric == Metric::InnerProduct;
    return bound;
}

std::unique_ptr<FusedScan> prepare(
        const FlatKnnProblem& problem,
        idx_t tileQueries,
        WorkspaceSlices& slices) {
    return std::make_unique<TensorFusedScan>(problem, tileQueries, slices);
}

} // namespace

bool canUseSearchImage(const FlatKnnProblem& p) {
    return (p.metric == Metric::L2 || p.metric == Metric::InnerProduct) &&
            p.vectorsRowMajor &&
            hasTensorScan(TensorScanKernel::Auto, p.device);
}

const FusedMethod kTensorFusedMethod =
        {"tensor", takes, DataType::BFloat16, true, bound, prepare};

} // namespace faiss_bits
