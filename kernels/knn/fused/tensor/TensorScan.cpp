#include "kernels/knn/fused/tensor/TensorScan.h"

#include <algorithm>

#include "kernels/common/Error.h"
#include "kernels/knn/fused/tensor/ByteScan.h"
#include "kernels/knn/fused/tensor/DenseScan.h"
#include "kernels/knn/fused/tensor/MmaShape.h"
#include "kernels/knn/fused/tensor/NearestTiles.h"
#include "kernels/knn/fused/tensor/TensorScanChecks.h"
#include "kernels/knn/fused/tensor/TensorScanPlan.h"
#include "kernels/knn/fused/tensor/WgmmaShape.h"

namespace faiss_bits {

namespace {

bool usesWgmma(TensorScanKernel kernel, const DeviceTraits& device) {
    return kernel == TensorScanKernel::Wgmma ||
            (kernel == TensorScanKernel::Auto &&
             hasTensorScan(TensorScanKernel::Wgmma, device));
}

/// But for where results go, and the cut.
TensorScanParams paramsOf(
        const TensorScanProblem& problem,
        const TensorImageLayout& image) {
    TensorScanParams params{};
    params.vectors = static_cast<const uint8_t*>(problem.vectors.pieces);
    params.norms = problem.vectors.norms;
    params.normSteps = static_cast<const uint8_t*>(problem.vectors.normSteps);
    params.facts = problem.vectors.facts;
    params.rows = problem.rows;
    params.queries = static_cast<const uint8_t*>(problem.queries.pieces);
    params.inverses = problem.queries.inverses;
    params.queryNorms = problem.queryNorms;
    params.numQueries = uint32_t(problem.numQueries);
    params.numVectors = uint32_t(problem.numVectors);
    params.slabs = image.slabs;
    params.lastSteps = image.lastSteps;
    params.tileCosts = problem.tileCosts;
    params.mostTileCost = problem.mostTileCost;
    return params;
}

ScanShape scanShapeFor(const TensorImageLayout& image, bool byWgmma) {
    const int rowBytes = image.rowBytes * image.slabs;
    if (!byWgmma) {
        return {kMmaQueries, kMmaVectors, rowBytes};
    }
    const WgmmaShape shape = wgmmaShapeFor(image);
    return {shape.queries(), shape.unit(), rowBytes};
}

bool isStreamed(const TensorImageLayout& image) {
    return wgmmaShapeFor(image).streamed;
}

#ifdef FAISS_BITS_WGMMA
bool takesTurns(
        const TensorScanParams& params,
        const TensorImageLayout& image) {
    return params.numQueries <= kMostTurnQueries && !isStreamed(image);
}

/// Whether most fragments of 16 queries and 128 vectors have two values or more
/// that pass, and there is a test for that (DenseTest.cuh).
bool isDense(const TensorScanProblem& problem, const TensorImageLayout& image) {
    constexpr double kShare = 1. / 1024;
    constexpr int kRowBytes = 128;
    return problem.passing >= kShare * double(problem.numVectors) &&
            !isStreamed(image) && image.rowBytes == kRowBytes;
}
#endif

/// At work at a time.
uint32_t blocksOf(
        const TensorImageLayout& image,
        bool byWgmma,
        const DeviceTraits& device) {
    return device.multiprocessors * (byWgmma ? 1 : mmaBlocks(image, device));
}

/// Those of an item's vectors.
uint32_t stripsOfChunk(const TensorImageLayout& image, bool byWgmma) {
    constexpr uint32_t kLanes = 4;
    if (!byWgmma) {
        constexpr uint32_t kParts = 4; // warps side by side
        return kParts * kLanes * kStripGroups<4>;
    }
    const WgmmaShape shape = wgmmaShapeFor(image);
    return shape.vectorParts() * kLanes * kStripGroups<2>;
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

bool canKeepProducts(const DeviceTraits& device) {
    return hasTensorScan(TensorScanKernel::Wgmma, device);
}

bool isStreamedScan(int d) {
    return isStreamed(TensorImageLayout(0, d));
}

bool meetsByteScan(int d) {
    return d >= kLeastByteComponents && d <= kMostByteComponents;
}

void runTensorScan(
        const TensorScanProblem& problem,
        const DeviceTraits& device,
        cudaStream_t stream) {
    checkTensorScan(problem);
    checkTensorScanKernel(problem.kernel, device);
    if (problem.numQueries == 0 || problem.numVectors == 0) {
        return;
    }
    checkPassedLists(problem.passed);
    const bool byWgmma = usesWgmma(problem.kernel, device);
    const TensorImageLayout image(problem.numVectors, problem.d);
    TensorScanParams params = paramsOf(problem, image);
    params.allowedBits = problem.allowedBits;
    params.passed = problem.passed;
    planChunks(
            params,
            scanShapeFor(image, byWgmma),
            blocksOf(image, byWgmma, device));
    const bool isL2 = isByL2(problem);
    BITS_THROW_IF_NOT_FMT(
            !params.tileCosts || (byWgmma && isL2 && meetsByteScan(problem.d)),
            "d = %d, kernel = %d: tileCosts are not read",
            problem.d,
            int(problem.kernel));
    BITS_THROW_IF_NOT_FMT(
            !params.passed.products || byWgmma,
            "kernel = %d: this scan keeps no products",
            int(problem.kernel));
#ifdef FAISS_BITS_WGMMA
    if (params.passed.products) {
        return launchWgmmaProducts(params, image, isL2, device, stream);
    }
    if (byWgmma) {
        return params.passed.bits
                ? launchWgmmaBits(params, image, isL2, device, stream)
                : takesTurns(params, image)
                ? launchWgmmaTurns(params, image, isL2, device, stream)
                : isDense(problem, image)
                ? launchWgmmaDense(params, image, isL2, device, stream)
                : launchWgmmaScan(params, image, isL2, device, stream);
    }
#endif
    return params.passed.bits
            ? launchMmaBits(params, image, isL2, device, stream)
            : launchMmaScan(params, image, isL2, device, stream);
}

void runByteScan(
        const TensorScanProblem& problem,
        const ByteImage& queries,
        const ByteImage& vectors,
        const DeviceTraits& device,
        cudaStream_t stream) {
    checkTensorScan(problem);
    checkTensorScanKernel(TensorScanKernel::Wgmma, device);
    BITS_THROW_IF_NOT_FMT(
            problem.metric == Metric::L2,
            "metric = %d has no scan in 8 bits",
            int(problem.metric));
    BITS_THROW_IF_NOT_FMT(
            meetsByteScan(problem.d),
            "d = %d has no scan in 8 bits",
            problem.d);
    if (problem.numQueries == 0 || problem.numVectors == 0) {
        return;
    }
    checkPassedLists(problem.passed);
    BITS_THROW_IF_NOT_FMT(problem.tileCosts, "tileCosts = nullptr");
    BITS_THROW_IF_NOT_FMT(queries.pieces, "queries.pieces = nullptr");
    BITS_THROW_IF_NOT_FMT(vectors.pieces, "vectors.pieces = nullptr");
    TensorScanParams params =
            paramsOf(problem, TensorImageLayout(problem.numVectors, problem.d));
    params.vectors = static_cast<const uint8_t*>(vectors.pieces);
    params.facts = vectors.facts;
    params.queries = static_cast<const uint8_t*>(queries.pieces);
    params.inverses = queries.steps;
    const ByteImageLayout layout(problem.numVectors, problem.d);
    params.slabs = layout.slabs;
    params.lastSteps = layout.lastSteps;
    params.allowedBits = problem.allowedBits;
    params.passed = problem.passed;
#ifdef FAISS_BITS_WGMMA
    if (hasByteNorms(problem.d)) {
        BITS_THROW_IF_NOT_FMT(vectors.norms, "vectors.norms = nullptr");
        return launchByteKeptScan(
                params,
                vectors.norms,
                device.multiprocessors,
                device.blockSharedBytes,
                stream);
    }
    launchByteScan(
            params, device.multiprocessors, device.blockSharedBytes, stream);
#else
    (void)stream; // checkTensorScanKernel() has thrown
#endif
}

uint32_t nearestTileOf(
        idx_t numQueries,
        idx_t numVectors,
        int d,
        TensorScanKernel kernel,
        const DeviceTraits& device) {
    // Four strips of 20 bytes a query and tile; and lanes of a row have bits
    // for no more of them (NearestOfRow.cuh).
    constexpr idx_t kMostTiles = idx_t(1) << 20;
    constexpr idx_t kMostVectors = idx_t(1) << 16;
    const TensorImageLayout image(numVectors, d);
    if (!usesWgmma(kernel, device) || !wgmmaShapeFor(image).streamed ||
        numVectors > kMostVectors) {
        return 0;
    }
    const idx_t width = wgmmaShapeFor(image).width();
    const idx_t tiles = (numVectors + width - 1) / width;
    return numQueries * tiles <= kMostTiles ? uint32_t(width) : 0;
}

uint32_t nearestStripsOf(
        idx_t numQueries,
        idx_t numVectors,
        int d,
        TensorScanKernel kernel,
        const DeviceTraits& device) {
    if (const uint32_t tile =
                nearestTileOf(numQueries, numVectors, d, kernel, device)) {
        return uint32_t((numVectors + tile - 1) / tile) * 4;
    }
    const bool byWgmma = usesWgmma(kernel, device);
    const TensorImageLayout image(numVectors, d);
    TensorScanParams params{};
    params.numQueries = uint32_t(numQueries);
    params.numVectors = uint32_t(numVectors);
    planNearestChunks(
            params,
            scanShapeFor(image, byWgmma),
            blocksOf(image, byWgmma, device));
    // Four lanes have a row's columns, in each warp or group that has some.
    const uint32_t parts = byWgmma ? wgmmaShapeFor(image).vectorParts() : 4;
    return params.chunks * parts * 4;
}

void runNearestScan(
        const TensorScanProblem& problem,
        const NearestStrips& nearest,
        const DeviceTraits& device,
        cudaStream_t stream) {
    checkTensorScan(problem);
    checkTensorScanKernel(problem.kernel, device);
    if (problem.numQueries == 0 || problem.numVectors == 0) {
        return;
    }
    BITS_THROW_IF_NOT_FMT(
            problem.numVectors <= kMostNearestVectors,
            "numVectors = %lld is above %lld",
            (long long)problem.numVectors,
            (long long)kMostNearestVectors);
    BITS_THROW_IF_NOT_FMT(nearest.strips, "nearest.strips = nullptr");
    BITS_THROW_IF_NOT_FMT(nearest.rests, "nearest.rests = nullptr");
    const uint32_t perRow = nearestStripsOf(
            problem.numQueries,
            problem.numVectors,
            problem.d,
            problem.kernel,
            device);
    BITS_THROW_IF_NOT_FMT(
            nearest.perRow == perRow,
            "nearest.perRow = %u, but there are %u strips",
            nearest.perRow,
            perRow);
    const bool byWgmma = usesWgmma(problem.kernel, device);
    const TensorImageLayout image(problem.numVectors, problem.d);
    TensorScanParams params = paramsOf(problem, image);
    params.nearest = nearest;
    planNearestChunks(
            params,
            scanShapeFor(image, byWgmma),
            blocksOf(image, byWgmma, device));
    const bool isL2 = isByL2(problem);
#ifdef FAISS_BITS_WGMMA
    if (byWgmma) {
        const auto launch = nearestTileOf(
                                    problem.numQueries,
                                    problem.numVectors,
                                    problem.d,
                                    problem.kernel,
                                    device)
                ? launchWgmmaNearestTiles
                : launchWgmmaNearest;
        return launch(params, image, isL2, device, stream);
    }
#endif
    launchMmaNearest(params, image, isL2, device, stream);
}

StripPlan planStrips(
        idx_t numQueries,
        idx_t numVectors,
        int d,
        uint32_t leastStrips,
        TensorScanKernel kernel,
        const DeviceTraits& device) {
    const bool byWgmma = usesWgmma(kernel, device);
    const TensorImageLayout image(numVectors, d);
    const uint32_t ofChunk = stripsOfChunk(image, byWgmma);
    TensorScanParams params{};
    params.numQueries = uint32_t(numQueries);
    params.numVectors = uint32_t(numVectors);
    planStripChunks(
            params,
            scanShapeFor(image, byWgmma),
            blocksOf(image, byWgmma, device),
            std::max((leastStrips + ofChunk - 1) / ofChunk, 1u));
    return {params.unitsPerChunk, params.chunks * ofChunk};
}

void runStripScan(
        const TensorScanProblem& problem,
        const StripPlan& plan,
        float* keys,
        const DeviceTraits& device,
        cudaStream_t stream) {
    checkTensorScan(problem);
    checkTensorScanKernel(problem.kernel, device);
    if (problem.numQueries == 0 || problem.numVectors == 0) {
        return;
    }
    BITS_THROW_IF_NOT_FMT(keys, "keys = nullptr");
    const bool byWgmma = usesWgmma(problem.kernel, device);
    const TensorImageLayout image(problem.numVectors, problem.d);
    const ScanShape shape = scanShapeFor(image, byWgmma);
    TensorScanParams params = paramsOf(problem, image);
    params.units =
            uint32_t((problem.numVectors + idx_t(shape.unit) - 1) / shape.unit);
    params.queryTiles = uint32_t(
            (problem.numQueries + idx_t(shape.queries) - 1) / shape.queries);
    params.unitsPerChunk = plan.unitsPerChunk;
    BITS_THROW_IF_NOT_FMT(
            plan.unitsPerChunk >= 1 && plan.unitsPerChunk <= params.units,
            "plan.unitsPerChunk = %u is outside 1..%u",
            plan.unitsPerChunk,
            params.units);
    setItems(params);
    params.chunksOfTile = chunksSideBySide(params, shape);
    const uint32_t perRow = params.chunks * stripsOfChunk(image, byWgmma);
    BITS_THROW_IF_NOT_FMT(
            plan.perRow == perRow,
            "plan.perRow = %u, but there are %u strips",
            plan.perRow,
            perRow);
    params.strips = {keys, perRow};
    const bool isL2 = isByL2(problem);
#ifdef FAISS_BITS_WGMMA
    if (byWgmma) {
        return launchWgmmaStrips(params, image, isL2, device, stream);
    }
#endif
    launchMmaStrips(params, image, isL2, device, stream);
}

} // namespace faiss_bits
