#pragma once

#include <memory>
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

    /// The same of results that stay where they are until moveTo(): `room` has
    /// them when the stream has come so far, `memory` owns it.
    void hold(
            const GpuContext& context,
            idx_t first,
            const std::vector<idx_t>& counts,
            idx_t total,
            const RangeRoom& room,
            std::shared_ptr<faiss::gpu::GpuMemoryReservation> memory);

    idx_t numQueries() const {
        return idx_t(counts_.size());
    }

    /// change(ids, size) for every part; none is held.
    template <class Change>
    void changeIds(const Change& change) {
        for (const RangePiece& piece : pieces_) {
            change(piece.ids.get(), piece.size);
        }
    }

    /// Of all queries, by givePieces(). What was there is let go.
    void moveTo(faiss::RangeSearchResult& result);

   private:
    void count_(idx_t first, const std::vector<idx_t>& counts);

    std::vector<idx_t> counts_;
    std::vector<RangePiece> pieces_;
};

/// Brings parts to the host, where 4 MiB and more are expected in all when the
/// search has ended: their places in the result are known then, and they are
/// written once. Until then they take memory of the device, 4 GiB and a quarter
/// of what is free at most; what is beyond goes to the host at once. Asks
/// faiss::InterruptCallback for every part.
class HostRangeSink : public RangeSink {
   public:
    /// They must outlive it.
    ///
    /// mayHold  false: all go to the host at once, as ids have to be changed
    HostRangeSink(
            const GpuContext& context,
            RangeResults& results,
            bool mayHold = true)
            : context_(context), results_(results), mayHold_(mayHold) {}

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
        isHeld_ = false;
    }

   private:
    void findBlock_(const RangePart& part);

    const GpuContext& context_;
    RangeResults& results_;
    bool mayHold_;
    idx_t first_ = 0;
    TemporaryMemory memory_; // of a part
    /// Of parts that are held, one behind the other: the part is the next one.
    bool isHeld_ = false;
    std::shared_ptr<faiss::gpu::GpuMemoryReservation> block_;
    size_t blockBytes_ = 0;
    size_t blockUsed_ = 0;
    size_t bytesHeld_ = 0; // of all blocks
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
