#include "kernels/common/ContextId.h"

#include <cuda_runtime_api.h>

namespace faiss_bits {

namespace {

/// cuCtxGetId of the driver, without linking it: status of (context or nullptr
/// for the current one, id).
using GetId = int (*)(void*, unsigned long long*);

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

uint64_t currentContextId() {
    static const GetId getId = findGetId();
    unsigned long long id = 0;
    return getId && getId(nullptr, &id) == 0 ? uint64_t(id) : 0;
}

} // namespace faiss_bits
