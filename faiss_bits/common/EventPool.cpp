#include "faiss_bits/common/EventPool.h"

#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "kernels/common/ContextId.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

namespace {

/// Events of a device, of one context: those of an earlier one are gone with
/// it, where a program has reset the device.
struct DeviceEvents {
    uint64_t context = 0;
    std::vector<std::unique_ptr<CudaEvent>> free;
    std::set<const CudaEvent*> made; // in this context

    /// Nothing may be done with them any more.
    void forget() {
        for (auto& event : free) {
            (void)event.release();
        }
        free.clear();
        made.clear();
    }
};

struct EventPool {
    std::mutex mutex;
    std::map<int, DeviceEvents> devices;
};

EventPool& eventPool() {
    // Never destroyed: the CUDA driver may be gone by then.
    static auto& pool = *new EventPool;
    return pool;
}

} // namespace

void GiveEventBack::operator()(CudaEvent* event) const {
    EventPool& pool = eventPool();
    const std::lock_guard<std::mutex> lock(pool.mutex);
    DeviceEvents& events = pool.devices[device];
    if (events.made.count(event) > 0) {
        events.free.emplace_back(event);
    }
}

PooledEvent takeEvent() {
    GiveEventBack back;
    BITS_CUDA_CHECK(cudaGetDevice(&back.device));
    const uint64_t context = contextId();
    EventPool& pool = eventPool();
    const std::lock_guard<std::mutex> lock(pool.mutex);
    DeviceEvents& events = pool.devices[back.device];
    if (events.context != context) {
        events.forget();
        events.context = context;
    }
    if (events.free.empty()) {
        events.free.push_back(std::make_unique<CudaEvent>());
        events.made.insert(events.free.back().get());
    }
    PooledEvent event(events.free.back().release(), back);
    events.free.pop_back();
    return event;
}

} // namespace faiss_bits::gpu::detail
