#include "faiss_bits/common/PagePlan.h"

#include <algorithm>
#include <limits>

namespace faiss_bits::gpu::detail {

namespace {

constexpr size_t kLeastPageBytes = size_t(1) << 20;
/// A single page of fewer is left to the driver's copies, which are as fast
/// until several threads share what the host has to copy.
constexpr double kLeastPinned = 8 << 20;

} // namespace

PagePlan planPages(const PageLimits& limits, const PageMemory& memory) {
    PagePlan plan;
    if (limits.rows <= 0) {
        return plan;
    }
    // FAISS counts the rows of a call by int in some releases.
    idx_t most = std::min<idx_t>(limits.rows, std::numeric_limits<int>::max());
    const auto limit = [&](double rows) {
        most = std::max<idx_t>(1, idx_t(std::min(double(most), rows)));
    };
    if (limits.scratchBytesPerRow > 0) {
        limit(4.0 * kPageBytes / limits.scratchBytesPerRow);
    }
    if (memory.hostArrays) {
        size_t bytes = limits.mostStaging;
        const double all =
                double(limits.rows) * double(memory.stagedBytesPerRow);
        if (all >= double(limits.pageBytes)) {
            bytes = std::min(
                    bytes, std::max(limits.pageBytes, kLeastPageBytes));
        }
        if (memory.stagedBytesPerRow > 0) {
            limit(double(bytes / memory.stagedBytesPerRow));
        }
        if (limits.workPerRow > 0) {
            limit(kPageWork / limits.workPerRow);
        }
    }
    plan.pages = (limits.rows + most - 1) / most;
    plan.rowsPerPage = (limits.rows + plan.pages - 1) / plan.pages;
    // Rounded up, the pages may be one fewer.
    plan.pages = (limits.rows + plan.rowsPerPage - 1) / plan.rowsPerPage;
    plan.isLong = double(plan.rowsPerPage) * limits.workPerRow > kShortWork;
    const bool isMuch =
            double(limits.rows) * double(memory.pinnedBytesPerRow) >=
            kLeastPinned;
    plan.pinned = (plan.pages > 1 || isMuch) && memory.pinnedBytesPerRow > 0 &&
            memory.pinnedBytesPerRow <=
                    memory.pinnedBytes / 2 / size_t(plan.rowsPerPage);
    return plan;
}

size_t stagingOfSearch(idx_t rows, size_t rowBytes, size_t tempBytes) {
    constexpr idx_t kRows = 1024;
    constexpr idx_t kPages = 8;
    const size_t wanted = std::clamp(
            size_t(std::min(kRows, rows / kPages)) * rowBytes,
            kPageBytes,
            2 * kPageBytes);
    return wanted <= tempBytes / 8 ? wanted : kPageBytes;
}

} // namespace faiss_bits::gpu::detail
