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

/// Memory for a part that is held; null: it is small, or there is too little.
std::shared_ptr<void> memoryToHold(size_t bytes, size_t bytesHeld) {
    // The driver copies as fast, as long as it takes to get the memory.
    constexpr size_t kLeast = size_t(4) << 20;
    constexpr size_t kMost = size_t(4) << 30; // with those before
    if (bytes < kLeast || bytesHeld + bytes > kMost) {
        return nullptr;
    }
    size_t free = 0;
    size_t all = 0;
    BITS_CUDA_CHECK(cudaMemGetInfo(&free, &all));
    if (bytes > free / 4) {
        return nullptr;
    }
    void* memory = nullptr;
    if (cudaMalloc(&memory, bytes) != cudaSuccess) {
        (void)cudaGetLastError();
        return nullptr;
    }
    return {memory, [](void* p) { (void)cudaFree(p); }};
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
        std::shared_ptr<void> memory) {
    count_(first, counts);
    RangePiece piece;
    piece.size = total;
    piece.memory = std::move(memory);
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
    held_ = mayHold_ ? memoryToHold(bytes, results_.bytesHeld()) : nullptr;
    if (!held_) {
        memory_ = allocTemporary(context_, bytes);
    }
    RangeRoom room;
    room.ids = static_cast<idx_t*>(held_ ? held_.get() : memory_.get());
    room.distances = reinterpret_cast<float*>(room.ids + size);
    return room;
}

void HostRangeSink::take(const RangePart& part, const RangeRoom& room) {
    throwIfInterrupted();
    if (held_) {
        results_.hold(
                context_,
                first_ + part.first,
                part.counts,
                part.total,
                std::move(held_));
        held_ = {};
        return;
    }
    results_.add(
            context_,
            first_ + part.first,
            part.counts,
            part.total,
            room.distances,
            room.ids);
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
