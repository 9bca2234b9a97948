/// PagedCall and the pinned memory of its resources, on streams without a GPU.

#include <algorithm>
#include <functional>
#include <future>
#include <vector>

#include <gtest/gtest.h>

#include "faiss_bits/common/PagedCall.h"
#include "tests/flat/FakeResources.h"

namespace faiss_bits::test {
namespace {

using namespace gpu::detail;
using fake::Schedule;

/// out[i] = in[i] + 1 and twice that, of arrays on the host.
void runTwoResults(
        FakeResources& resources,
        const std::vector<int>& in,
        std::vector<int>& more,
        std::vector<int>& twice,
        size_t mostStaging,
        const std::function<void()>& inside = [] {}) {
    const GpuContext context = {&resources, 0, resources.getDefaultStream(0)};
    PagedCall call(context);
    const int from = call.input("in", in.data(), sizeof(int));
    const int first = call.output("more", more.data(), sizeof(int));
    const int second = call.output("twice", twice.data(), sizeof(int));
    PageLimits limits;
    limits.rows = idx_t(in.size());
    limits.mostStaging = mostStaging;
    call.run(limits, [&](const Page& page) {
        inside();
        const int* x = page.as<const int>(from);
        int* a = page.as<int>(first);
        int* b = page.as<int>(second);
        const idx_t count = page.rows;
        fake::enqueue(context.stream, [=] {
            for (idx_t i = 0; i < count; ++i) {
                a[i] = x[i] + 1;
                b[i] = 2 * a[i];
            }
        });
    });
}

/// Few results wait once for both: 64 KiB at most, with room for each; many go
/// through pinned memory in one page.
TEST(PagedCallPinned, ResultsOfTwoArrays) {
    for (const size_t pinned :
         {size_t(0),
          size_t(300),
          size_t(4096),
          size_t(1) << 20,
          size_t(32) << 20}) {
        for (const size_t count : {1, 30, 200, 8191, 8192, 8193, 800000}) {
            for (unsigned seed = 0; seed < 4; ++seed) {
                fake::reset(
                        seed == 0 ? Schedule::Lazy : Schedule::Random, seed);
                FakeResources resources(pinned);
                std::vector<int> in(count), more(count), twice(count);
                for (size_t i = 0; i < count; ++i) {
                    in[i] = int(i * 7 % 1001);
                }
                runTwoResults(resources, in, more, twice, kPageBytes);
                for (size_t i = 0; i < count; ++i) {
                    ASSERT_EQ(more[i], in[i] + 1);
                    ASSERT_EQ(twice[i], 2 * more[i]);
                }
            }
        }
    }
}

/// A call whose results stay on the device ends when nothing reads the pinned
/// memory any more, which the next one overwrites.
TEST(PagedCallPinned, PinnedMemoryHasBeenReadAtTheEnd) {
    constexpr size_t kCount = 2200000;
    for (unsigned seed = 0; seed < 6; ++seed) {
        fake::reset(seed == 0 ? Schedule::Lazy : Schedule::Random, seed);
        FakeResources resources(size_t(32) << 20);
        std::vector<int> more[2], twice[2];
        for (int call = 0; call < 2; ++call) {
            more[call].resize(kCount);
            twice[call].resize(kCount);
            fake::markDevice(more[call].data(), kCount * sizeof(int));
            fake::markDevice(twice[call].data(), kCount * sizeof(int));
            std::vector<int> in(kCount, 10 * call);
            runTwoResults(
                    resources, in, more[call], twice[call], 8 * kPageBytes);
            std::fill(in.begin(), in.end(), -1);
        }
        fake::finishAll();
        for (int call = 0; call < 2; ++call) {
            ASSERT_EQ(more[call], std::vector<int>(kCount, 10 * call + 1));
            ASSERT_EQ(twice[call], std::vector<int>(kCount, 20 * call + 2));
        }
    }
}

/// The resources' pinned memory is one call's: another one, of whichever
/// thread, goes without.
TEST(PagedCallPinned, TwoCallsWithOnePieceOfPinnedMemory) {
    for (unsigned seed = 0; seed < 6; ++seed) {
        fake::reset(seed == 0 ? Schedule::Lazy : Schedule::Random, seed);
        FakeResources resources(size_t(1) << 20);
        std::vector<int> in(500), more(500), twice(500);
        std::vector<int> in2(300, 5), more2(300), twice2(300);
        for (size_t i = 0; i < in.size(); ++i) {
            in[i] = int(i);
        }
        runTwoResults(resources, in, more, twice, 1200, [&] {
            runTwoResults(resources, in2, more2, twice2, 1200);
            runTwoResults(resources, in2, more2, twice2, kPageBytes);
        });
        for (size_t i = 0; i < in.size(); ++i) {
            ASSERT_EQ(more[i], int(i) + 1);
            ASSERT_EQ(twice[i], 2 * int(i) + 2);
        }
        ASSERT_EQ(more2, std::vector<int>(300, 6));
        ASSERT_EQ(twice2, std::vector<int>(300, 12));
    }
}

/// And by threads, of devices that share resources.
TEST(PagedCallPinned, ThreadsWithOnePieceOfPinnedMemory) {
    fake::reset(Schedule::Random, 3);
    FakeResources resources(size_t(1) << 20);
    std::vector<std::future<bool>> all;
    for (int thread = 0; thread < 4; ++thread) {
        all.push_back(std::async(std::launch::async, [&resources, thread] {
            std::vector<int> in(900, thread), more(900), twice(900);
            for (int round = 0; round < 20; ++round) {
                runTwoResults(resources, in, more, twice, 1200);
                if (more != std::vector<int>(900, thread + 1) ||
                    twice != std::vector<int>(900, 2 * thread + 2)) {
                    return false;
                }
            }
            return true;
        }));
    }
    for (auto& one : all) {
        EXPECT_TRUE(one.get());
    }
}

} // namespace
} // namespace faiss_bits::test
