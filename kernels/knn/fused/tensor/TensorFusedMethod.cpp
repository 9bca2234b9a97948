/// Fused scans on tensor cores: L2 and inner products of many queries.

#include <algorithm>

#include "kernels/knn/Norms.h"
#include "kernels/knn/certified/QueryKernels.h"
#include "kernels/knn/fused/FusedMethod.h"
#include "kernels/knn/fused/tensor/TensorScan.h"

namespace faiss_bits {

namespace {

/// Up to so many, reading the vectors takes as long whatever is computed.
constexpr idx_t kFewQueries = 16;

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
        if (!p.vectorNorms) {
            vectorNorms_ = slices.take<float>(p.numVectors);
        }
        if (!p.greatestNorm || !p.vectorNorms) {
            greatestNorm_ = slices.take<float>(1);
        }
        greatest_ = slices.take<float>(1);
        if (p.metric == Metric::L2) {
            queryNorms_ = slices.take<float>(tileQueries);
        }
    }

    void begin(cudaStream_t stream) override {
        const FlatKnnProblem& p = problem_;
        const float* norms = p.vectorNorms;
        if (!norms) {
            runSquaredNorms(
                    p.vectors,
                    p.dataType,
                    true,
                    p.numVectors,
                    p.d,
                    vectorNorms_,
                    stream);
            norms = vectorNorms_;
        }
        const float* greatestNorm = p.greatestNorm;
        if (greatestNorm_) {
            runGreatest(norms, p.numVectors, greatestNorm_, stream);
            greatestNorm = greatestNorm_;
        }
        // No component is greater than the norm of its vector.
        runRoot(greatestNorm, greatest_, stream);
        TensorImageProblem image;
        image.rows = p.vectors;
        image.type = p.dataType;
        image.n = p.numVectors;
        image.d = p.d;
        image.norms = p.metric == Metric::L2 ? norms : nullptr;
        image.greatest = greatest_;
        image.image = tensorImageAt(vectorImage_, p.numVectors, p.d, false);
        runTensorImage(image, stream);
    }

    void enter(CertifiedParams& params, cudaStream_t stream) override {
        const FlatKnnProblem& p = problem_;
        TensorImageProblem image;
        image.rows = params.queries;
        image.n = params.rows;
        image.d = p.d;
        image.areQueries = true;
        image.image = tensorImageAt(queryImage_, tileQueries_, p.d, true);
        runTensorImage(image, stream);
        if (queryNorms_) {
            runSquaredNorms(
                    params.queries,
                    DataType::Float32,
                    true,
                    params.rows,
                    p.d,
                    queryNorms_,
                    stream);
        }
        params.imageResidual =
                &tensorImageAt(vectorImage_, p.numVectors, p.d, false)
                         .facts->residual;
        params.queryResiduals = image.image.residuals;
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
    float* vectorNorms_ = nullptr;
    float* greatestNorm_ = nullptr;
    float* greatest_ = nullptr;
    float* queryNorms_ = nullptr;
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

const FusedMethod kTensorFusedMethod = {"tensor", takes, bound, prepare};

} // namespace faiss_bits
