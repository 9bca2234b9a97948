#pragma once

#include <array>
#include <mutex>
#include <utility>

namespace faiss_bits {

/// What is known of each device, as a map whose keys name the device. Each of
/// the first 64 has a lock of its own: threads that launch kernels on different
/// devices do not wait for each other, as one that sleeps takes long to wake.
///
/// Threads  any
template <class Map>
class PerDevice {
   public:
    /// f(map) of the device's map, while nobody else has it.
    template <class F>
    auto with(int device, const F& f) {
        Slot& slot = slots_[unsigned(device) % kSlots];
        const std::lock_guard<std::mutex> lock(slot.mutex);
        return f(slot.map);
    }

   private:
    static constexpr unsigned kSlots = 64;
    struct alignas(64) Slot { // a cache line
        std::mutex mutex;
        Map map;
    };
    std::array<Slot, kSlots> slots_;
};

/// map[key], made by make() where it is not there yet.
template <class Map, class Make>
typename Map::mapped_type findOrMake(
        Map& map,
        const typename Map::key_type& key,
        const Make& make) {
    const auto found = map.find(key);
    return found != map.end() ? found->second
                              : map.emplace(key, make()).first->second;
}

} // namespace faiss_bits
