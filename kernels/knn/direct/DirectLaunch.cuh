/// The launch of the scan; included by the generated sources only.
#pragma once

#include <algorithm>

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/knn/direct/DirectLaunch.h"
#include "kernels/knn/direct/DirectProducts.cuh"
#include "kernels/knn/direct/DirectScan.cuh"
#include "kernels/knn/direct/DirectSlots.cuh"

namespace faiss_bits {

template <Metric kMetric, int kQueries, class T, DirectLoads kLoads>
void launchDirectKernel(
        const DirectScanParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    using Scan = DirectScan<kMetric, kQueries, T, kLoads>;
    const auto kernel = directScanKernel<kMetric, kQueries, T, kLoads>;
    // Few groups: spread over all multiprocessors.
    const bool isSmall = params.out.groups < 8u * unsigned(multiprocessors);
    const unsigned warps = isSmall ? 1 : 4;
    constexpr unsigned kMostBlocks = 1u << 20;
    const dim3 blocks(
            std::min((params.out.groups + warps - 1) / warps, kMostBlocks),
            (params.search.rows + kQueries - 1) / kQueries);
    const size_t bytes = size_t(kQueries) * Scan::paddedDims(params.search.d) *
                    sizeof(double) +
            warps * Scan::kWarpBytes;
    launchAfterPrevious(
            kernel,
            blocks,
            warps * kWarpSize,
            allowSharedBytes(kernel, bytes),
            stream,
            params);
}

template <Metric kMetric, int kQueries, class T>
void launchDirectScanOf(
        const DirectScanParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    const VectorsParams& vectors = params.search.vectors;
    const auto launch = [&]<DirectLoads kLoads> {
        launchDirectKernel<kMetric, kQueries, T, kLoads>(
                params, multiprocessors, stream);
    };
    if (StagedVectors<T, 16>::canTake(
                vectors.data, vectors.rowStride, params.search.d)) {
        // Several queries leave no registers for the next unit.
        if constexpr (kQueries == 1) {
            if (params.search.d <= kMostPackedDims) {
                return launch.template operator()<DirectLoads::Packed>();
            }
        }
        return launch.template operator()<DirectLoads::Staged16>();
    }
    if constexpr (sizeof(T) == 4) {
        // Short rows share their lines anyway.
        if (params.search.d > 2 * canonical::kSlots) {
            return launch.template operator()<DirectLoads::Staged4>();
        }
    }
    launch.template operator()<DirectLoads::Own>();
}

template <Metric kMetric, int kQueries>
void launchDirectScanOf(
        const DirectScanParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    switch (params.search.vectors.type) {
        case DataType::Float32:
            return launchDirectScanOf<kMetric, kQueries, float>(
                    params, multiprocessors, stream);
        case DataType::Float16:
            return launchDirectScanOf<kMetric, kQueries, __half>(
                    params, multiprocessors, stream);
        case DataType::BFloat16:
            return launchDirectScanOf<kMetric, kQueries, __nv_bfloat16>(
                    params, multiprocessors, stream);
    }
}

template <Metric kMetric, int kQueries, class T>
void launchDirectSlotsKernel(
        const DirectScanParams& params,
        cudaStream_t stream) {
    const auto kernel = directSlotsKernel<kMetric, kQueries, T>;
    const size_t bytes =
            sizeof(double) * kQueries * directSlotsPadded(params.search.d);
    launchAfterPrevious(
            kernel,
            dim3(params.out.groups,
                 (params.search.rows + kQueries - 1) / kQueries),
            kDirectSlotsThreads,
            allowSharedBytes(kernel, bytes),
            stream,
            params);
}

template <Metric kMetric, class T>
void launchDirectSlotsOf(
        const DirectScanParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    // Blocks of one query that run at once.
    const unsigned most = 4u * unsigned(multiprocessors);
    if constexpr (canonical::Terms<kMetric>::kSums == 1) {
        if (params.out.groups * params.search.rows > most &&
            params.search.d <= kMostDimsOfSlots) {
            return launchDirectSlotsKernel<kMetric, kDirectQueries, T>(
                    params, stream);
        }
    }
    launchDirectSlotsKernel<kMetric, 1, T>(params, stream);
}

template <Metric kMetric>
void launchDirectSlots(
        const DirectScanParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    switch (params.search.vectors.type) {
        case DataType::Float32:
            return launchDirectSlotsOf<kMetric, float>(
                    params, multiprocessors, stream);
        case DataType::Float16:
            return launchDirectSlotsOf<kMetric, __half>(
                    params, multiprocessors, stream);
        case DataType::BFloat16:
            return launchDirectSlotsOf<kMetric, __nv_bfloat16>(
                    params, multiprocessors, stream);
    }
}

template <Metric kMetric, int kQueries, class T>
void launchDirectProductsKernel(
        const DirectScanParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    const auto kernel = directProductsKernel<kMetric, kQueries, T>;
    // Warps of a block share its queries; few groups are spread over all
    // multiprocessors.
    constexpr unsigned kMostWarps = directProductThreads(kQueries) / kWarpSize;
    const unsigned most = unsigned(multiprocessors);
    const unsigned warps =
            std::clamp((params.out.groups + most - 1) / most, 2u, kMostWarps);
    const unsigned sets = (params.search.rows + kQueries - 1) / kQueries;
    const unsigned blocks = std::min(
            (params.out.groups + warps - 1) / warps,
            std::max(2 * most / sets, 1u));
    const size_t bytes =
            sizeof(double) * kQueries * directProductPadded(params.search.d);
    launchAfterPrevious(
            kernel,
            dim3(sets, blocks),
            warps * kWarpSize,
            allowSharedBytes(kernel, bytes),
            stream,
            params);
}

template <Metric kMetric, class T>
void launchDirectProductsOf(
        const DirectScanParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    if (directProductQueries(params.search.rows, params.search.d) == 8) {
        return launchDirectProductsKernel<kMetric, 8, T>(
                params, multiprocessors, stream);
    }
    launchDirectProductsKernel<kMetric, 4, T>(params, multiprocessors, stream);
}

template <Metric kMetric>
void launchDirectProducts(
        const DirectScanParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    switch (params.search.vectors.type) {
        case DataType::Float32:
            return launchDirectProductsOf<kMetric, float>(
                    params, multiprocessors, stream);
        case DataType::Float16:
            return launchDirectProductsOf<kMetric, __half>(
                    params, multiprocessors, stream);
        case DataType::BFloat16:
            return launchDirectProductsOf<kMetric, __nv_bfloat16>(
                    params, multiprocessors, stream);
    }
}

template <Metric kMetric>
void launchDirectScan(
        const DirectScanParams& params,
        DirectShape shape,
        int multiprocessors,
        cudaStream_t stream) {
    if (shape == DirectShape::Slots) {
        return launchDirectSlots<kMetric>(params, multiprocessors, stream);
    }
    if constexpr (
            kMetric == Metric::Cosine || kMetric == Metric::InnerProduct) {
        if (shape == DirectShape::Products) {
            return launchDirectProducts<kMetric>(
                    params, multiprocessors, stream);
        }
    }
    // Three sums of four queries do not fit the registers.
    if constexpr (canonical::Terms<kMetric>::kSums == 1) {
        if (shape == DirectShape::SeveralQueries) {
            return launchDirectScanOf<kMetric, kDirectQueries>(
                    params, multiprocessors, stream);
        }
    }
    launchDirectScanOf<kMetric, 1>(params, multiprocessors, stream);
}

} // namespace faiss_bits
