/// A cuBLASLt that is looked for at run time, by the name of its file.
#pragma once

#include "kernels/common/CublasLtCalls.h"

namespace faiss_bits {

/// Functions of the library of this name, such as "libcublasLt.so.12": one that
/// the process has loaded, else one that the loader finds.
///
/// The name has the version that made FAISS's handles; a process may hold
/// another one too (torch's), which must not get them.
///
/// Errors   throws Error, with the name and what the loader said, where there
///          is none, where it lacks a function, or where it is of before CUDA
///          12
/// Memory   the library stays loaded
CublasLtCalls loadCublasLt(const char* name);

} // namespace faiss_bits
