#pragma once

#include <algorithm>
#include <cstddef>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "kernels/common/Types.h"

/// Work of the host on much memory. Not part of the API.
namespace faiss_bits::gpu::detail {

/// Threads that share work 0 .. n - 1, each with at least about `least` of it.
/// By default no more than a few, which memory's speed takes.
inline idx_t hostParts(idx_t n, idx_t least, idx_t most = 8) {
    return std::clamp<idx_t>(
            std::min<idx_t>(
                    std::thread::hardware_concurrency(),
                    n / std::max<idx_t>(least, 1)),
            1,
            most);
}

/// Calls f(begin, end) for hostParts(n, least, most) parts of 0 .. n - 1 at the
/// same time. Waits for all, then throws what the first of them threw.
template <class F>
void forHostParts(idx_t n, idx_t least, const F& f, idx_t most = 8) {
    const idx_t parts = hostParts(n, least, most);
    std::vector<std::future<void>> others; // wait for f where they go
    for (idx_t i = 1; i < parts; ++i) {
        const idx_t begin = n * i / parts;
        const idx_t end = n * (i + 1) / parts;
        others.push_back(std::async(
                std::launch::async, [&f, begin, end] { f(begin, end); }));
    }
    f(0, n / parts);
    for (auto& other : others) {
        other.get();
    }
}

/// Asks the system for large pages where much memory is written to for the
/// first time next: it clears these in a fraction of the time. Nothing happens
/// where it has none.
void wantLargePages(void* memory, size_t bytes);

/// Has the system make the pages of memory that was never written to, which it
/// else does, and clears them, when each is first written to. What is in the
/// memory stays as it is.
void makePages(void* memory, size_t bytes);

/// wantLargePages, and makePages by several threads: else the one thread that
/// copies from a device waits for each page.
void touchPages(void* memory, size_t bytes);

/// One memcpy of several.
struct HostCopy {
    void* to = nullptr;
    const void* from = nullptr;
    size_t bytes = 0;
};

/// memcpy by several threads where it is much, which of several copies shares
/// them out by bytes.
void copyHostBytes(const std::vector<HostCopy>& copies);
void copyHostBytes(void* to, const void* from, size_t bytes);

/// Of a std::vector whose resize() leaves new numbers as they are, to be
/// written to next.
template <class T>
struct Uncleared : std::allocator<T> {
    template <class U>
    struct rebind {
        using other = Uncleared<U>;
    };
    template <class U>
    void construct(U* at) {
        ::new (static_cast<void*>(at)) U;
    }
    template <class U, class... Args>
    void construct(U* at, Args&&... args) {
        ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
    }
};

template <class T>
using UnclearedVector = std::vector<T, Uncleared<T>>;

} // namespace faiss_bits::gpu::detail
