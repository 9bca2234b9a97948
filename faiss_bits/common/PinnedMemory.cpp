#include "faiss_bits/common/PinnedMemory.h"

#include <mutex>
#include <set>

namespace faiss_bits::gpu::detail {

namespace {

std::mutex mutex;

/// What calls have.
std::set<const void*>& inUse() {
    static auto& all = *new std::set<const void*>; // calls end late
    return all;
}

} // namespace

bool PinnedMemory::take(faiss::gpu::GpuResources& resources) {
    if (data_) {
        return true;
    }
    const auto memory = resources.getPinnedMemory();
    const std::lock_guard<std::mutex> lock(mutex);
    if (!memory.first || !inUse().insert(memory.first).second) {
        return false;
    }
    data_ = static_cast<char*>(memory.first);
    bytes_ = memory.second;
    return true;
}

PinnedMemory::~PinnedMemory() {
    if (data_) {
        const std::lock_guard<std::mutex> lock(mutex);
        inUse().erase(data_);
    }
}

} // namespace faiss_bits::gpu::detail
