#pragma once

#include <vector>

#include "faiss_bits/common/GpuStaging.h"

/// Not part of the API.
namespace faiss_bits::gpu::detail {

/// Results that lie together, on the host or on a device.
struct RangeBlock {
    const float* distances = nullptr;
    const idx_t* ids = nullptr;
    size_t size = 0;
    /// Where they lie: complete, and nothing writes to them. Null: the host.
    const GpuContext* device = nullptr;
};

/// Whether so many results are worth the threads that move them: the driver
/// copies fewer as fast.
constexpr bool isLargeRange(size_t results) {
    return results * (sizeof(idx_t) + sizeof(float)) >= size_t(4) << 20;
}

/// Results of some queries, and where those of each go.
struct RangeMoves {
    std::vector<RangeBlock> blocks; ///< one behind the other
    std::vector<size_t> limits;     ///< [queries + 1], of the results in blocks
    std::vector<size_t> places;     ///< [queries], of a query's first result
    idx_t idOffset = 0;             ///< added to ids
};

/// Writes all results to arrays of the host, which hold them all, by several
/// threads: each fetches some from their device to pinned memory while it
/// writes those before to their places, so that what is written to for the
/// first time is cleared by several threads, too.
///
/// Waits   until all are there
/// Pinned  memory of the resources of a device, where it is free; else what the
///         driver has
/// Errors  of CUDA, when no thread writes any more
/// Cost    measured on a machine with two H200s: docs/design/many_range.md
void moveRanges(
        const std::vector<RangeMoves>& moves,
        float* distances,
        idx_t* ids);

} // namespace faiss_bits::gpu::detail
