#pragma once

/// Of the headers; releases of one minor version are compatible.
#define FAISS_BITS_VERSION_MAJOR 0
/// Likewise.
#define FAISS_BITS_VERSION_MINOR 1
/// Likewise.
#define FAISS_BITS_VERSION_PATCH 0

namespace faiss_bits {

/// "major.minor.patch" of the library that is loaded, where the macros are
/// those of the headers.
const char* version();

/// True if the library was built with the GPU part.
bool hasGpuPart();

} // namespace faiss_bits
