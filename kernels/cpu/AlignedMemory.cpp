#include "kernels/cpu/AlignedMemory.h"

#include <bit>
#include <cstdint>
#include <new>

namespace faiss_bits::cpu {

namespace {

/// Kept blocks are of the sizes 2^7 to 2^14, 160 KB in all at most.
constexpr int kFirstBits = 7, kSizes = 8, kMostOfSize = 16;
constexpr size_t kLargest = size_t(1) << (kFirstBits + kSizes - 1);
constexpr size_t kMostBytes = 1 << 15; ///< of a size

/// Checkers of memory have to see every block come and go.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kKeeps = false;
#else
constexpr bool kKeeps = true;
#endif

/// Of a thread. No destructor: buffers of other objects of the thread may be
/// given back after it.
struct KeptBlocks {
    void* blocks[kSizes][kMostOfSize];
    uint8_t counts[kSizes];
    bool isEnding; ///< the thread: nothing is kept any more
};
constinit thread_local KeptBlocks kept = {};

struct EndOfThread {
    ~EndOfThread() {
        kept.isEnding = true;
        for (int size = 0; size < kSizes; ++size) {
            for (int i = 0; i < kept.counts[size]; ++i) {
                ::operator delete (
                        kept.blocks[size][i], std::align_val_t{kAlignedMemory});
            }
            kept.counts[size] = 0;
        }
    }
};

/// Number of the size of a block of at most kLargest bytes.
int sizeOf(size_t bytes) {
    const int bits = std::bit_width(bytes > 0 ? bytes - 1 : 0);
    return bits > kFirstBits ? bits - kFirstBits : 0;
}

size_t bytesOf(int size) {
    return size_t(1) << (kFirstBits + size);
}

} // namespace

void* takeAligned(size_t bytes) {
    if (kKeeps && bytes <= kLargest) {
        const int size = sizeOf(bytes);
        if (kept.counts[size] > 0) {
            return kept.blocks[size][--kept.counts[size]];
        }
        bytes = bytesOf(size);
    }
    return ::operator new (bytes, std::align_val_t{kAlignedMemory});
}

void giveAligned(void* block, size_t bytes) noexcept {
    if (kKeeps && block && bytes <= kLargest && !kept.isEnding) {
        const int size = sizeOf(bytes);
        uint8_t& count = kept.counts[size];
        if (count < kMostOfSize && count * bytesOf(size) < kMostBytes) {
            thread_local EndOfThread end; // once a block is kept
            (void)&end;
            kept.blocks[size][count++] = block;
            return;
        }
    }
    ::operator delete (block, std::align_val_t{kAlignedMemory});
}

} // namespace faiss_bits::cpu
