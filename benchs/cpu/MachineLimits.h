#pragma once

#include <cstddef>
#include <string>

/// What the machine can do at most, measured now: results are shares of it.
namespace faiss_bits::bench {

/// Multiply-adds a second in 10^9 operations (two each), all operands in
/// registers, with the widest vectors that run here. Best of some 50 ms.
///
/// @param threads  >= 1: that many at once, by OpenMP
template <class T> // float or double
double measureFmaPeak(int threads);

/// Milliseconds to read `bytes` at `data` once, in order, a part a thread.
double timeReading(const void* data, size_t bytes, int threads);

/// Instruction set of the loops above, as Highway names it.
std::string machineTarget();

} // namespace faiss_bits::bench
