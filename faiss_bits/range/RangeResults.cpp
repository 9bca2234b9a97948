#include "faiss_bits/range/RangeResults.h"

#include <algorithm>
#include <utility>

#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/HostParts.h"
#include "faiss_bits/common/Waiting.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

namespace {

constexpr size_t kResultBytesOfPart = sizeof(idx_t) + sizeof(float);

/// Whether a part waits on the device, after parts of bytesHeld.
bool isHeld(size_t size, size_t bytesHeld) {
    constexpr size_t kMost = size_t(4) << 30;
    const size_t bytes = size * kResultBytesOfPart;
    if (!isLargeRange(size) || bytesHeld + bytes > kMost) {
        return false;
    }
    size_t free = 0;
    size_t all = 0;
    BITS_CUDA_CHECK(cudaMemGetInfo(&free, &all));
    return bytes <= free / 4;
}

/// Not of the temporary memory, a stack with the search's scratch on it.
faiss::gpu::GpuMemoryReservation memoryToHold(
        const GpuContext& context,
        size_t bytes) {
    return context.resources->allocMemoryHandle(faiss::gpu::AllocRequest(
            faiss::gpu::AllocType::Other,
            context.device,
            faiss::gpu::MemorySpace::Device,
            context.memoryStream,
            bytes));
}

} // namespace

void requireRangeResult(const faiss::RangeSearchResult* result, idx_t n) {
    requireNotNull(result, "result");
    FAISS_THROW_IF_NOT_FMT(
            idx_t(result->nq) == n,
            "result->nq = %lld, but n = %lld",
            (long long)result->nq,
            (long long)n);
    requireNotNull(result->lims, "result->lims");
    FAISS_THROW_IF_NOT_MSG(
            !result->labels && !result->distances,
            "result holds the result of another search");
}

void allocateResults(faiss::RangeSearchResult& result) {
    result.do_allocation(); // makes limits of the counts
    const size_t total = result.lims[result.nq];
    wantLargePages(result.labels, total * sizeof(idx_t));
    wantLargePages(result.distances, total * sizeof(float));
}

void RangeResults::count_(idx_t first, const std::vector<idx_t>& counts) {
    for (size_t i = 0; i < counts.size(); ++i) {
        counts_[size_t(first) + i] += counts[i];
    }
}

void RangeResults::hold(
        const GpuContext& context,
        idx_t first,
        const std::vector<idx_t>& counts,
        idx_t total,
        faiss::gpu::GpuMemoryReservation memory) {
    count_(first, counts);
    RangePiece piece;
    piece.size = total;
    piece.memory = std::move(memory);
    piece.onDevice = static_cast<const idx_t*>(piece.memory.get());
    piece.device = context;
    pieces_.push_back(std::move(piece));
    bytesHeld_ += size_t(total) * kResultBytesOfPart;
}

void RangeResults::add(
        const GpuContext& context,
        idx_t first,
        const std::vector<idx_t>& counts,
        idx_t total,
        const float* distances,
        const idx_t* ids) {
    count_(first, counts);
    if (total == 0) {
        return;
    }
    const size_t size = size_t(total);
    RangePiece piece;
    piece.size = total;
    piece.distances = std::make_unique_for_overwrite<float[]>(size);
    piece.ids = std::make_unique_for_overwrite<idx_t[]>(size);
    touchPages(piece.distances.get(), size * sizeof(float));
    touchPages(piece.ids.get(), size * sizeof(idx_t));
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            piece.distances.get(),
            distances,
            size * sizeof(float),
            cudaMemcpyDeviceToHost,
            context.stream));
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            piece.ids.get(),
            ids,
            size * sizeof(idx_t),
            cudaMemcpyDeviceToHost,
            context.stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(context.stream));
    pieces_.push_back(std::move(piece));
}

void RangeResults::moveTo(faiss::RangeSearchResult& result) {
    std::copy(counts_.begin(), counts_.end(), result.lims);
    givePieces(std::move(pieces_), result);
}

RangeRoom HostRangeSink::room(const RangePart& part) {
    const size_t size = size_t(part.total);
    const size_t bytes = size * kResultBytesOfPart;
    isHeld_ = mayHold_ && isHeld(size, results_.bytesHeld());
    memory_ = isHeld_ ? memoryToHold(context_, bytes)
                      : allocTemporary(context_, bytes);
    RangeRoom room;
    room.ids = static_cast<idx_t*>(memory_.get());
    room.distances = reinterpret_cast<float*>(room.ids + size);
    return room;
}

void HostRangeSink::take(const RangePart& part, const RangeRoom& room) {
    throwIfInterrupted();
    if (part.total > 0 && isHeld_) {
        results_.hold(
                context_,
                first_ + part.first,
                part.counts,
                part.total,
                std::move(memory_));
    } else {
        results_.add(
                context_,
                first_ + part.first,
                part.counts,
                part.total,
                room.distances,
                room.ids);
    }
    memory_ = {};
}

DeviceRangeSink::DeviceRangeSink(GpuRangeResult& result, idx_t n)
        : result_(result) {
    result_.lims.assign(size_t(n) + 1, 0);
    result_.parts.clear();
}

RangeRoom DeviceRangeSink::room(const RangePart& part) {
    const GpuRangeResult::Part memory = result_.allocate(part.total);
    result_.parts.push_back(memory);
    return {memory.distances, memory.labels};
}

void DeviceRangeSink::take(const RangePart& part, const RangeRoom&) {
    throwIfInterrupted();
    for (size_t i = 0; i < part.counts.size(); ++i) {
        result_.lims[size_t(first_ + part.first) + i + 1] += part.counts[i];
    }
}

void DeviceRangeSink::finish() {
    for (size_t i = 1; i < result_.lims.size(); ++i) {
        result_.lims[i] += result_.lims[i - 1];
    }
}

RangeRoom LimitedRangeSink::room(const RangePart& part) {
    return isOver(part.total) ? RangeRoom() : sink_.room(part);
}

void LimitedRangeSink::take(const RangePart& part, const RangeRoom& room) {
    if (isOver(part.total)) {
        throwIfInterrupted();
    } else {
        sink_.take(part, room);
    }
    total_ += part.total;
}

void LimitedRangeSink::requireEnough() const {
    FAISS_THROW_IF_NOT_FMT(
            !isOver(0),
            "max_results = %lld, but %lld results are in range",
            (long long)most_,
            (long long)total_);
}

} // namespace faiss_bits::gpu::detail
