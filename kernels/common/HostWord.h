#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace faiss_bits {

/// What a word of device memory holds when all is done that is on the stream
/// now: waits for it.
///
/// A kernel writes it to pinned memory of the calling thread; a program may
/// reset the device between two calls. The driver takes
/// longer for a copy: of 22 us from the end of the last kernel until the host
/// had four bytes in memory of its own, 8 until the copy began and 7 until the
/// call returned, behind which the wait came (H200).
///
/// Memory   4 bytes of pinned memory for a thread and device; another thread
///          gets them when it has ended. Where there are none the driver copies
/// Device   that of the stream is the current one
/// Errors   throws Error: whatever has failed on the stream
uint32_t waitForWord(const uint32_t* word, cudaStream_t stream);

} // namespace faiss_bits
