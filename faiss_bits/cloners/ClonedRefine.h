#pragma once

#include <functional>

namespace faiss {
struct Index;
} // namespace faiss

namespace faiss_bits::detail {

/// A copy of one part of an index, owned by the caller.
using ClonePart = std::function<faiss::Index*(const faiss::Index*)>;

/// A copy of an IndexRefine or IndexRefineFlat by its parts, which not every
/// FAISS can clone, owned by the caller; null for any other index.
faiss::Index* cloneRefine(
        const faiss::Index* index,
        const ClonePart& cloneBase,
        const ClonePart& cloneRefining);

} // namespace faiss_bits::detail
