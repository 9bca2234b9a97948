#pragma once

#include <faiss/clone_index.h>

namespace faiss_bits {

/// FAISS's cloner on the CPU, with our indexes.
///
/// An IndexFlat, IndexFlatL2 or IndexFlatIP of a metric that we have becomes an
/// IndexFusedFlat, and an IndexFusedFlat stays one; also where it is the
/// quantizer of an IndexIVF, or inside an IndexIDMap, IndexPreTransform,
/// IndexRefine or whatever else FAISS clones by its parts. An IndexIVFFlat
/// of L2 or inner product becomes an IndexFusedIVFFlat in the same places.
/// Others are cloned as FAISS does.
struct FusedCloner : faiss::Cloner {
    /// A copy of one index; FAISS calls it for its parts too.
    faiss::Index* clone_Index(const faiss::Index* index) override;
};

/// A copy of an index that searches with our indexes wherever FAISS's were in
/// it: the way from a file (faiss::read_index) to ours, and what to use for
/// faiss::clone_index where our indexes shall stay.
///
/// Result   a new index, owned by the caller; `index` stays as it is
/// Errors   FaissException: a null pointer, an index that FAISS cannot clone
faiss::Index* index_to_fused(const faiss::Index* index);

} // namespace faiss_bits
