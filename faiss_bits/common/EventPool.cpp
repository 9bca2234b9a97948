#include "faiss_bits/common/EventPool.h"

#include <map>
#include <set>
#include <vector>

#include "kernels/common/ContextId.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/common/PerDevice.h"

namespace faiss_bits::gpu::detail {

namespace {

/// Events of a device, of one context: those of an earlier one are gone with
/// it, where a program has reset the device.
struct DeviceEvents {
    uint64_t context = 0;
    std::vector<std::unique_ptr<CudaEvent>> free;
    std::set<const CudaEvent*> made; // in this context

    /// Nothing may be done with them any more, not even destroy them.
    void forget() {
        for (auto& event : free) {
            (void)event.release();
        }
        free.clear();
        made.clear();
    }
};

PerDevice<std::map<int, DeviceEvents>>& eventPool() {
    // Never destroyed: the CUDA driver may be gone by then.
    static auto& pool = *new PerDevice<std::map<int, DeviceEvents>>;
    return pool;
}

} // namespace

void GiveEventBack::operator()(CudaEvent* event) const {
    eventPool().with(device, [&](auto& pool) {
        DeviceEvents& events = pool[device];
        if (events.made.count(event) > 0) {
            events.free.emplace_back(event);
        }
    });
}

PooledEvent takeEvent() {
    GiveEventBack back;
    BITS_CUDA_CHECK(cudaGetDevice(&back.device));
    const uint64_t context = contextId();
    CudaEvent* const event = eventPool().with(back.device, [&](auto& pool) {
        DeviceEvents& events = pool[back.device];
        if (events.context != context) {
            events.forget();
            events.context = context;
        }
        if (events.free.empty()) {
            events.free.push_back(std::make_unique<CudaEvent>());
            events.made.insert(events.free.back().get());
        }
        CudaEvent* const taken = events.free.back().release();
        events.free.pop_back();
        return taken;
    });
    return PooledEvent(event, back);
}

} // namespace faiss_bits::gpu::detail
