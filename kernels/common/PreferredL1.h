#pragma once

#include <cstddef>

namespace faiss_bits {

/// Asks for as much L1 as a kernel's shared memory leaves, on the current
/// device: `bytes` are those of all blocks that a multiprocessor is to hold.
/// Unless it is asked for, a kernel that begins while the one before still runs
/// finds L1 as that one has it, a tenth of what there is where it has most as
/// shared memory. Cheap, and lost where a program resets a device, so the call
/// is never left out.
///
/// Threads  any
void preferL1(const void* kernel, size_t bytes);

} // namespace faiss_bits
