#include "faiss_bits/range/RangeResults.h"

#include <algorithm>
#include <typeinfo>
#include <utility>

#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/HostParts.h"
#include "faiss_bits/common/Waiting.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

namespace {

constexpr size_t kResultBytesOfPart = sizeof(idx_t) + sizeof(float);

/// Of all parts together that wait on the device.
constexpr size_t kMostHeld = size_t(4) << 30;

/// Bytes that a call may take from the device for results: a quarter of what is
/// free.
size_t someOfWhatIsFree() {
    size_t free = 0;
    size_t all = 0;
    BITS_CUDA_CHECK(cudaMemGetInfo(&free, &all));
    return free / 4;
}

} // namespace

void allocateResults(faiss::RangeSearchResult& result) {
    try {
        result.do_allocation(); // makes limits of the counts
    } catch (...) {
        // Memory lacks for the second array.
        if (typeid(result) == typeid(faiss::RangeSearchResult)) {
            delete[] result.labels;
            result.labels = nullptr;
        }
        throw;
    }
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
        const RangeRoom& room,
        std::shared_ptr<faiss::gpu::GpuMemoryReservation> memory) {
    count_(first, counts);
    RangePiece piece;
    piece.size = total;
    piece.memory = std::move(memory);
    piece.onDevice = room.ids;
    piece.device = context;
    pieces_.push_back(std::move(piece));
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

/// isHeld_, and a block with room for the part if it is.
void HostRangeSink::findBlock_(const RangePart& part) {
    const size_t bytes = size_t(part.total) * kResultBytesOfPart;
    isHeld_ = mayHold_ && blockBytes_ - blockUsed_ >= bytes;
    // What is to come if all queries have as many, and some more.
    const double ofQuery = double(part.total) / double(part.counts.size());
    const double left = double(results_.numQueries() - first_ - part.first);
    const double results = std::max(1.1 * ofQuery * left, double(part.total));
    if (isHeld_ || !mayHold_ || !isLargeRange(size_t(results))) {
        return;
    }
    const size_t most = std::min(kMostHeld - bytesHeld_, someOfWhatIsFree());
    if (bytes > most) {
        return;
    }
    const size_t size = std::max(
            bytes,
            size_t(std::min(double(most), results * kResultBytesOfPart)));
    // Not of the temporary memory, a stack with the search's scratch on it.
    try {
        block_ = std::make_shared<faiss::gpu::GpuMemoryReservation>(
                context_.resources->allocMemoryHandle(faiss::gpu::AllocRequest(
                        faiss::gpu::AllocType::Other,
                        context_.device,
                        faiss::gpu::MemorySpace::Device,
                        context_.memoryStream,
                        size)));
    } catch (const faiss::FaissException&) {
        // Others took what was free: the rest goes to the host at once.
        mayHold_ = false;
        return;
    }
    blockBytes_ = size;
    blockUsed_ = 0;
    bytesHeld_ += size;
    isHeld_ = true;
}

RangeRoom HostRangeSink::room(const RangePart& part) {
    constexpr size_t kAlignment = 16;
    const size_t size = size_t(part.total);
    const size_t bytes = size * kResultBytesOfPart;
    findBlock_(part);
    char* memory = nullptr;
    if (isHeld_) {
        memory = static_cast<char*>(block_->get()) + blockUsed_;
        blockUsed_ += std::min(
                (bytes + kAlignment - 1) / kAlignment * kAlignment,
                blockBytes_ - blockUsed_);
    } else {
        memory_ = allocTemporary(context_, bytes);
        memory = static_cast<char*>(memory_.get());
    }
    RangeRoom room;
    room.ids = reinterpret_cast<idx_t*>(memory);
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
                room,
                block_);
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
