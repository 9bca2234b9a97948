#include "faiss_bits/common/HostParts.h"

#include <cstring>

namespace faiss_bits::gpu::detail {

namespace {

constexpr size_t kPage = 4096;
/// Of a thread, so that starting it does not count. Not tuned.
constexpr size_t kLeastBytes = size_t(2) << 20;

} // namespace

void touchPages(void* memory, size_t bytes) {
    if (bytes < 2 * kLeastBytes) {
        return; // whoever writes there does it as fast
    }
    char* const first = static_cast<char*>(memory);
    const idx_t pages = idx_t((bytes + kPage - 1) / kPage);
    forHostParts(pages, kLeastBytes / kPage, [&](idx_t begin, idx_t end) {
        for (idx_t page = begin; page < end; ++page) {
            first[size_t(page) * kPage] = 0;
        }
    });
}

void copyHostBytes(void* to, const void* from, size_t bytes) {
    forHostParts(idx_t(bytes), kLeastBytes, [&](idx_t begin, idx_t end) {
        std::memcpy(
                static_cast<char*>(to) + begin,
                static_cast<const char*>(from) + begin,
                size_t(end - begin));
    });
}

} // namespace faiss_bits::gpu::detail
