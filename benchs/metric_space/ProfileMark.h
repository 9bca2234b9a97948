#pragma once

namespace faiss_bits::bench {

/// Launches a kernel that does nothing, of `number` blocks, so that a
/// profiler's list of kernels says which cell the ones behind it are of.
void enqueueProfileMark(int number);

} // namespace faiss_bits::bench
