#include "faiss_bits/common/HostParts.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstring>

namespace faiss_bits::gpu::detail {

namespace {

constexpr size_t kPage = 4096;
/// Of a thread, so that starting it does not count. Not tuned.
constexpr size_t kLeastBytes = size_t(2) << 20;

} // namespace

void wantLargePages(void* memory, size_t bytes) {
    constexpr size_t kLeast = size_t(8) << 20; // four large ones. Not tuned
    const uintptr_t begin =
            (reinterpret_cast<uintptr_t>(memory) + kPage - 1) / kPage * kPage;
    const uintptr_t end =
            (reinterpret_cast<uintptr_t>(memory) + bytes) / kPage * kPage;
    if (bytes >= kLeast) {
        (void)madvise(
                reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
    }
}

void makePages(void* memory, size_t bytes) {
    auto* const first = static_cast<unsigned char*>(memory);
    for (size_t at = 0; at < bytes; at += kPage) {
        // A write that changes nothing, whatever is there. The processor writes
        // in either case of an exchange; compilers know of no case to leave
        // out.
        unsigned char zero = 0;
        std::atomic_ref<unsigned char>(first[at]).compare_exchange_strong(
                zero, 0, std::memory_order_relaxed);
    }
}

void touchPages(void* memory, size_t bytes) {
    wantLargePages(memory, bytes);
    if (bytes < 2 * kLeastBytes) {
        return; // whoever writes there does it as fast
    }
    char* const first = static_cast<char*>(memory);
    const idx_t pages = idx_t((bytes + kPage - 1) / kPage);
    forHostParts(pages, kLeastBytes / kPage, [&](idx_t begin, idx_t end) {
        const size_t at = size_t(begin) * kPage;
        makePages(first + at, std::min(bytes, size_t(end) * kPage) - at);
    });
}

void copyHostBytes(const std::vector<HostCopy>& copies) {
    size_t bytes = 0;
    for (const HostCopy& copy : copies) {
        bytes += copy.bytes;
    }
    forHostParts(idx_t(bytes), kLeastBytes, [&](idx_t begin, idx_t end) {
        size_t at = 0; // of the copy's first byte among all
        for (const HostCopy& copy : copies) {
            const size_t first = std::max(size_t(begin), at);
            const size_t last = std::min(size_t(end), at + copy.bytes);
            if (first < last) {
                std::memcpy(
                        static_cast<char*>(copy.to) + (first - at),
                        static_cast<const char*>(copy.from) + (first - at),
                        last - first);
            }
            at += copy.bytes;
        }
    });
}

void copyHostBytes(void* to, const void* from, size_t bytes) {
    copyHostBytes({{to, from, bytes}});
}

} // namespace faiss_bits::gpu::detail
