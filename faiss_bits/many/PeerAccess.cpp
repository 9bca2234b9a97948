#include "faiss_bits/many/PeerAccess.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "faiss_bits/many/ManyDevices.h"
#include "kernels/common/ContextId.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

namespace {

using GetAttribute = CUresult (*)(void*, CUpointer_attribute, CUdeviceptr);

/// cuPointerGetAttribute of the driver, which is not linked: without a driver
/// the library must load. Null where there is none.
GetAttribute findGetAttribute() {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    constexpr const char* kName = "cuPointerGetAttribute";
#if CUDART_VERSION >= 12050
    const cudaError_t status = cudaGetDriverEntryPointByVersion(
            kName, &function, 12000, cudaEnableDefault, &found);
#else
    const cudaError_t status = cudaGetDriverEntryPoint(
            kName, &function, cudaEnableDefault, &found);
#endif
    if (status != cudaSuccess) {
        (void)cudaGetLastError();
        return nullptr;
    }
    return found == cudaDriverEntryPointSuccess
            ? reinterpret_cast<GetAttribute>(function)
            : nullptr;
}

} // namespace

bool enablePeerAccess(int device, int other) {
    // To ask again is an error of CUDA's, if a harmless one.
    static std::mutex mutex;
    // Of contexts: it is gone with one where a program resets the device.
    static std::map<std::pair<uint64_t, uint64_t>, bool> known;
    const std::lock_guard<std::mutex> lock(mutex);
    const auto contextOf = [](int of) {
        const CurrentDevice scope(of);
        return contextId();
    };
    const std::pair<uint64_t, uint64_t> pair = {
            contextOf(device), contextOf(other)};
    const auto found = known.find(pair);
    if (found != known.end() && pair.first != 0) {
        return found->second;
    }
    int can = 0;
    BITS_CUDA_CHECK(cudaDeviceCanAccessPeer(&can, device, other));
    if (!can) {
        return known[pair] = false;
    }
    const CurrentDevice scope(device);
    const cudaError_t status = cudaDeviceEnablePeerAccess(other, 0);
    if (status != cudaSuccess) {
        (void)cudaGetLastError(); // there are limits on the number of peers
    }
    return known[pair] = status == cudaSuccess ||
            status == cudaErrorPeerAccessAlreadyEnabled;
}

bool canUse(const void* memory) {
    static const GetAttribute getAttribute = findGetAttribute();
    int flags = 0;
    return getAttribute &&
            getAttribute(
                    &flags,
                    CU_POINTER_ATTRIBUTE_ACCESS_FLAGS,
                    reinterpret_cast<CUdeviceptr>(memory)) == CUDA_SUCCESS &&
            (flags & CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE) ==
            CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
}

} // namespace faiss_bits::gpu::detail
