#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace faiss_bits {

/// What a word of device memory holds when all is done that is on the stream
/// now: waits for it.
///
/// A kernel writes it to pinned memory of the calling thread. The driver takes
/// longer for a copy: of 22 us from the end of the last kernel until the host
/// had four bytes in memory of its own, 8 until the copy began and 7 until the
/// call returned, behind which the wait came (H200).
///
/// Memory   4 bytes of pinned memory a thread, until it ends. Where there are
///          none the driver copies
/// Errors   throws Error: whatever has failed on the stream
uint32_t waitForWord(const uint32_t* word, cudaStream_t stream);

} // namespace faiss_bits
