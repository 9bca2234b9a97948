#include "faiss_bits/range/RangeMoves.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>

#include <faiss/gpu/utils/DeviceUtils.h>

#include "faiss_bits/common/HostParts.h"
#include "faiss_bits/common/PinnedMemory.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

namespace {

constexpr size_t kResult = sizeof(idx_t) + sizeof(float);
/// Results that a thread fetches at a time, 1.5 MB: 30 us of the link. A thread
/// has two such pieces of pinned memory.
constexpr size_t kMostOfChunk = size_t(1) << 17;
/// Copying is half of a thread's work: clearing new memory is the other.
constexpr idx_t kMostThreads = 16;
/// Results, at least, so that starting a thread does not count. Not tuned.
constexpr idx_t kLeastOfThread = idx_t(1) << 17;
/// With less pinned memory than for these the driver copies.
constexpr size_t kLeastOfChunk = size_t(1) << 12;

/// Some results of one block.
struct Chunk {
    const RangeMoves* moves;
    const RangeBlock* block;
    size_t inBlock; // the first
    size_t number;  // of the first among all of the moves
    size_t size;
};

std::vector<Chunk> chunksOf(const std::vector<RangeMoves>& moves, size_t most) {
    std::vector<Chunk> chunks;
    for (const RangeMoves& one : moves) {
        size_t number = 0;
        for (const RangeBlock& block : one.blocks) {
            for (size_t at = 0; at < block.size; at += most) {
                const size_t size = std::min(most, block.size - at);
                chunks.push_back({&one, &block, at, number, size});
                number += size;
            }
        }
    }
    return chunks;
}

/// A thread's: fetches a chunk while the one before goes to its places.
class Mover {
   public:
    /// pinned: two chunks, or null.
    Mover(char* pinned, size_t ofChunk, float* distances, idx_t* ids)
            : ofChunk_(ofChunk), distances_(distances), ids_(ids) {
        for (size_t i = 0; i < slots_.size(); ++i) {
            slots_[i].data = pinned ? pinned + i * ofChunk * kResult : nullptr;
        }
    }
    /// Nothing comes into the memory afterwards.
    ~Mover() {
        for (const Slot& slot : slots_) {
            if (slot.isUnderWay) {
                (void)cudaStreamSynchronize(slot.stream);
            }
        }
    }
    Mover(const Mover&) = delete;
    Mover& operator=(const Mover&) = delete;

    void run(const Chunk* begin, const Chunk* end) {
        for (const Chunk* chunk = begin; chunk != end; ++chunk) {
            Slot& slot = slots_[size_t(chunk - begin) % 2];
            fetch_(*chunk, slot);
            if (chunk != begin) {
                place_(chunk[-1], slots_[size_t(chunk - begin - 1) % 2]);
            }
        }
        if (begin != end) {
            place_(end[-1], slots_[size_t(end - begin - 1) % 2]);
        }
    }

   private:
    struct Slot {
        char* data = nullptr;
        std::unique_ptr<char[]> own; // where there is no pinned memory
        std::optional<CudaEvent> copied;
        cudaStream_t stream = nullptr;
        bool isUnderWay = false;

        idx_t* ids() const {
            return reinterpret_cast<idx_t*>(data);
        }
        float* distances(size_t size) const {
            return reinterpret_cast<float*>(ids() + size);
        }
    };

    void fetch_(const Chunk& chunk, Slot& slot) {
        const GpuContext* const from = chunk.block->device;
        if (!from) {
            return;
        }
        if (!slot.data) {
            slot.own =
                    std::make_unique_for_overwrite<char[]>(ofChunk_ * kResult);
            slot.data = slot.own.get();
        }
        const faiss::gpu::DeviceScope scope(from->device);
        slot.stream = from->resources->getAsyncCopyStream(from->device);
        const auto copy = [&](void* to, const void* of, size_t bytes) {
            BITS_CUDA_CHECK(cudaMemcpyAsync(
                    to, of, bytes, cudaMemcpyDeviceToHost, slot.stream));
        };
        slot.copied.emplace(); // of this device
        slot.isUnderWay = true;
        copy(slot.ids(),
             chunk.block->ids + chunk.inBlock,
             chunk.size * sizeof(idx_t));
        copy(slot.distances(chunk.size),
             chunk.block->distances + chunk.inBlock,
             chunk.size * sizeof(float));
        slot.copied->record(slot.stream);
    }

