#include "tests/flat/FakeCuda.h"

#include "kernels/common/ContextId.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

namespace faiss_bits::test::fake {

namespace {

/// Work that says false as long as it has to wait.
using Work = std::function<bool()>;

struct Stream {
    std::deque<Work> work;
    bool isCaptured = false;
};

struct Event {
    std::shared_ptr<bool> done = std::make_shared<bool>(true);
};

struct Range {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    cudaMemoryType type = cudaMemoryTypeUnregistered;
};

struct World {
    Schedule schedule = Schedule::Lazy;
    std::mt19937 random;
    std::vector<std::unique_ptr<Stream>> streams;
    std::vector<Range> ranges;
    int hostCopies = 0;
    cudaError_t lastError = cudaSuccess;
};

/// Of the world: threads of the host call at the same time. What waits does the
/// work itself, so that it needs nobody else.
std::recursive_mutex mutex;
using Lock = std::lock_guard<std::recursive_mutex>;

World& world() {
    static World one;
    return one;
}

Stream& of(cudaStream_t stream) {
    return *reinterpret_cast<Stream*>(stream);
}

bool step(Stream& stream) {
    if (stream.work.empty() || !stream.work.front()()) {
        return false;
    }
    stream.work.pop_front();
    return true;
}

/// One piece of work of any stream; false if there is none.
bool stepAny() {
    const size_t count = world().streams.size();
    const size_t first = world().random() % count;
    for (size_t i = 0; i < count; ++i) {
        if (step(*world().streams[(first + i) % count])) {
            return true;
        }
    }
    return false;
}

void drain(Stream& stream) {
    while (!stream.work.empty()) {
        if (!step(stream) && !stepAny()) {
            std::abort(); // streams that wait for each other
        }
    }
}

/// After every call: what the device does meanwhile.
void goOn() {
    int steps = 0;
    if (world().schedule == Schedule::Eager) {
        steps = 1 << 20;
    } else if (world().schedule == Schedule::Random) {
        steps = int(world().random() % 4);
    }
    while (steps-- > 0 && stepAny()) {
    }
}

void push(cudaStream_t stream, Work work) {
    of(stream).work.push_back(std::move(work));
    goOn();
}

cudaMemoryType typeOf(const void* data) {
    const auto at = reinterpret_cast<uintptr_t>(data);
    for (const Range& range : world().ranges) {
        if (range.begin <= at && at < range.end) {
            return range.type;
        }
    }
    return cudaMemoryTypeUnregistered;
}

void mark(const void* data, size_t bytes, cudaMemoryType type) {
    const auto at = reinterpret_cast<uintptr_t>(data);
    world().ranges.push_back({at, at + bytes, type});
}

cudaError_t answer(bool ready) {
    goOn();
    return ready ? cudaSuccess : (world().lastError = cudaErrorNotReady);
}

} // namespace

void reset(Schedule schedule, unsigned seed) {
    const Lock lock(mutex);
    world() = World();
    world().schedule = schedule;
    world().random.seed(seed);
}

void setSchedule(Schedule schedule) {
    const Lock lock(mutex);
    world().schedule = schedule;
}

cudaStream_t makeStream() {
    const Lock lock(mutex);
    world().streams.push_back(std::make_unique<Stream>());
    return reinterpret_cast<cudaStream_t>(world().streams.back().get());
}

void capture(cudaStream_t stream) {
    of(stream).isCaptured = true;
}

void enqueue(cudaStream_t stream, std::function<void()> work) {
    const Lock lock(mutex);
    push(stream, [work = std::move(work)] {
        work();
        return true;
    });
}

bool allIdle() {
    for (const auto& stream : world().streams) {
        if (!stream->work.empty()) {
            return false;
        }
    }
    return true;
}

int hostCopies() {
    return world().hostCopies;
}

void finishAll() {
    const Lock lock(mutex);
    for (const auto& stream : world().streams) {
        drain(*stream);
    }
}

void markDevice(const void* data, size_t bytes) {
    const Lock lock(mutex);
    mark(data, bytes, cudaMemoryTypeDevice);
}

void markPinned(const void* data, size_t bytes) {
    const Lock lock(mutex);
    mark(data, bytes, cudaMemoryTypeHost);
}

} // namespace faiss_bits::test::fake

