#pragma once

#include "kernels/cpu/Lengths.h"
#include "kernels/cpu/Setup.h"

namespace faiss_bits::cpu {

/// What bounds of errors need to know of all vectors, before they are swept:
/// nothing but for Product and Cosine. Calls the interrupt hook in between.
template <class T>
void measureLengths(const Setup<T>& setup, Lengths<T>& lengths);

} // namespace faiss_bits::cpu
