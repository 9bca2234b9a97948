#pragma once

#include <memory>
#include <vector>

#include <faiss/impl/AuxIndexStructures.h>

#include "faiss_bits/common/FaissCompat.h"
#include "faiss_bits/range/RangeMoves.h"

/// Not part of the API.
namespace faiss_bits::gpu::detail {

/// Results of a range search that were found together: on the host, or on their
/// device until it is known where on the host they go.
struct RangePiece {
    idx_t size = 0;
    std::unique_ptr<float[]> distances; ///< [size]
    std::unique_ptr<idx_t[]> ids;       ///< [size]
    /// Of the device, maybe of several pieces.
    std::shared_ptr<faiss::gpu::GpuMemoryReservation> memory;
    /// In it: [size] ids, then [size] distances. Null: all is on the host.
    const idx_t* onDevice = nullptr;
    GpuContext device; ///< whose stream writes to them

    RangeBlock block() const;
};

/// Results that lie together.
struct RangeRun {
    const float* distances = nullptr;
    const idx_t* ids = nullptr;
    size_t size = 0;
};

/// A result for callers that copy it elsewhere: range_search of our indexes
/// leaves it the pieces as they came, where a RangeSearchResult gets a copy of
/// all in one array each. Of other indexes it is as any.
class RangePieces : public faiss::RangeSearchResult {
   public:
    explicit RangePieces(size_t n) : faiss::RangeSearchResult(n) {}

    /// Instead of do_allocation(): makes limits of lims, which has the number
    /// of every query's results, and takes these.
    void take(std::vector<RangePiece> pieces);

    /// What is still on a device comes to the host.
    void fetch();

    /// All, in the order of lims. Those on a device are complete.
    std::vector<RangeBlock> blocks() const;

    /// Of results begin to end - 1, in the order of lims, those that lie
    /// together with the first. All are on the host.
    RangeRun run(size_t begin, size_t end) const;

   private:
    std::vector<RangePiece> pieces_;
    std::vector<size_t> ends_; // of each piece
};

/// Pieces in the order of the queries to a result whose lims has the number of
/// every query's results, and which holds none yet. One piece on the host
/// becomes the arrays of a faiss::RangeSearchResult as it is; all else goes
/// into arrays of do_allocation(), which classes derived from it may have their
/// own of. Errors as moveToResult().
void givePieces(
        std::vector<RangePiece> pieces,
        faiss::RangeSearchResult& result);

/// do_allocation() of a result whose lims has the number of every query's
/// results, then moveRanges() to its arrays.
///
/// Errors  what these throw; a faiss::RangeSearchResult then has no arrays
void moveToResult(
        const std::vector<RangeMoves>& moves,
        faiss::RangeSearchResult& result);

} // namespace faiss_bits::gpu::detail
