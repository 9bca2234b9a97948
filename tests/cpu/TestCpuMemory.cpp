/// Searches that run out of memory end in std::bad_alloc, and harm nothing.

#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cpu/CpuHarness.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FAISS_BITS_OWN_MEMORY 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FAISS_BITS_OWN_MEMORY 1
#endif
#endif

namespace faiss_bits::test {
namespace {

/// Address space of this process, in bytes.
size_t addressSpace() {
    size_t pages = 0;
    FILE* file = std::fopen("/proc/self/statm", "r");
    if (!file || std::fscanf(file, "%zu", &pages) != 1) {
        std::_Exit(3);
    }
    std::fclose(file);
    return pages * 4096;
}

void limitAddressSpace(rlim_t bytes) {
    rlimit limit{};
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = std::min(bytes, limit.rlim_max);
    if (setrlimit(RLIMIT_AS, &limit) != 0) {
        std::_Exit(4);
    }
}

/// Searches with ever more memory to spare. Ends the process: 0 if a search
/// failed at least once, with bad_alloc alone, one succeeded, and all results
/// are those of a search with all memory.
[[noreturn]] void exitAfterTightSearches(
        const CpuCase& c,
        cpu::Variant variant,
        int threads) {
    // Large blocks go back to the system at once, and are asked for anew.
    mallopt(M_MMAP_THRESHOLD, 1 << 16);
    const CpuData<float> data(c);
    cpu::Choice choice;
    choice.variant = variant;
    // Threads and constants are there before memory is short.
    const auto expected = data.run(choice, threads);
    auto result = expected;
    auto p = data.problem(choice, threads);
    p.outDistances = result.distances.data();
    p.outIds = result.ids.data();
    int failed = 0, right = 0;
    for (size_t spare = 0; spare <= size_t(1) << 28;
         spare = std::max<size_t>(1 << 16, 2 * spare)) {
        std::fill(result.ids.begin(), result.ids.end(), -77);
        limitAddressSpace(addressSpace() + spare);
        bool ended = false;
        try {
            cpu::runKnn(p);
            ended = true;
        } catch (const std::bad_alloc&) {
            ++failed;
        }
        limitAddressSpace(RLIM_INFINITY);
        if (ended) {
            right += result == expected;
        }
        if ((ended && !(result == expected)) ||
            !(data.run(choice, threads) == expected)) {
            std::_Exit(1);
        }
    }
    std::_Exit(failed > 0 && right > 0 ? 0 : 2);
}

class CpuMemoryDeathTest : public ::testing::TestWithParam<cpu::Variant> {
   protected:
    void SetUp() override {
#ifdef FAISS_BITS_OWN_MEMORY
        GTEST_SKIP() << "a sanitizer has address space of its own";
#endif
        GTEST_FLAG_SET(death_test_style, "threadsafe");
    }
};

/// Large enough that memory for it is asked of the system.
CpuCase largeCase() {
    CpuCase c;
    c.q = 500;
    c.n = 20000;
    c.d = 64;
    c.k = 300;
    c.contents = Contents::Uniform;
    return c;
}

TEST_P(CpuMemoryDeathTest, OfASearch) {
    const cpu::Variant variant = GetParam();
    for (int threads : {1, 2}) {
        EXPECT_EXIT(
                exitAfterTightSearches(largeCase(), variant, threads),
                ::testing::ExitedWithCode(0),
                "");
    }
}

INSTANTIATE_TEST_SUITE_P(
        Cpu,
        CpuMemoryDeathTest,
        ::testing::ValuesIn(kCpuVariants),
        [](const auto& info) { return std::string(nameOf(info.param)); });

} // namespace
} // namespace faiss_bits::test
