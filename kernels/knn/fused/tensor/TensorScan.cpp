#include "kernels/knn/fused/tensor/TensorScan.h"

#include <algorithm>

#include "kernels/common/Error.h"
#include "kernels/knn/fused/tensor/MmaShape.h"
#include "kernels/knn/fused/tensor/TensorScanPlan.h"
#include "kernels/knn/fused/tensor/WgmmaShape.h"

namespace faiss_bits {

namespace {

void check(const TensorScanProblem& problem) {
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
    if (problem.metric == Metric::L2) {
        BITS_THROW_IF_NOT_FMT(problem.vectors.norms, "vectors.norms = nullptr");
        BITS_THROW_IF_NOT_FMT(
                problem.vectors.normSteps, "vectors.normSteps = nullptr");
        BITS_THROW_IF_NOT_FMT(problem.queryNorms, "queryNorms = nullptr");
    }
    BITS_THROW_IF_NOT_FMT(problem.passed.limits, "passed.limits = nullptr");
    BITS_THROW_IF_NOT_FMT(problem.passed.counts, "passed.counts = nullptr");
    BITS_THROW_IF_NOT_FMT(
            problem.passed.columns || problem.passed.capacity == 0,
            "passed.columns = nullptr");
}

} // namespace

bool hasTensorScan(TensorScanKernel kernel, const DeviceTraits& device) {
    switch (kernel) {
        case TensorScanKernel::Wgmma:
            return kHasWgmmaScan && device.computeCapability == 90;
        case TensorScanKernel::MmaSync:
            return device.computeCapability >= 80;
        default:
            return hasTensorScan(TensorScanKernel::MmaSync, device);
    }
}

void runTensorScan(
        const TensorScanProblem& problem,
        const DeviceTraits& device,
        cudaStream_t stream) {
    check(problem);
    BITS_THROW_IF_NOT_FMT(
            hasTensorScan(problem.kernel, device),
            "kernel = %d is not in this build, or not for compute capability "
            "%d.%d",
            int(problem.kernel),
            device.computeCapability / 10,
            device.computeCapability % 10);
    if (problem.numQueries == 0 || problem.numVectors == 0) {
        return;
    }
    const bool useWgmma = problem.kernel == TensorScanKernel::Wgmma ||
            (problem.kernel == TensorScanKernel::Auto &&
             hasTensorScan(TensorScanKernel::Wgmma, device));
    const TensorImageLayout image(problem.numVectors, problem.d);
    const bool isL2 = problem.metric == Metric::L2;

    TensorScanParams params{};
    params.vectors = static_cast<const uint8_t*>(problem.vectors.pieces);
    params.norms = problem.vectors.norms;
    params.normSteps = static_cast<const uint8_t*>(problem.vectors.normSteps);
    params.facts = problem.vectors.facts;
    params.queries = static_cast<const uint8_t*>(problem.queries.pieces);
    params.inverses = problem.queries.inverses;
    params.queryNorms = problem.queryNorms;
    params.allowedBits = problem.allowedBits;
    params.passed = problem.passed;
    params.numQueries = uint32_t(problem.numQueries);
    params.numVectors = uint32_t(problem.numVectors);
    params.slabs = image.slabs;
    params.lastSteps = image.lastSteps;
    if (useWgmma) {
        const WgmmaShape shape = wgmmaShapeFor(image);
        planChunks(
                params,
                {shape.queries(), shape.unit(), image.rowBytes * image.slabs},
                device.multiprocessors);
#ifdef FAISS_BITS_WGMMA
        launchWgmmaScan(params, image, isL2, device, stream);
#endif
    } else {
        planChunks(
                params,
                {kMmaQueries, kMmaVectors, image.rowBytes * image.slabs},
                device.multiprocessors * mmaBlocks(image, device));
        launchMmaScan(params, image, isL2, device, stream);
    }
}

} // namespace faiss_bits