using namespace faiss_bits::test::fake;

extern "C" {

cudaError_t cudaGetLastError() {
    const Lock lock(mutex);
    const cudaError_t error = world().lastError;
    world().lastError = cudaSuccess;
    return error;
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
    const Lock lock(mutex);
    *memory = std::malloc(bytes);
    markDevice(*memory, bytes);
    return cudaSuccess;
}

/// Waits, as the real one.
cudaError_t cudaFree(void* memory) {
    const Lock lock(mutex);
    finishAll();
    std::free(memory);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
    *free = *total = size_t(1) << 30;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int) {
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
    const Lock lock(mutex);
    finishAll();
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(
        cudaPointerAttributes* attributes,
        const void* data) {
    const Lock lock(mutex);
    *attributes = {};
    attributes->type = typeOf(data);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(
        void* to,
        const void* from,
        size_t bytes,
        cudaMemcpyKind,
        cudaStream_t stream) {
    const Lock lock(mutex);
    return cudaMemcpy2DAsync(
            to, bytes, from, bytes, bytes, 1, cudaMemcpyDefault, stream);
}

cudaError_t cudaMemcpy2DAsync(
        void* to,
        size_t toPitch,
        const void* from,
        size_t fromPitch,
        size_t width,
        size_t height,
        cudaMemcpyKind,
        cudaStream_t stream) {
    const Lock lock(mutex);
    const bool ofHost = typeOf(to) != cudaMemoryTypeDevice ||
            typeOf(from) != cudaMemoryTypeDevice;
    world().hostCopies += ofHost;
    const auto copy = [=] {
        world().hostCopies -= ofHost;
        for (size_t i = 0; i < height; ++i) {
            std::memcpy(
                    static_cast<char*>(to) + i * toPitch,
                    static_cast<const char*>(from) + i * fromPitch,
                    width);
        }
        return true;
    };
    push(stream, copy);
    if (typeOf(to) == cudaMemoryTypeUnregistered ||
        typeOf(from) == cudaMemoryTypeUnregistered) {
        drain(of(stream)); // pageable memory
    }
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    const Lock lock(mutex);
    drain(of(stream));
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(
        cudaStream_t stream,
        cudaStreamCaptureStatus* status) {
    const Lock lock(mutex);
    *status = of(stream).isCaptured ? cudaStreamCaptureStatusActive
                                    : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    const Lock lock(mutex);
    if (of(stream).isCaptured) {
        return cudaErrorStreamCaptureUnsupported;
    }
    // Time passes while somebody asks.
    stepAny();
    return answer(of(stream).work.empty());
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
    const Lock lock(mutex);
    *event = reinterpret_cast<cudaEvent_t>(new Event);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    const Lock lock(mutex);
    delete reinterpret_cast<Event*>(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    const Lock lock(mutex);
    if (of(stream).isCaptured) {
        return cudaErrorStreamCaptureIsolation;
    }
    const auto done = std::make_shared<bool>(false);
    reinterpret_cast<Event*>(event)->done = done;
    push(stream, [done] { return *done = true; });
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(
        cudaStream_t stream,
        cudaEvent_t event,
        unsigned) {
    const Lock lock(mutex);
    if (of(stream).isCaptured) {
        return cudaErrorStreamCaptureIsolation;
    }
    push(stream,
         [done = reinterpret_cast<Event*>(event)->done] { return *done; });
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    const Lock lock(mutex);
    stepAny();
    return answer(*reinterpret_cast<Event*>(event)->done);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    const Lock lock(mutex);
    while (!*reinterpret_cast<Event*>(event)->done) {
        if (!stepAny()) {
            std::abort();
        }
    }
    return cudaSuccess;
}

} // extern "C"

namespace faiss_bits {

/// The one context of a device that no test resets.
uint64_t contextId() {
    return 1;
}

} // namespace faiss_bits
