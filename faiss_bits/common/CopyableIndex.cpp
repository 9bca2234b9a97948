#include "faiss_bits/common/CopyableIndex.h"

#include <typeinfo>

#include <faiss/IndexFlat.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexIVFPQR.h>

#include "faiss_bits/common/FaissCompat.h"
#include "faiss_bits/common/FaissErrors.h"

#if FAISS_BITS_FAISS_HAS_IVF_PANORAMA
#include <faiss/IndexIVFFlatPanorama.h>
#endif

namespace faiss_bits::gpu::detail {

namespace {

/// What a copy would not have; null: nothing that is known.
const char* lossOf(const faiss::Index& index) {
    if (dynamic_cast<const faiss::IndexIVFFlatDedup*>(&index)) {
        return "ids of equal vectors, which lie beside its lists";
    }
    if (dynamic_cast<const faiss::IndexIVFPQR*>(&index)) {
        return "codes of its second quantizer (an IndexRefineFlat over an "
               "IndexIVFPQ can be copied)";
    }
    [[maybe_unused]] static constexpr char kLevels[] =
            "vectors, whose components it stores in levels (add what "
            "reconstruct_n gives to a flat index or lists of vectors)";
#if FAISS_BITS_FAISS_HAS_IVF_PANORAMA
    if (dynamic_cast<const faiss::IndexIVFFlatPanorama*>(&index)) {
        return kLevels;
    }
#endif
#if FAISS_BITS_FAISS_HAS_FLAT_PANORAMA
    if (dynamic_cast<const faiss::IndexFlatPanorama*>(&index)) {
        return kLevels;
    }
#endif
    return nullptr;
}

} // namespace

void requireCopyable(const faiss::Index& index, const char* name) {
    const char* loss = lossOf(index);
    FAISS_THROW_IF_NOT_FMT(
            !loss,
            "%s is a %s: a copy on a GPU would not have the %s",
            name,
            faiss::demangle_cpp_symbol(typeid(index).name()).c_str(),
            loss);
}

} // namespace faiss_bits::gpu::detail
