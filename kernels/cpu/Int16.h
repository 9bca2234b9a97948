#pragma once

#include "kernels/cpu/Problem.h"
#include "kernels/cpu/Setup.h"

/// When a search finds its candidates by 16-bit integers (Int16Types.h).
namespace faiss_bits::cpu {

/// True if it does: certified, of vectors so long and queries so many that it
/// is worth packing them in this way, or because it is forced to. Throws Error
/// where it is forced to and cannot.
template <class T>
bool isForInt16(const Setup<T>& setup, const Problem<T>& problem);

/// From here on the sweeps of a search are of 16-bit integers.
void sweepByInt16(Setup<float>& setup);

} // namespace faiss_bits::cpu
