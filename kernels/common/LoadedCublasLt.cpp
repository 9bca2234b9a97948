#include "kernels/common/LoadedCublasLt.h"

#include <dlfcn.h>

#include "kernels/common/Error.h"

namespace faiss_bits {

CublasLtCalls loadCublasLt(const char* name) {
    void* library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (!library) {
        (void)dlerror();
        library = dlopen(name, RTLD_LAZY);
    }
    if (!library) {
        const char* said = dlerror();
        throw Error(formatMessage(
                "products need cuBLASLt: %s is not loaded, as FAISS's GPU part "
                "would have it, and cannot be (%s)",
                name,
                said ? said : "the loader does not say why"));
    }
    CublasLtCalls calls;
    const std::string missing = fillCublasLtCalls(
            calls,
            [&](const char* function) { return dlsym(library, function); });
    if (!missing.empty()) {
        throw Error(formatMessage(
                "products need cuBLASLt: the %s of this process has no %s",
                name,
                missing.c_str()));
    }
    if (calls.version() < kLeastCublasLtVersion) {
        throw Error(formatMessage(
                "products need cuBLASLt of CUDA 12 or later: the %s of this "
                "process says that it is version %zu",
                name,
                calls.version()));
    }
    return calls;
}

#ifdef FAISS_BITS_CUBLASLT
const CublasLtCalls& cublasLtCalls() {
    // Looked for again after a failure: FAISS may be loaded by then.
    static const CublasLtCalls calls = loadCublasLt(FAISS_BITS_CUBLASLT);
    return calls;
}
#endif

} // namespace faiss_bits
