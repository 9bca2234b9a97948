#include "faiss_bits/dropin/HostCarrier.h"

#include <cuda_runtime.h>

#include "faiss_bits/dropin/Device.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/common/Workspace.h"

namespace faiss_bits::dropin {

HostCarrier::HostCarrier(int device) : device_(device) {
    const std::lock_guard<std::mutex> lock(mutex());
    std::vector<Parts>& idle = kept()[device];
    if (idle.empty()) {
        idle.push_back(make());
    }
    parts_ = idle.back();
    idle.pop_back();
}

HostCarrier::~HostCarrier() {
    const std::lock_guard<std::mutex> lock(mutex());
    std::vector<Parts>& all = kept()[device_];
    // The last is taken next: by the thread that searches, which alone needs
    // where results land.
    all.insert(parts_.landing ? all.end() : all.begin(), parts_);
}

int HostCarrier::deviceOfThread() {
    int device = 0;
    BITS_CUDA_CHECK(cudaGetDevice(&device));
    return device;
}

char* HostCarrier::landing() {
    if (!parts_.landing) {
        const RelaxedCapture relaxed;
        void* memory = nullptr;
        BITS_CUDA_CHECK(cudaHostAlloc(
                &memory,
                kMostTogether + WorkspaceSlices::kAlignment,
                cudaHostAllocPortable));
        parts_.landing = static_cast<char*>(memory);
    }
    return parts_.landing;
}

HostCarrier::Parts HostCarrier::make() {
    const RelaxedCapture relaxed;
    Parts parts;
    void* memory = nullptr;
    BITS_CUDA_CHECK(
            cudaHostAlloc(&memory, 2 * kPieceBytes, cudaHostAllocPortable));
    parts.pinned = static_cast<char*>(memory);
    BITS_CUDA_CHECK(
            cudaStreamCreateWithFlags(&parts.stream, cudaStreamNonBlocking));
    const auto create = [](cudaEvent_t& event) {
        BITS_CUDA_CHECK(
                cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    };
    create(parts.copied[0]);
    create(parts.copied[1]);
    create(parts.searched);
    for (cudaEvent_t& event : parts.landed) {
        create(event);
    }
    return parts;
}

// Never destroyed: the CUDA driver may be gone by then.
std::mutex& HostCarrier::mutex() {
    static auto& one = *new std::mutex;
    return one;
}

std::map<int, std::vector<HostCarrier::Parts>>& HostCarrier::kept() {
    static auto& all = *new std::map<int, std::vector<Parts>>;
    return all;
}

} // namespace faiss_bits::dropin
