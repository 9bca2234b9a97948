#include <algorithm>
#include <cstdint>

#include "kernels/common/CudaCheck.h"
#include "kernels/knn/fused/tensor/QueryImage.h"
#include "kernels/knn/fused/tensor/TensorImageKernel.cuh"
#include "kernels/knn/fused/tensor/VectorImage.h"

namespace faiss_bits {

namespace {

unsigned blocksFor(idx_t threads) {
    return unsigned(std::clamp<idx_t>(
            (threads + kImageThreads - 1) / kImageThreads, 1, idx_t(1) << 20));
}

/// Without `greatest` rows are normalised, and the center, a mean that was
/// rounded, is no longer than 1.12: differences and their components are below
/// 2.2.
__global__ void startFactsKernel(
        TensorImageFacts* facts,
        const float* greatest,
        int d) {
    const int scale = exponentFor(greatest ? *greatest : 1.0f, -50, 60);
    // d components below 2^(9 - scale): the sum of their squares to 2^15.
    const int log2d = greatest ? 32 - __clz(d - 1) : 0;
    const int norm = min(log2d + 2 * (9 - scale) - 15, 110);
    *facts = {
            powerOfTwo(scale),
            powerOfTwo(-scale),
            0.0f,
            powerOfTwo(-norm),
            powerOfTwo(norm),
            // Half of the least float16.
            powerOfTwo(max(norm - 25, -126)),
            0.0f};
}

template <class T, int Lanes>
void launch(const ImageParams& params, bool areQueries, cudaStream_t stream) {
    const unsigned blocks =
            std::min(blocksFor((params.end - params.first) * Lanes), 16384u);
    const auto kernel = areQueries ? tensorImageKernel<T, Lanes, true>
                                   : tensorImageKernel<T, Lanes, false>;
    launchAfterPrevious(kernel, blocks, kImageThreads, 0, stream, params);
}

template <class T>
void launchFor(ImageParams params, bool areQueries, cudaStream_t stream) {
    params.aligned = params.d % kImagePiece == 0 &&
            reinterpret_cast<uintptr_t>(params.rows) % 16 == 0;
    switch (params.rowBytes / 16 * std::min(params.slabs, 4)) {
        case 2:
            return launch<T, 2>(params, areQueries, stream);
        case 4:
            return launch<T, 4>(params, areQueries, stream);
        case 8:
            return launch<T, 8>(params, areQueries, stream);
        case 16:
            return launch<T, 16>(params, areQueries, stream);
        default:
            return launch<T, 32>(params, areQueries, stream);
    }
}

void check(const TensorImageProblem& problem) {
    BITS_THROW_IF_NOT_FMT(
            problem.n >= 0, "n = %lld is negative", (long long)problem.n);
    BITS_THROW_IF_NOT_FMT(problem.d >= 1, "d = %d is below 1", problem.d);
    BITS_THROW_IF_NOT_FMT(
            problem.first >= 0,
            "first = %lld is negative",
            (long long)problem.first);
    BITS_THROW_IF_NOT_FMT(problem.rows || problem.n == 0, "rows = nullptr");
    BITS_THROW_IF_NOT_FMT(problem.image.pieces, "image.pieces = nullptr");
    BITS_THROW_IF_NOT_FMT(
            reinterpret_cast<uintptr_t>(problem.image.pieces) % 16 == 0,
            "image.pieces = %p is not aligned to 16",
            problem.image.pieces);
    if (problem.areQueries) {
        BITS_THROW_IF_NOT_FMT(
                problem.first == 0,
                "first = %lld, but images of queries are written as a whole",
                (long long)problem.first);
        BITS_THROW_IF_NOT_FMT(
                problem.image.inverses, "image.inverses = nullptr");
        BITS_THROW_IF_NOT_FMT(
                problem.image.residuals, "image.residuals = nullptr");
        return;
    }
    BITS_THROW_IF_NOT_FMT(problem.image.norms, "image.norms = nullptr");
    BITS_THROW_IF_NOT_FMT(problem.image.normSteps, "image.normSteps = nullptr");
    BITS_THROW_IF_NOT_FMT(problem.image.facts, "image.facts = nullptr");
    BITS_THROW_IF_NOT_FMT(
            problem.greatest || problem.inverseNorms || problem.first > 0,
            "greatest = nullptr");
}

void check(
        const TensorImageProblem& problem,
        const VectorImageOptions& options) {
    const SpreadRows& rows = options.rows;
    BITS_THROW_IF_NOT_FMT(
            !problem.areQueries, "areQueries = 1, but images are of vectors");
    BITS_THROW_IF_NOT_FMT(
            rows.tiles == 0 || problem.first == 0,
            "first = %lld, but rows are spread in whole images",
            (long long)problem.first);
    BITS_THROW_IF_NOT_FMT(
            idx_t(rows.tiles) * SpreadRows::kTileRows <= problem.n,
            "rows.tiles = %u are of more than n = %lld vectors",
            rows.tiles,
            (long long)problem.n);
    BITS_THROW_IF_NOT_FMT(
            !options.dropsInfinite || !problem.inverseNorms,
            "inverseNorms = %p, but infinite vectors are dropped by L2 alone",
            (const void*)problem.inverseNorms);
}

void run(
        const TensorImageProblem& problem,
        const VectorImageOptions& options,
        cudaStream_t stream) {
    check(problem);
    if (canQueryImage(problem)) {
        return runQueryImage(problem, stream);
    }
    const TensorImageLayout layout(problem.first + problem.n, problem.d);
    const ImageParams params{
            problem.rows,
            problem.n,
            problem.first,
            layout.capacity,
            problem.d,
            layout.rowBytes,
            layout.slabs,
            false,
            problem.norms,
            problem.inverseNorms,
            problem.center,
            problem.vectorFacts,
            options.dropsInfinite,
            problem.image,
            options.rows,
            problem.outNorms,
            static_cast<__nv_bfloat16*>(problem.outRounded),
            problem.productCenter,
            problem.outProducts};
    if (!problem.areQueries && problem.first == 0) {
        startFactsKernel<<<1, 1, 0, stream>>>(
                problem.image.facts,
                problem.inverseNorms ? nullptr : problem.greatest,
                problem.d);
        BITS_CUDA_CHECK(cudaGetLastError());
    }
    if (params.end == params.first) {
        return;
    }
    switch (problem.type) {
        case DataType::Float32:
            return launchFor<float>(params, problem.areQueries, stream);
        case DataType::Float16:
            return launchFor<__half>(params, problem.areQueries, stream);
        case DataType::BFloat16:
            return launchFor<__nv_bfloat16>(params, problem.areQueries, stream);
    }
    throw Error(formatMessage("type = %d is unknown", int(problem.type)));
}

} // namespace

void runTensorImage(const TensorImageProblem& problem, cudaStream_t stream) {
    run(problem, {}, stream);
}

void runVectorImage(
        const TensorImageProblem& problem,
        const VectorImageOptions& options,
        cudaStream_t stream) {
    check(problem, options);
    run(problem, options, stream);
}

} // namespace faiss_bits
