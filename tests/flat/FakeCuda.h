#pragma once

#include <cstddef>
#include <functional>

#include <cuda_runtime_api.h>

/// A CUDA runtime without a GPU: the calls that faiss_bits/common makes, on
/// streams whose work is done as late, or in as odd an order, as CUDA allows.
/// What one thread of the host would see of a real device, it sees here.
namespace faiss_bits::test::fake {

enum class Schedule {
    Lazy,  ///< work is done when somebody waits for it
    Eager, ///< at once
    Random ///< some now and some later
};

/// Forgets all work and memory.
void reset(Schedule schedule, unsigned seed);

/// From now on, with all work and memory as they are.
void setSchedule(Schedule schedule);

cudaStream_t makeStream();

/// The stream is being captured; no call may then wait for it or record on it.
void capture(cudaStream_t stream);

/// Work in the order of a stream, as a kernel.
void enqueue(cudaStream_t stream, std::function<void()> work);

/// True if no stream has work left.
bool allIdle();
/// Copies to or from the host that are not done yet.
int hostCopies();
void finishAll();

/// Memory that is not pageable.
void markDevice(const void* data, size_t bytes);
void markPinned(const void* data, size_t bytes);

} // namespace faiss_bits::test::fake
