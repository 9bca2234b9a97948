#pragma once

#include <cstddef>

namespace faiss_bits {

constexpr size_t kAnySharedMemory = size_t(-1);

/// Asks for as much L1 as a kernel's shared memory leaves, on the current
/// device, in the launches that follow: `bytes` are those of all blocks that a
/// multiprocessor is to hold. kAnySharedMemory: L1 may stay as it is, and then
/// a kernel that begins while the one before still runs finds it as that one
/// has it, a tenth of what there is where most is shared memory. To change it
/// takes a microsecond or two, which few rows do not make up for. Cheap, and
/// lost where a program resets a device, so the call is never left out.
///
/// Threads  any
void preferL1(const void* kernel, size_t bytes);

} // namespace faiss_bits
