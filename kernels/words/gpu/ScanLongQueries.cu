#include "kernels/words/gpu/LongQueries.cuh"

namespace faiss_bits::words {

namespace {

template <class Scanned, ScanMethod Method>
void launchScan(const LongScanParams& params, dim3 grid, cudaStream_t stream) {
    const size_t table = sizeof(uint64_t) * params.numLetters * params.blocks;
    size_t bytes = (scanSharedBytes(Method, params) + 7) / 8 * 8;
    if (params.tables) {
        BITS_CUDA_CHECK(
                cudaMemsetAsync(params.tables, 0, grid.x * table, stream));
        fillTablesKernel<<<grid.x, 64, 0, stream>>>(params);
        BITS_CUDA_CHECK(cudaGetLastError());
    } else {
        bytes += table;
    }
    const auto kernel = scanLongQueriesKernel<Scanned, Method>;
    allowSharedBytes(kernel, bytes);
    kernel<<<grid, kScanThreads, bytes, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

template <class Scanned>
void launchScan(
        ScanMethod method,
        const LongScanParams& params,
        dim3 grid,
        cudaStream_t stream) {
    switch (method) {
        case ScanMethod::All:
            return launchScan<Scanned, ScanMethod::All>(params, grid, stream);
        case ScanMethod::Clusters:
            return launchScan<Scanned, ScanMethod::Clusters>(
                    params, grid, stream);
        case ScanMethod::Pivots:
            return launchScan<Scanned, ScanMethod::Pivots>(
                    params, grid, stream);
    }
}

} // namespace

uint32_t longKindOf(uint32_t blocks) {
    for (const uint32_t kind : {2u, 4u, 8u}) {
        if (blocks <= kind) {
            return kind;
        }
    }
    return WarpQuery::kMostBlocks;
}

void launchLongScan(
        const LongScanParams& params,
        Method method,
        uint32_t kind,
        idx_t count,
        uint32_t parts,
        cudaStream_t stream) {
    const dim3 grid(unsigned(count), parts);
    const ScanMethod how = scanOf(method);
    switch (kind) {
        case 2:
            return launchScan<BlockQuery<2>>(how, params, grid, stream);
        case 4:
            return launchScan<BlockQuery<4>>(how, params, grid, stream);
        case 8:
            return launchScan<BlockQuery<8>>(how, params, grid, stream);
        default:
            return launchScan<WarpQuery>(how, params, grid, stream);
    }
}

} // namespace faiss_bits::words
