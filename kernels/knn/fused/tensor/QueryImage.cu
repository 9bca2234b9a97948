#include "kernels/knn/fused/tensor/QueryImage.h"

#include <cstdint>

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/Error.h"
#include "kernels/knn/fused/tensor/QueryPieces.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr uint32_t kWarps = kThreads / kWarpSize;
constexpr int kTurns = 4; // of a warp: then each lane writes facts of a row

struct QueryImageParams {
    at_once::QueryPieces queries;
    TensorImage image;
    uint32_t end; // rows and padding behind them
};

template <int kSlabs>
__global__ __launch_bounds__(kThreads, 2) void queryImageKernel(
        const __grid_constant__ QueryImageParams params) {
    using Rows = at_once::QueryRows<kSlabs, true>;
    constexpr uint32_t kTileRows = TensorImageLayout::kTileRows;
    constexpr uint32_t kOfWarp = kTurns * Rows::kTogether;
    static_assert(kTileRows % kOfWarp == 0);
    allowNext();
    waitForPrevious();
    const uint32_t first =
            (blockIdx.x * kWarps + threadIdx.x / kWarpSize) * kOfWarp;
    if (first >= params.end) {
        return;
    }
    const Rows rows(params.queries);
    uint8_t* const tile = static_cast<uint8_t*>(params.image.pieces) +
            size_t(first / kTileRows) * (kSlabs * kTileRows * 128);
    typename Rows::Sums own;
#pragma unroll 1
    for (int turn = 0; turn < kTurns; ++turn) {
        const uint32_t row = first + turn * Rows::kTogether;
        typename Rows::Pieces pieces;
        rows.read(row, pieces);
        rows.make(row, row % kTileRows, turn, pieces, tile, own);
    }
    rows.writeFacts(
            kTurns,
            own,
            [&](int turn) { return first + turn * Rows::kTogether; },
            [&](uint32_t row, const at_once::QueryFacts& facts) {
                params.image.inverses[row] = facts.inverse;
                params.image.residuals[row] = facts.residual;
                if (row < params.queries.n && params.queries.outNorms) {
                    params.queries.outNorms[row] = facts.norm;
                }
            });
}

} // namespace

bool canQueryImage(const TensorImageProblem& problem) {
    const TensorImageLayout layout(problem.n, problem.d);
    return problem.areQueries && problem.type == DataType::Float32 &&
            !problem.inverseNorms && !problem.outRounded &&
            !problem.productCenter && problem.n < idx_t(1) << 31 &&
            layout.rowBytes == 128 && layout.slabs <= 2;
}

void runQueryImage(const TensorImageProblem& problem, cudaStream_t stream) {
    BITS_THROW_IF_NOT_FMT(
            canQueryImage(problem),
            "no kernel for type = %d, d = %d",
            int(problem.type),
            problem.d);
    const TensorImageLayout layout(problem.n, problem.d);
    QueryImageParams params{};
    params.queries = {
            static_cast<const float*>(problem.rows),
            uint32_t(problem.n),
            problem.d,
            problem.d % kImagePiece == 0 &&
                    reinterpret_cast<uintptr_t>(problem.rows) % 16 == 0,
            problem.center,
            problem.vectorFacts,
            problem.outNorms,
            nullptr};
    params.image = problem.image;
    params.end = uint32_t(layout.capacity);
    if (params.end == 0) {
        return;
    }
    constexpr uint32_t kOfBlock = kWarps * kTurns * 8;
    launchAfterPrevious(
            layout.slabs == 1 ? queryImageKernel<1> : queryImageKernel<2>,
            (params.end + kOfBlock - 1) / kOfBlock,
            kThreads,
            0,
            stream,
            params);
}

} // namespace faiss_bits
