#pragma once

#include <vector>

#include <faiss/Index.h>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/common/RangeArguments.h"
#include "faiss_bits/range/GpuRangeResult.h"
#include "faiss_bits/range/RangePieces.h"
#include "kernels/range/FlatRange.h"

namespace faiss_bits::gpu::detail {

using faiss_bits::detail::requireRangeResult;

/// do_allocation(), where `lims` has the number of every query's results, for
/// whoever writes all of them next.
void allocateResults(faiss::RangeSearchResult& result);

/// Results of a range search on the host, part by part, for FAISS's
/// RangeSearchResult. Not part of the API.
class RangeResults {
   public:
    explicit RangeResults(idx_t n) : counts_(size_t(n)) {}

    /// Those of the queries first to first + counts.size() - 1, [total] on the
    /// device. Waits for the stream.
    void add(
            const GpuContext& context,
            idx_t first,
            const std::vector<idx_t>& counts,
            idx_t total,
            const float* distances,
            const idx_t* ids);

    /// change(ids, size) for every part.
    template <class Change>
    void changeIds(const Change& change) {
        for (const RangePiece& piece : pieces_) {
            change(piece.ids.get(), piece.size);
        }
    }

    /// Of all queries, by givePieces(). What was there is let go.
    void moveTo(faiss::RangeSearchResult& result);

   private:
    std::vector<idx_t> counts_;
    std::vector<RangePiece> pieces_;
};

/// Brings parts to the host. Asks faiss::InterruptCallback for every part.
class HostRangeSink : public RangeSink {
   public:
    /// They must outlive it.
    HostRangeSink(const GpuContext& context, RangeResults& results)
            : context_(context), results_(results) {}

    /// Number of the query that parts call 0.
    void setFirst(idx_t first) {
        first_ = first;
    }

    RangeRoom room(const RangePart& part) override;
    void take(const RangePart& part, const RangeRoom& room) override;
    /// FAISS's temporary memory is a stack, and the scratch of the search is
    /// below that of a part.
    void abandon() noexcept override {
        memory_ = {};
    }

   private:
    const GpuContext& context_;
    RangeResults& results_;
    idx_t first_ = 0;
    faiss::gpu::GpuMemoryReservation memory_; // of a part
};

/// Leaves parts on the device.
class DeviceRangeSink : public RangeSink {
   public:
    /// The result gets the n + 1 limits of n queries. It must outlive this.
    DeviceRangeSink(GpuRangeResult& result, idx_t n);

    void setFirst(idx_t first) {
        first_ = first;
    }

    RangeRoom room(const RangePart& part) override;
    void take(const RangePart& part, const RangeRoom& room) override;

    /// After the last part: makes limits of the counts.
    void finish();

   private:
    GpuRangeResult& result_;
    idx_t first_ = 0;
};

/// Hands on no more than so many results, and counts all.
class LimitedRangeSink : public RangeSink {
   public:
    /// most: 0 is no limit.
    LimitedRangeSink(RangeSink& sink, idx_t most) : sink_(sink), most_(most) {}

    RangeRoom room(const RangePart& part) override;
    void take(const RangePart& part, const RangeRoom& room) override;
    void abandon() noexcept override {
        sink_.abandon();
    }

    /// After the last part: throws FaissException with the total where that is
    /// more.
    void requireEnough() const;

   private:
    bool isOver(idx_t more) const {
        return most_ > 0 && total_ + more > most_;
    }

    RangeSink& sink_;
    const idx_t most_;
    idx_t total_ = 0;
};

} // namespace faiss_bits::gpu::detail
