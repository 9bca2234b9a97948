/// Fused scans on tensor cores: L2, inner products and cosine. What they take
/// is in TensorTakes.cpp.

#include <algorithm>

#include "kernels/knn/RowFacts.h"
#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/knn/fused/FusedMethod.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/fused/tensor/AllowedVectors.h"
#include "kernels/knn/fused/tensor/PassAtOnce.h"
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
            LimitsOf limits,
            WorkspaceSlices& slices)
            : problem_(problem),
              tileQueries_(tileQueries),
              vectors_(takeImage(problem, slices)),
              allowed_(
                      problem,
                      vectors_,
                      limits == LimitsOf::SecondStrips,
                      slices) {
        queryImage_ = slices.take<uint8_t>(
                tensorImageBytes(tileQueries, problem.d, true));
        queryNorms_ = slices.take<float>(tileQueries);
        if (problem.metric == Metric::Cosine) {
            queryInverses_ = slices.take<float>(tileQueries);
            if (!problem.searchImage && !problem.vectorFacts) {
                vectorInverses_ = slices.take<float>(problem.numVectors);
            }
        }
        if (problem.metric == Metric::InnerProduct) {
            centerProducts_ = slices.take<CenterProduct>(tileQueries);
        }
        if (limits == LimitsOf::Sample) {
            rounded_ = slices.take<uint16_t>(size_t(tileQueries) * problem.d);
        }
        if (takesBytes(problem)) {
            byteQueries_ = slices.take<uint8_t>(
                    byteImageBytes(tileQueries, problem.d, true));
            byteLimits_ = slices.take<float>(tileQueries);
            byteCosts_ = slices.take<uint32_t>(
                    ByteImageLayout(tileQueries, problem.d).capacity /
                    ByteSearch::kTileQueries);
        }
    }

    SpreadRows rows() const override {
        return vectors_.rows;
    }

    const float* inverses() const override {
        return queryImage().inverses;
    }

    Sample begin(float*, idx_t, cudaStream_t stream) override {
        if (!problem_.searchImage) {
            makeImage(stream);
        }
        allowed_.begin(stream);
        return {vectors_.sample, vectors_.sampleNorms};
    }

    const void* enter(CertifiedParams& params, cudaStream_t stream) override {
        const FlatKnnProblem& p = problem_;
        bytes_ = {};
        TensorImageProblem image;
        image.rows = params.queries;
        image.n = params.rows;
        image.d = p.d;
        image.areQueries = true;
        if (p.metric == Metric::InnerProduct) {
            image.productCenter = vectors_.center;
            image.outProducts = centerProducts_;
        } else {
            image.center = vectors_.center;
            image.vectorFacts = vectors_.image.facts;
        }
        if (p.metric == Metric::Cosine) {
            runRowFacts(
                    RowFacts::InverseNorm,
                    params.queries,
                    DataType::Float32,
                    true,
                    params.rows,
                    p.d,
                    queryInverses_,
                    stream);
            image.inverseNorms = queryInverses_;
        }
        image.image = queryImage();
        image.outNorms = queryNorms_;
        image.outRounded = rounded_;
        runTensorImage(image, stream);
        setFacts(params);
        return rounded_;
    }

    void passAtOnce(
            CertifiedParams& params,
            uint32_t rank,
            const PassedWords& words,
            float* complete,
            cudaStream_t stream) override {
#ifdef FAISS_BITS_WGMMA
        PassAtOnceProblem pass;
        if (problem_.numVectors > kMostVectorsOfBlock) {
            enter(params, stream);
            pass.queryImage = queryImage();
        }
        setFacts(params);
        pass.queries = params.queries;
        pass.numQueries = params.rows;
        pass.numVectors = problem_.numVectors;
        pass.d = problem_.d;
        pass.center = vectors_.center;
        pass.vectors = vectors_.image;
        pass.rank = rank;
        pass.queryNorms = queryNorms_;
        pass.queryResiduals = queryImage().residuals;
        pass.complete = complete;
        pass.bits = words.bits;
        pass.words = words.perRow;
        runPassAtOnce(pass, problem_.device, stream);
#else
        FusedScan::passAtOnce(params, rank, words, complete, stream);
#endif
    }

    ByteSearch takeBytes(idx_t queries, cudaStream_t stream) override {
        if (!takesBytes(problem_)) {
            return bytes_;
        }
        const idx_t ofOne = byteVectorsOfOne(problem_.d);
        const idx_t scanned = scannedVectors(problem_);
        // Of few queries two kernels that find nothing to do count.
        constexpr idx_t kMany = 2048;
        if (queries < kMany &&
            passing_ * kByteShare * double(ofOne) > double(scanned)) {
            return bytes_;
        }
        const ByteImage image = byteQueries();
        runByteQueries(
                queryImage(),
                queries,
                problem_.d,
                vectors_.bytes.facts,
                image,
                byteCosts_,
                stream);
        bytes_.facts = vectors_.bytes.facts;
        bytes_.residuals = image.residuals;
        bytes_.limits = byteLimits_;
        bytes_.costs = byteCosts_;
        bytes_.mostCost = uint32_t(std::min<idx_t>(
                ByteSearch::kTileQueries * scanned / (ofOne * kSecondShare),
                ByteSearch::kFar - 1));
        allowed_.describe(bytes_);
        return bytes_;
    }

    void expectPassing(double passing) override {
        passing_ = passing;
    }

    void run(
            const CertifiedParams& params,
            const PassedLists& lists,
            cudaStream_t stream) override {
        TensorScanProblem scan = scanOf(lists, params.rows);
        scan.passing = passing_;
        if (allowed_.isListed()) {
            allowed_.copyListed(bytes_, params.rows, stream);
            scan.numVectors = problem_.numAllowed;
            scan.vectors = allowed_.listed();
        } else {
            scan.numVectors = problem_.numVectors;
            scan.vectors = vectors_.image;
            scan.rows = vectors_.rows;
            scan.allowedBits = problem_.allowedBits;
        }
        if (bytes_.facts) {
            scan.tileCosts = bytes_.costs;
            scan.mostTileCost = bytes_.mostCost;
            TensorScanProblem ofBytes = scan;
            ofBytes.passed.limits = bytes_.limits;
            runByteScan(
                    ofBytes,
                    byteQueries(),
                    allowed_.isListed() ? allowed_.listedBytes()
                                        : vectors_.bytes,
                    problem_.device,
                    stream);
        }
        runTensorScan(scan, problem_.device, stream);
    }

    const int32_t* runSecond(
            const PassedLists& lists,
            idx_t queries,
            const uint32_t* allowedBits,
            cudaStream_t stream) override {
        TensorScanProblem scan = scanOf(lists, queries);
        scan.allowedBits = allowedBits;
        scan.numVectors = vectors_.secondSamples;
        scan.vectors = vectors_.second;
        runTensorScan(scan, problem_.device, stream);
        return vectors_.secondIds;
    }

    void runStrips(
            const StripPlan& plan,
            bool ofSecond,
            float* keys,
            idx_t queries,
            cudaStream_t stream) override {
        TensorScanProblem scan = scanOf({}, queries);
        scan.numVectors =
                ofSecond ? vectors_.secondSamples : problem_.numVectors;
        scan.vectors = ofSecond ? allowed_.secondSample() : vectors_.image;
        runStripScan(scan, plan, keys, problem_.device, stream);
    }

    void runNearest(
            const NearestStrips& nearest,
            idx_t queries,
            cudaStream_t stream) override {
        TensorScanProblem scan = scanOf({}, queries);
        scan.numVectors = problem_.numVectors;
        scan.vectors = vectors_.image;
        runNearestScan(scan, nearest, problem_.device, stream);
    }

   private:
    /// What the bound of the scan depends on.
    void setFacts(CertifiedParams& params) const {
        params.imageFacts = vectors_.image.facts;
        params.queryResiduals = queryImage().residuals;
        params.queryNorms = queryNorms_;
        params.centerProducts = centerProducts_;
        params.listedIds = allowed_.isListed() ? problem_.allowedIds : nullptr;
    }

    ByteImage byteQueries() const {
        return byteImageAt(byteQueries_, tileQueries_, problem_.d, true);
    }

    void makeImage(cudaStream_t stream) const {
        FlatKnnProblem p = problem_;
        if (vectorInverses_) {
            runRowFacts(
                    RowFacts::InverseNorm,
                    p.vectors,
                    p.dataType,
                    true,
                    p.numVectors,
                    p.d,
                    vectorInverses_,
                    stream);
            p.vectorFacts = vectorInverses_;
        }
        runSearchImage(p, vectors_, stream);
    }

    /// But for its vectors.
    TensorScanProblem scanOf(const PassedLists& lists, idx_t queries) const {
        TensorScanProblem scan;
        scan.metric = problem_.metric;
        scan.numQueries = queries;
        scan.d = problem_.d;
        scan.queries = queryImage();
        scan.queryNorms = queryNorms_;
        scan.passed = lists;
        return scan;
    }

    TensorImage queryImage() const {
        return tensorImageAt(queryImage_, tileQueries_, problem_.d, true);
    }

    const FlatKnnProblem& problem_;
    const idx_t tileQueries_;
    SearchImage vectors_;
    AllowedVectors allowed_;
    void* queryImage_ = nullptr;
    float* queryNorms_ = nullptr;
    float* queryInverses_ = nullptr;          // [tileQueries]: cosine
    float* vectorInverses_ = nullptr;         // [n]: cosine
    CenterProduct* centerProducts_ = nullptr; // [tileQueries]: inner products
    uint16_t* rounded_ = nullptr; // [tileQueries, d]: meet the sample
    double passing_ = 0;
    void* byteQueries_ = nullptr;
    float* byteLimits_ = nullptr; // [tileQueries]
    uint32_t* byteCosts_ = nullptr;
    ByteSearch bytes_; // of the queries that enter() had
};

bool takes(const FlatKnnProblem& p) {
    return canUseSearchImage(p) && searchImageHelps(p) &&
            (batchOf(p) > kFewQueries || p.searchImage);
}

/// Of few queries a second scan is all latency.
idx_t secondSamples(const FlatKnnProblem& p) {
    return batchOf(p) > kFewQueries ? secondSamplesOf(p.numVectors) : 0;
}

ErrorBound bound(const FlatKnnProblem&) {
    ErrorBound bound;
    bound.ofImages = true;
    return bound;
}

std::unique_ptr<FusedScan> prepare(
        const FlatKnnProblem& problem,
        idx_t tileQueries,
        LimitsOf limits,
        WorkspaceSlices& slices) {
    return std::make_unique<TensorFusedScan>(
            problem, tileQueries, limits, slices);
}

} // namespace

const FusedMethod kTensorFusedMethod = {
        "tensor",
        takes,
        DataType::BFloat16,
        true,
        secondSamples,
        bound,
        prepare,
        true};

} // namespace faiss_bits
