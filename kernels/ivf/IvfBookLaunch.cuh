/// The scans of product codes by queries by themselves; included by the
/// generated sources only.
#pragma once

#include "kernels/common/LaunchesTogether.h"
#include "kernels/ivf/IvfBookTables.cuh"
#include "kernels/ivf/IvfHeldTables.cuh"

namespace faiss_bits {

template <Metric kMetric>
void launchIvfBookScan(
        const IvfDirectParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    const IvfLists& lists = params.search.lists;
    const auto launch = [&](const auto& kernel, size_t bytes) {
        const uint32_t rows = params.search.rows;
        const auto groups = uint32_t(params.search.stride / kIvfGroup);
        const uint32_t ofRow = std::clamp<uint32_t>(
                uint32_t(multiprocessors) / rows,
                1,
                std::max<uint32_t>(groups, 1));
        launchTogether(
                kernel,
                dim3(ofRow, rows),
                kIvfBookThreads,
                bytes,
                stream,
                params);
    };
    const auto of = [&]<int kPartDims>() {
        using Tables = IvfBookTables<kMetric, kPartDims>;
        using Held = IvfHeldTables<kMetric, kPartDims>;
        using Storage = typename Tables::Lists::SharedStorage;
        static_assert(
                sizeof(Storage) <= kIvfBookListBytes &&
                sizeof(Storage) % 8 == 0 &&
                sizeof(typename Tables::SharedStorage) <=
                        kIvfBookTableListBytes &&
                sizeof(typename Tables::SharedStorage) % 8 == 0 &&
                sizeof(typename Held::SharedStorage) == kIvfHeldListBytes &&
                kIvfHeldListBytes % 8 == 0);
        const int d = params.search.d;
        const uint32_t nprobe = params.search.nprobe;
        if (params.bounds && d <= kMostHeldDims) {
            launch(ivfHeldTablesKernel<kMetric, kPartDims>,
                   ivfHeldTableBytes(nprobe));
        } else if (params.bounds) {
            launch(ivfBookTablesKernel<kMetric, kPartDims>,
                   ivfBookTableBytes(d, d / kPartDims, nprobe));
        } else {
            launch(ivfBookScanKernel<kMetric, kPartDims>,
                   ivfBookSharedBytes(d, nprobe));
        }
    };
    switch (lists.d / lists.decoding.numParts) {
        case 2:
            return of.template operator()<2>();
        case 4:
            return of.template operator()<4>();
        case 8:
            return of.template operator()<8>();
        default:
            return of.template operator()<16>();
    }
}

} // namespace faiss_bits
