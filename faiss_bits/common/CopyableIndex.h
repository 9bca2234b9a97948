#pragma once

#include <faiss/Index.h>

/// Not part of the API.
namespace faiss_bits::gpu::detail {

/// Throws FaissException "<name> is a <class>..." for a CPU index that is more
/// than the index of FAISS that its class is derived from: copied as that, it
/// would lose something, or its codes would be read as what they are not. These
/// are IndexFlatPanorama and IndexIVFFlatPanorama (components in levels, not
/// vector by vector), IndexIVFFlatDedup (the ids of equal vectors lie beside
/// the lists) and IndexIVFPQR (codes of a second quantizer). Others pass.
void requireCopyable(const faiss::Index& index, const char* name);

} // namespace faiss_bits::gpu::detail
