#pragma once

#include <cstddef>

/// Memory of AlignedBuffer. A search of few vectors takes some twenty small
/// blocks, and aligned ones cost the system's allocator more than the search
/// itself: so a thread keeps small blocks that it gives back, for its next
/// ones.
namespace faiss_bits::cpu {

/// Where blocks begin, in bytes.
constexpr size_t kAlignedMemory = 128;

/// A block that is not initialised. Throws std::bad_alloc.
void* takeAligned(size_t bytes);

/// Gives a block of so many bytes back, on whatever thread; nullptr is none.
void giveAligned(void* block, size_t bytes) noexcept;

} // namespace faiss_bits::cpu
