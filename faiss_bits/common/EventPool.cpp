#include "faiss_bits/common/EventPool.h"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

namespace {

struct EventPool {
    std::mutex mutex;
    std::map<int, std::vector<std::unique_ptr<CudaEvent>>> events; // by device
};

EventPool& eventPool() {
    // Never destroyed: the CUDA driver may be gone by then.
    static auto& pool = *new EventPool;
    return pool;
}

} // namespace

void GiveEventBack::operator()(CudaEvent* event) const {
    std::unique_ptr<CudaEvent> given(event);
    EventPool& pool = eventPool();
    const std::lock_guard<std::mutex> lock(pool.mutex);
    pool.events[device].push_back(std::move(given));
}

PooledEvent takeEvent() {
    GiveEventBack back;
    BITS_CUDA_CHECK(cudaGetDevice(&back.device));
    EventPool& pool = eventPool();
    {
        const std::lock_guard<std::mutex> lock(pool.mutex);
        auto& events = pool.events[back.device];
        if (!events.empty()) {
            PooledEvent event(events.back().release(), back);
            events.pop_back();
            return event;
        }
    }
    return PooledEvent(std::make_unique<CudaEvent>().release(), back);
}

} // namespace faiss_bits::gpu::detail
