// The host's work on much memory: nothing twice, nothing left out.

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>

#include "faiss_bits/common/HostParts.h"

namespace faiss_bits::test {
namespace {

using gpu::detail::copyHostBytes;
using gpu::detail::forHostParts;
using gpu::detail::HostCopy;
using gpu::detail::makePages;
using gpu::detail::touchPages;
using gpu::detail::UnclearedVector;
using gpu::detail::wantLargePages;

TEST(HostParts, EveryNumberOnce) {
    for (const idx_t n : {0, 1, 63, 64, 65, 127, 128, 129, 1000, 100003}) {
        for (const idx_t least : {0, 1, 64, 1 << 20}) {
            std::vector<std::atomic<int>> seen(n);
            forHostParts(n, least, [&](idx_t begin, idx_t end) {
                EXPECT_LE(begin, end);
                for (idx_t i = begin; i < end; ++i) {
                    ++seen[i];
                }
            });
            for (idx_t i = 0; i < n; ++i) {
                ASSERT_EQ(seen[i], 1) << n << ", " << i;
            }
        }
    }
}

TEST(HostParts, ErrorsLeaveAfterAllHaveEnded) {
    for (const idx_t bad : {0, 50, 99}) {
        std::atomic<int> running{0};
        const auto call = [&] {
            forHostParts(100, 1, [&](idx_t begin, idx_t end) {
                ++running;
                if (begin <= bad && bad < end) {
                    --running;
                    throw std::runtime_error("part");
                }
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
                --running;
            });
        };
        EXPECT_THROW(call(), std::runtime_error);
        EXPECT_EQ(running, 0);
    }
}

TEST(HostParts, LargePagesKeepWhatIsThere) {
    for (const size_t bytes : {size_t(0), size_t(1), size_t(20 << 20) + 5}) {
        std::vector<unsigned char> data(bytes + 2);
        std::iota(data.begin(), data.end(), 1);
        const auto before = data;
        wantLargePages(data.data() + 1, bytes);
        EXPECT_EQ(data, before);
    }
    wantLargePages(nullptr, 0);
}

/// Also of pages that were never written to: memory of the system's own.
TEST(HostParts, PagesAreMadeAndKeepWhatIsInThem) {
    for (const size_t bytes :
         {size_t(0), size_t(1), size_t(4096), size_t(4097), size_t(9) << 20}) {
        for (const size_t before : {size_t(0), size_t(1), size_t(4095)}) {
            const size_t all = bytes + before + 4096;
            void* memory =
                    mmap(nullptr,
                         all,
                         PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS,
                         -1,
                         0);
            ASSERT_NE(memory, MAP_FAILED);
            auto* const data = static_cast<unsigned char*>(memory);
            makePages(data + before, bytes);
            std::vector<unsigned char> expected(all);
            EXPECT_TRUE(std::equal(expected.begin(), expected.end(), data));
            std::iota(expected.begin(), expected.end(), 1);
            std::copy(expected.begin(), expected.end(), data);
            makePages(data + before, bytes);
            touchPages(data + before, bytes);
            EXPECT_TRUE(std::equal(expected.begin(), expected.end(), data));
            munmap(memory, all);
        }
    }
    makePages(nullptr, 0);
}

TEST(HostParts, CopiesAndTouchesWhatItIsGiven) {
    constexpr size_t kMany = size_t(4) << 20;
    for (const size_t bytes :
         {size_t(0),
          size_t(1),
          size_t(4097),
          kMany - 1,
          kMany,
          kMany + 1,
          3 * kMany + 5}) {
        std::vector<unsigned char> from(bytes);
        for (size_t i = 0; i < bytes; ++i) {
            from[i] = static_cast<unsigned char>(i * 7 + i / 4096);
        }
        std::vector<unsigned char> to(bytes + 2, 0xee); // one on each side
        touchPages(to.data() + 1, bytes);
        EXPECT_EQ(to.front(), 0xee);
        EXPECT_EQ(to.back(), 0xee);
        copyHostBytes(to.data() + 1, from.data(), bytes);
        EXPECT_EQ(to.front(), 0xee);
        EXPECT_EQ(to.back(), 0xee);
        EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin() + 1));
    }
}

/// Threads' shares begin and end anywhere in the copies.
TEST(HostParts, CopiesOfSeveralAreAllMade) {
    for (const size_t last : {size_t(0), size_t(1), size_t(9) << 20}) {
        const std::vector<size_t> sizes = {
                3, 0, (size_t(5) << 20) + 1, 17, last, size_t(1) << 20};
        std::vector<std::vector<unsigned char>> from, to;
        std::vector<HostCopy> copies;
        for (const size_t bytes : sizes) {
            from.emplace_back(bytes);
            to.emplace_back(bytes + 2, 0xee);
            for (size_t i = 0; i < bytes; ++i) {
                from.back()[i] =
                        static_cast<unsigned char>(i * 7 + i / 4096 + bytes);
            }
        }
        for (size_t i = 0; i < sizes.size(); ++i) {
            copies.push_back({to[i].data() + 1, from[i].data(), sizes[i]});
        }
        copyHostBytes(copies);
        for (size_t i = 0; i < sizes.size(); ++i) {
            EXPECT_EQ(to[i].front(), 0xee);
            EXPECT_EQ(to[i].back(), 0xee);
            EXPECT_TRUE(std::equal(
                    from[i].begin(), from[i].end(), to[i].begin() + 1));
        }
    }
    copyHostBytes({});
}

TEST(HostParts, VectorsGrowWithoutLosingWhatIsThere) {
    UnclearedVector<idx_t> vector;
    for (idx_t i = 0; i < 1000; ++i) {
        vector.push_back(i);
    }
    vector.resize(100000);
    std::iota(vector.begin() + 1000, vector.end(), idx_t(1000));
    vector.insert(vector.end(), {100000, 100001});
    for (size_t i = 0; i < vector.size(); ++i) {
        ASSERT_EQ(vector[i], idx_t(i));
    }
}

} // namespace
} // namespace faiss_bits::test
