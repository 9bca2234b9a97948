#include "kernels/common/ContextId.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace faiss_bits {

namespace {

using GetId = CUresult (*)(CUcontext, unsigned long long*);

/// cuCtxGetId of the driver, which is not linked: without a driver the library
/// must load. Null where there is none.
GetId findGetId() {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    const cudaError_t status = cudaGetDriverEntryPointByVersion(
            "cuCtxGetId", &function, 12000, cudaEnableDefault, &found);
#else
    const cudaError_t status = cudaGetDriverEntryPoint(
            "cuCtxGetId", &function, cudaEnableDefault, &found);
#endif
    if (status != cudaSuccess) {
        (void)cudaGetLastError();
        return nullptr;
    }
    return found == cudaDriverEntryPointSuccess
            ? reinterpret_cast<GetId>(function)
            : nullptr;
}

} // namespace

uint64_t contextId() {
    static const GetId getId = findGetId();
    unsigned long long id = 0;
    if (!getId) {
        return 0;
    }
    if (getId(nullptr, &id) == CUDA_SUCCESS) {
        return id;
    }
    // The thread has none yet, or no more: the runtime makes it.
    if (cudaFree(nullptr) != cudaSuccess) {
        (void)cudaGetLastError(); // whoever works with it is told
        return 0;
    }
    return getId(nullptr, &id) == CUDA_SUCCESS ? id : 0;
}

} // namespace faiss_bits
