#pragma once

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/FaissAssert.h>

/// Not part of the API.
namespace faiss_bits::detail {

/// Throws FaissException "computation interrupted" if faiss::InterruptCallback
/// wants the call to end: as its check(), which several threads at once may not
/// call.
inline void throwIfInterrupted() {
    if (faiss::InterruptCallback::is_interrupted()) {
        FAISS_THROW_MSG("computation interrupted");
    }
}

} // namespace faiss_bits::detail
