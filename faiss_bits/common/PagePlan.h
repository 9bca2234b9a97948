#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/Types.h"

/// How a call with arrays on the host is cut into pages. No CUDA here.
/// Not part of the API.
namespace faiss_bits::gpu::detail {

/// Staging of a page. Large enough for the fastest copies and products, small
/// enough that the first and the last copy, which nothing hides, are short. It
/// does not depend on the memory that is free, and pages depend on that only
/// where a caller's PageLimits do: a search of flat shards takes larger pages
/// where there is temporary memory for them (GpuIndexBitsShardsSearch.cpp).
constexpr size_t kPageBytes = size_t(16) << 20;

/// What a caller of a paged call knows of its work.
struct PageLimits {
    idx_t rows = 0; ///< of the whole call

    /// Multiply-adds of a row, or other work that takes as long. With host
    /// arrays a page has at most kPageWork of it, so that a call can be
    /// interrupted.
    double workPerRow = 0;

    /// Device memory that a row of a page takes besides staging.
    size_t scratchBytesPerRow = 0;

    /// GpuIndex::setMinPagingSize: where all rows take this much staging, a
    /// page takes no more of it (but at least 1 MiB).
    size_t pageBytes = SIZE_MAX;

    /// Staging of a page with host arrays at most, for work that is much slower
    /// with few rows.
    size_t mostStaging = kPageBytes;

    /// The work of a page waits for the device: rows of the pages before and
    /// behind it are copied by another thread meanwhile.
    bool waits = false;
};

/// What is known of the arrays and of the memory.
struct PageMemory {
    bool hostArrays = false;
    size_t stagedBytesPerRow = 0; ///< on the device
    size_t pinnedBytesPerRow = 0; ///< of pageable host arrays alone
    size_t pinnedBytes = 0;       ///< pinned memory that is there
};

struct PagePlan {
    idx_t rowsPerPage = 0;
    idx_t pages = 0;
    bool pinned = false; ///< pageable arrays go through pinned memory
    bool isLong = false; ///< so much work that waits must be interruptible
};

/// 0.03 s of an H200, 0.14 s of a GPU with 8 TFLOP/s: two pages under way and
/// the next question come to less than a second on slow GPUs too.
constexpr double kPageWork = double(uint64_t(1) << 39);
/// Below this a wait is not worth a question.
constexpr double kShortWork = double(uint64_t(1) << 34);
/// Pages of even size. Host only, no CUDA call.
PagePlan planPages(const PageLimits& limits, const PageMemory& memory);

/// PageLimits::mostStaging of a flat search of `rows` queries that take
/// rowBytes of staging each: kPageBytes, and of large k up to twice as much for
/// pages of 1,024 queries (680 of k = 2000 take a tenth longer each; H100), if
/// there are eight such pages, as what the last one found is copied while
/// nothing is left to search, and tempBytes of temporary memory for four times
/// two pages.
size_t stagingOfSearch(idx_t rows, size_t rowBytes, size_t tempBytes);

/// The work of one query against n vectors of d dimensions. The distances are
/// written and read once, which costs as much as 64 multiply-adds, and the k
/// best are sorted.
inline double searchWork(idx_t n, int d, int k) {
    return double(n) * (d > 64 ? d : 64) + 1024.0 * k;
}

} // namespace faiss_bits::gpu::detail
