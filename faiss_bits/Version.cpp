#include "faiss_bits/Version.h"

#define FAISS_BITS_TEXT_OF(x) #x
#define FAISS_BITS_TEXT(x) FAISS_BITS_TEXT_OF(x)

namespace faiss_bits {

const char* version() {
    return FAISS_BITS_TEXT(FAISS_BITS_VERSION_MAJOR) "." FAISS_BITS_TEXT(
            FAISS_BITS_VERSION_MINOR) "." FAISS_BITS_TEXT(FAISS_BITS_VERSION_PATCH);
}

bool hasGpuPart() {
#if defined(FAISS_BITS_GPU_PART)
    return true;
#else
    return false;
#endif
}

} // namespace faiss_bits
