#include "kernels/common/DeviceSpeed.h"

#include <map>
#include <mutex>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits {

namespace {

/// What the driver says of an H200: kHz and bits.
constexpr double kClock = 1980e3;
constexpr double kMultiprocessors = 132;
constexpr double kMemoryClock = 3201e3;
constexpr double kMemoryWidth = 6144;

double attributeOf(cudaDeviceAttr attribute, int device) {
    int value = 0;
    BITS_CUDA_CHECK(cudaDeviceGetAttribute(&value, attribute, device));
    return value;
}

DeviceSpeed askFor(int device) {
    DeviceSpeed speed;
    const double clock = attributeOf(cudaDevAttrClockRate, device);
    const double multiprocessors =
            attributeOf(cudaDevAttrMultiProcessorCount, device);
    const double memoryClock = attributeOf(cudaDevAttrMemoryClockRate, device);
    const double memoryWidth =
            attributeOf(cudaDevAttrGlobalMemoryBusWidth, device);
    // Some drivers keep clocks to themselves, and say 0.
    if (clock > 0) {
        speed.arithmetic =
                clock * multiprocessors / (kClock * kMultiprocessors);
    }
    if (memoryClock > 0 && memoryWidth > 0) {
        speed.bytesPerSecond *=
                memoryClock * memoryWidth / (kMemoryClock * kMemoryWidth);
    }
    return speed;
}

} // namespace

DeviceSpeed deviceSpeed(int device) {
    if (device == -1) {
        BITS_CUDA_CHECK(cudaGetDevice(&device));
    }
    static std::mutex mutex;
    static std::map<int, DeviceSpeed> known;
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = known.find(device);
    if (found != known.end()) {
        return found->second;
    }
    return known[device] = askFor(device);
}

} // namespace faiss_bits
