#include "faiss_bits/flat/DistanceArguments.h"

#include <limits>

#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/FaissCompat.h"
#include "kernels/knn/parts/PartsKnn.h"

namespace faiss_bits::gpu::detail {

namespace {

DataType dataTypeOf(faiss::gpu::DistanceDataType type) {
    if (type == faiss::gpu::DistanceDataType::F32) {
        return DataType::Float32;
    }
    if (type == faiss::gpu::DistanceDataType::F16) {
        return DataType::Float16;
    }
    FAISS_THROW_IF_NOT_FMT(
            isBFloat16(type), "vectorType = %d is not supported", int(type));
    return DataType::BFloat16;
}

/// More than 2^31 - 1 are searched part by part.
idx_t mostVectors(const faiss::gpu::GpuDistanceParams& args) {
    const bool inParts = args.k != -1 && args.vectorsRowMajor &&
            args.outIndicesType == faiss::gpu::IndicesDataType::I64;
    return inParts ? kMostVectors : std::numeric_limits<int>::max();
}

} // namespace

FlatKnnProblem shapeOf(
        const faiss::gpu::GpuDistanceParams& args,
        Metric metric) {
    FlatKnnProblem problem;
    problem.metric = metric;
    problem.metricArg = requireMetricArg(metric, "metricArg", args.metricArg);
    requirePositive(args.dims, "dims");
    const idx_t n = args.numVectors;
    const idx_t most = mostVectors(args);
    requireWithin(n, 0, most, "numVectors");
    requireCount(args.numQueries, "numQueries");
    FAISS_THROW_IF_NOT_FMT(
            args.vectorType == args.queryType,
            "vectorType = %d and queryType = %d differ; they must be the same",
            int(args.vectorType),
            int(args.queryType));
    requireNoMissingCuvs(args, "use_cuvs");
    problem.dataType = dataTypeOf(args.vectorType);
    problem.numVectors = args.numVectors;
    problem.d = args.dims;
    problem.vectorsRowMajor = args.vectorsRowMajor;
    problem.queriesRowMajor = args.queriesRowMajor;
    return problem;
}

VectorsOnDevice::VectorsOnDevice(
        const GpuContext& context,
        const faiss::gpu::GpuDistanceParams& args,
        FlatKnnProblem& problem) {
    if (problem.numVectors == 0) {
        return;
    }
    if (context.arraysAreOnDevice) {
        vectors.emplace(args.vectors);
    } else {
        vectors.emplace(
                context,
                "vectors",
                args.vectors,
                sizeOf(problem.dataType) * problem.d * problem.numVectors);
    }
    problem.vectors = vectors->data();
    if (args.vectorNorms && problem.metric == Metric::L2) {
        // The vectors are being copied if this one fails.
        ScopedWait guard({context.stream});
        norms.emplace(
                context,
                "vectorNorms",
                args.vectorNorms,
                sizeof(float) * problem.numVectors);
        guard.dismiss();
        problem.vectorNorms = static_cast<const float*>(norms->data());
    }
}

} // namespace faiss_bits::gpu::detail
