#include "faiss_bits/common/EventPool.h"

#include <map>
#include <utility>
#include <vector>

#include "kernels/common/ContextId.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/common/PerDevice.h"

namespace faiss_bits::gpu::detail {

namespace {

/// By device and context. Those of a context that is gone stay for good: some
/// bytes each, as many as calls had at a time, each time a program resets the
/// device. Nothing may be done with them any more, not even destroy them; and
/// whether a context is gone cannot be told from its number: another one of the
/// device may be current while it lives (driver API).
using FreeEvents = std::
        map<std::pair<int, uint64_t>, std::vector<std::unique_ptr<CudaEvent>>>;

PerDevice<FreeEvents>& eventPool() {
    // Never destroyed: the CUDA driver may be gone by then.
    static auto& pool = *new PerDevice<FreeEvents>;
    return pool;
}

} // namespace

void GiveEventBack::operator()(CudaEvent* event) const {
    eventPool().with(device, [&](FreeEvents& pool) {
        pool[{device, context}].emplace_back(event);
    });
}

PooledEvent takeEvent() {
    GiveEventBack back;
    BITS_CUDA_CHECK(cudaGetDevice(&back.device));
    back.context = contextId();
    CudaEvent* const event =
            eventPool().with(back.device, [&](FreeEvents& pool) {
                auto& events = pool[{back.device, back.context}];
                if (events.empty()) {
                    return std::make_unique<CudaEvent>().release();
                }
                CudaEvent* const taken = events.back().release();
                events.pop_back();
                return taken;
            });
    return PooledEvent(event, back);
}

} // namespace faiss_bits::gpu::detail
