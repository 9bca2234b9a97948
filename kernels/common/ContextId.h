#pragma once

#include <cstdint>

namespace faiss_bits {

/// A number of the CUDA context that is current to this thread, which no other
/// context of the process has or had: a device that is reset gets another one.
/// 0 if there is none, or the driver does not tell. Costs some nanoseconds.
uint64_t currentContextId();

} // namespace faiss_bits
