/// Fused scans on tensor cores: L2 and inner products of many queries.

#include <algorithm>

#include "kernels/knn/Norms.h"
#include "kernels/knn/fused/FusedMethod.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/fused/SampleKernels.h"
#include "kernels/knn/fused/tensor/TensorScan.h"

namespace faiss_bits {

namespace {

class TensorFusedScan : public FusedScan {
   public:
    TensorFusedScan(
            const FlatKnnProblem& problem,
            idx_t tileQueries,
            WorkspaceSlices& slices)
            : problem_(problem), tileQueries_(tileQueries) {
        const FlatKnnProblem& p = problem;
        vectorImage_ =
                slices.take<uint8_t>(tensorImageBytes(p.numVectors, p.d, false));
        queryImage_ =
                slices.take<uint8_t>(tensorImageBytes(tileQueries, p.d, true));
        if (!p.greatestNorm) {
            greatest_ = slices.take<float>(1);
        }
        queryNorms_ = slices.take<float>(tileQueries);
        if (p.metric == Metric::L2) {
            center_ = slices.take<float>(p.d);
            centerScratch_ = slices.take<float>(2);
            centered_ = slices.take<float>(size_t(tileQueries) * p.d);
        }
    }

    void begin(float* sample, idx_t samples, cudaStream_t stream) override {
        const FlatKnnProblem& p = problem_;
        if (greatest_) {
            runGreatestComponent(
                    p.vectors,
                    p.dataType,
                    p.numVectors,
                    p.d,
                    false,
                    greatest_,
                    stream);
        }
        if (center_) {
            runCenter(sample, samples, p.d, centerScratch_, center_, stream);
            runSubtract(sample, samples, p.d, center_, sample, stream);
        }
        TensorImageProblem image;
        image.rows = p.vectors;
        image.type = p.dataType;
        image.n = p.numVectors;
        image.d = p.d;
        image.center = center_;
        image.greatest = greatest_;
        image.greatestNorm = p.greatestNorm;
        image.image = tensorImageAt(vectorImage_, p.numVectors, p.d, false);
        runTensorImage(image, stream);
    }

    const float* enter(CertifiedParams& params, cudaStream_t stream) override {
        const FlatKnnProblem& p = problem_;
        const float* queries = params.queries;
        if (center_) {
            runSubtract(
                    queries, params.rows, p.d, center_, centered_, stream);
            queries = centered_;
        }
        TensorImageProblem image;
        image.rows = queries;
        image.n = params.rows;
        image.d = p.d;
        image.areQueries = true;
        image.image = tensorImageAt(queryImage_, tileQueries_, p.d, true);
        runTensorImage(image, stream);
        runSquaredNorms(
                queries,
                DataType::Float32,
                true,
                params.rows,
                p.d,
                queryNorms_,
                stream);
        params.imageResidual =
                &tensorImageAt(vectorImage_, p.numVectors, p.d, false)
                         .facts->residual;
        params.queryResiduals = image.image.residuals;
        params.queryNorms = queryNorms_;
        return queries;
    }

    void run(
            const CertifiedParams& params,
            const PassedLists& lists,
            cudaStream_t stream) override {
        const FlatKnnProblem& p = problem_;
        TensorScanProblem scan;
        scan.metric = p.metric;
        scan.numQueries = params.rows;
        scan.numVectors = p.numVectors;
        scan.d = p.d;
        scan.queries = tensorImageAt(queryImage_, tileQueries_, p.d, true);
        scan.vectors = tensorImageAt(vectorImage_, p.numVectors, p.d, false);
        scan.queryNorms = queryNorms_;
        scan.allowedBits = p.allowedBits;
        scan.passed = lists;
        runTensorScan(scan, p.device, stream);
    }

   private:
    const FlatKnnProblem& problem_;
    const idx_t tileQueries_;
    void* vectorImage_ = nullptr;
    void* queryImage_ = nullptr;
    float* greatest_ = nullptr;
    float* queryNorms_ = nullptr;
    // L2: distances do not change where all are moved, and images lose less.
    float* center_ = nullptr;
    float* centerScratch_ = nullptr;
    float* centered_ = nullptr; // the queries
};

bool takes(const FlatKnnProblem& p) {
    return (p.metric == Metric::L2 || p.metric == Metric::InnerProduct) &&
            std::max(p.batchQueries, p.numQueries) > kFewQueries &&
            p.vectorsRowMajor &&
            hasTensorScan(TensorScanKernel::Auto, p.device);
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

const FusedMethod kTensorFusedMethod =
        {"tensor", takes, DataType::BFloat16, bound, prepare};

} // namespace faiss_bits
