#pragma once

#include <vector>

#include "kernels/common/Types.h"

/// Where the results of range searches go.
namespace faiss_bits {

/// Some of the results of a search: those of the queries first to
/// first + counts.size() - 1. They come in the order of the queries. A part may
/// end within a query, whose others follow in the next parts: its counts add
/// up.
struct RangePart {
    idx_t first = 0;           ///< of these queries
    std::vector<idx_t> counts; ///< of each query
    idx_t total = 0;           ///< of them together
};

/// Device memory for the results of a part.
struct RangeRoom {
    float* distances = nullptr; ///< [total]; nullptr: results are not wanted
    idx_t* ids = nullptr;       ///< [total]
};

/// Takes the results of a search, part by part.
class RangeSink {
   public:
    virtual ~RangeSink() = default;

    /// Where the results of a part go. Called for every part that has some.
    virtual RangeRoom room(const RangePart& part) = 0;

    /// They are enqueued to there: what reads them goes on the search's stream,
    /// or waits for it. Called for every part, also for empty ones, so that
    /// each query is in one part or more.
    virtual void take(const RangePart& part, const RangeRoom& room) = 0;

    /// An exception goes through the search, from itself or from the sink: the
    /// last room is not used.
    virtual void abandon() noexcept {}
};

} // namespace faiss_bits
