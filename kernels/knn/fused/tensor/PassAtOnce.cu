#include "kernels/knn/fused/tensor/PassAtOnce.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/common/Error.h"
#include "kernels/knn/fused/tensor/PassAtOnce.cuh"
#include "kernels/knn/fused/tensor/PassInClusterLaunch.cuh"
#include "kernels/knn/fused/tensor/TensorScanBound.h"

namespace faiss_bits {

namespace {

float roundedUp(double value) {
    return std::nextafter(float(value), HUGE_VALF);
}

template <int kPerGroup, int kSlabs, int kOwnStrips>
void launch(
        const at_once::Params& params,
        const DeviceTraits& device,
        cudaStream_t stream) {
    const auto kernel =
            at_once::passAtOnceKernel<kPerGroup, kSlabs, kOwnStrips>;
    const size_t bytes = allowSharedBytes(
            kernel, sizeof(at_once::Shared<kPerGroup, kSlabs, kOwnStrips>));
    launchAfterPrevious(
            kernel,
            std::min(params.tiles, unsigned(device.multiprocessors)),
            at_once::kThreads,
            bytes,
            stream,
            params);
}

template <int kSlabs>
void launchFor(
        const at_once::Params& params,
        const DeviceTraits& device,
        cudaStream_t stream) {
    static_assert(kMostVectorsOfBlock == 8 * at_once::kUnit);
    static_assert(kMostVectorsOfMoreStrips == 4 * at_once::kUnit);
    constexpr int kStrips = at_once::ownStrips(kStripsAtOnce);
    constexpr int kMore = at_once::ownStrips(kMoreStripsAtOnce);
    const uint32_t units = (params.n + at_once::kUnit - 1) / at_once::kUnit;
    if (stripsAtOnce(params.n, params.rank) == kMoreStripsAtOnce) {
        return units <= 2 ? launch<1, kSlabs, kMore>(params, device, stream)
                          : launch<2, kSlabs, kMore>(params, device, stream);
    }
    return units <= 2    ? launch<1, kSlabs, kStrips>(params, device, stream)
            : units <= 4 ? launch<2, kSlabs, kStrips>(params, device, stream)
                         : launch<4, kSlabs, kStrips>(params, device, stream);
}

void check(const PassAtOnceProblem& p, const DeviceTraits& device) {
    BITS_THROW_IF_NOT_FMT(
            canPassAtOnce(p.numVectors, p.d, p.rank, device),
            "no kernel for n = %lld, d = %d, rank = %u",
            (long long)p.numVectors,
            p.d,
            p.rank);
    BITS_THROW_IF_NOT_FMT(
            p.numQueries >= 0 && p.numQueries < idx_t(1) << 31,
            "numQueries = %lld is outside 0..2^31 - 1",
            (long long)p.numQueries);
    BITS_THROW_IF_NOT_FMT(
            p.words == (p.numVectors + 31) / 32,
            "words = %u for n = %lld",
            p.words,
            (long long)p.numVectors);
    BITS_THROW_IF_NOT_FMT(p.queries || p.numQueries == 0, "queries = nullptr");
    BITS_THROW_IF_NOT_FMT(
            p.vectors.pieces && p.vectors.norms && p.vectors.facts,
            "vectors = {%p, %p, %p}",
            p.vectors.pieces,
            (const void*)p.vectors.norms,
            (const void*)p.vectors.facts);
    BITS_THROW_IF_NOT_FMT(
            p.queryNorms && p.queryResiduals && p.complete && p.bits,
            "results = {%p, %p, %p, %p}",
            (const void*)p.queryNorms,
            (const void*)p.queryResiduals,
            (const void*)p.complete,
            (const void*)p.bits);
    BITS_THROW_IF_NOT_FMT(
            p.numVectors <= kMostVectorsOfBlock ||
                    (p.queryImage.pieces && p.queryImage.inverses &&
                     p.queryImage.residuals == p.queryResiduals),
            "queryImage = {%p, %p, %p} for n = %lld",
            p.queryImage.pieces,
            (const void*)p.queryImage.inverses,
            (const void*)p.queryImage.residuals,
            (long long)p.numVectors);
}

} // namespace

void runPassAtOnce(
        const PassAtOnceProblem& p,
        const DeviceTraits& device,
        cudaStream_t stream) {
    check(p, device);
    if (p.numQueries == 0) {
        return;
    }
    const double cut = (double(p.d) + 32) * kTensorCoreUnit;
    at_once::Params params{};
    params.queries = {
            p.queries,
            uint32_t(p.numQueries),
            p.d,
            p.d % kImagePiece == 0 &&
                    reinterpret_cast<uintptr_t>(p.queries) % 16 == 0,
            p.center,
            p.vectors.facts,
            p.queryNorms,
            p.queryResiduals};
    params.vectors = static_cast<const uint8_t*>(p.vectors.pieces);
    params.norms = p.vectors.norms;
    params.tiles =
            (params.queries.n + at_once::kQueries - 1) / at_once::kQueries;
    params.rank = p.rank;
    params.n = uint32_t(p.numVectors);
    params.words = p.words;
    params.cut = roundedUp(cut / (1 - cut));
    params.rounding = roundedUp(bounds::gamma(double(p.d) + 8));
    params.complete = p.complete;
    params.bits = p.bits;
    if (p.numVectors > kMostVectorsOfBlock) {
        return launchPassInCluster(params, p.queryImage, stream);
    }
    return p.d <= 64 ? launchFor<1>(params, device, stream)
                     : launchFor<2>(params, device, stream);
}

} // namespace faiss_bits