    void place_(const Chunk& chunk, Slot& slot) {
        if (!chunk.block->device) {
            scatter_(
                    chunk,
                    chunk.block->distances + chunk.inBlock,
                    chunk.block->ids + chunk.inBlock);
            return;
        }
        slot.copied->wait();
        slot.isUnderWay = false;
        scatter_(chunk, slot.distances(chunk.size), slot.ids());
    }

    void scatter_(const Chunk& chunk, const float* distances, const idx_t* ids)
            const {
        const RangeMoves& moves = *chunk.moves;
        size_t at = chunk.number;
        const size_t end = at + chunk.size;
        const auto above =
                std::upper_bound(moves.limits.begin(), moves.limits.end(), at);
        for (size_t q = size_t(above - moves.limits.begin()) - 1; at < end;
             ++q) {
            const size_t size = std::min(end, moves.limits[q + 1]) - at;
            const size_t to = moves.places[q] + (at - moves.limits[q]);
            std::copy_n(distances, size, distances_ + to);
            if (moves.idOffset == 0) {
                std::copy_n(ids, size, ids_ + to);
            } else {
                for (size_t i = 0; i < size; ++i) {
                    ids_[to + i] = ids[i] + moves.idOffset;
                }
            }
            at += size;
            distances += size;
            ids += size;
        }
    }

    const size_t ofChunk_;
    float* const distances_;
    idx_t* const ids_;
    std::array<Slot, 2> slots_;
};

/// Takes pinned memory of the first device whose is free.
void takePinned(const std::vector<RangeMoves>& moves, PinnedMemory& pinned) {
    for (const RangeMoves& one : moves) {
        for (const RangeBlock& block : one.blocks) {
            if (block.device && pinned.take(*block.device->resources)) {
                // FAISS's own calls may have left copies from it under way.
                waitFor(block.device->resources->getAsyncCopyStream(
                        block.device->device));
                return;
            }
        }
    }
}

} // namespace

void moveRanges(
        const std::vector<RangeMoves>& moves,
        float* distances,
        idx_t* ids) {
    PinnedMemory pinned;
    takePinned(moves, pinned);
    const idx_t most = hostParts(kMostThreads, 1, kMostThreads);
    const size_t perChunk = pinned.bytes() / (2 * size_t(most) * kResult);
    // Its parts begin at multiples of 16 bytes.
    const size_t ofChunk = perChunk < kLeastOfChunk
            ? kMostOfChunk
            : std::min(perChunk / 4 * 4, kMostOfChunk);
    char* const memory = perChunk < kLeastOfChunk ? nullptr : pinned.data();
    const std::vector<Chunk> chunks = chunksOf(moves, ofChunk);
    size_t results = 0;
    for (const Chunk& chunk : chunks) {
        results += chunk.size;
    }
    const idx_t threads =
            hostParts(idx_t(results), kLeastOfThread, kMostThreads);
    const auto move = [&](idx_t begin, idx_t end) {
        for (idx_t thread = begin; thread < end; ++thread) {
            const size_t slots = size_t(thread) * 2 * ofChunk * kResult;
            Mover mover(
                    memory ? memory + slots : nullptr, ofChunk, distances, ids);
            const auto first = [&](idx_t of) {
                return chunks.data() + size_t(of) * chunks.size() / threads;
            };
            mover.run(first(thread), first(thread + 1));
        }
    };
    forHostParts(threads, 1, move, kMostThreads);
}

} // namespace faiss_bits::gpu::detail
