/// The interrupt hook: who calls it, how often, and what its exception leaves.

#include <omp.h>

#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "tests/cpu/CpuHarness.h"

namespace faiss_bits::test {
namespace {

struct Stop : std::runtime_error {
    Stop() : std::runtime_error("stop") {}
};

CpuCase interruptedCase(int64_t q) {
    CpuCase c;
    c.q = q;
    c.n = 1000;
    c.d = 40;
    c.k = 12;
    c.contents = Contents::Uniform;
    return c;
}

/// Calls to the hook in a whole search, with where they come from checked.
template <class Search>
int countCalls(cpu::KnnProblem<float> p, Search&& search) {
    int calls = 0;
    const auto caller = std::this_thread::get_id();
    p.interrupt = [&] {
        ++calls;
        EXPECT_EQ(std::this_thread::get_id(), caller);
        EXPECT_FALSE(omp_in_parallel());
    };
    search(p);
    return calls;
}

template <class Search>
void expectInterruptible(const cpu::KnnProblem<float>& good, Search&& search) {
    const int calls = countCalls(good, search);
    EXPECT_GE(calls, 1);
    for (int stopAt : {1, 2, calls / 2, calls}) {
        if (stopAt < 1 || stopAt > calls) {
            continue;
        }
        int left = stopAt;
        auto p = good;
        p.interrupt = [&] {
            if (--left == 0) {
                throw Stop();
            }
        };
        EXPECT_THROW(search(p), Stop) << "call " << stopAt << " of " << calls;
        EXPECT_EQ(left, 0) << "called again after it has thrown";
    }
}

TEST(CpuInterrupt, EndsASearchAndLaterOnesWork) {
    for (int64_t q : {1, 100}) {
        const CpuData<float> data(interruptedCase(q));
        for (cpu::Variant variant : kCpuVariants) {
            cpu::Choice choice;
            choice.variant = variant;
            const auto before = data.run(choice, 2);
            for (bool small : {false, true}) {
                choice.queryBlock = small ? 24 : 0;
                choice.vectorBlock = small ? 64 : 0;
                SCOPED_TRACE(describe(choice, 2));
                expectInterruptible(
                        data.problem(choice, 2),
                        [](const cpu::KnnProblem<float>& p) {
                            (void)CpuData<float>::run(p);
                        });
                const auto after = data.run(choice, 2);
                EXPECT_TRUE(data.check(after));
                EXPECT_TRUE(small || before == after);
            }
        }
    }
}

TEST(CpuInterrupt, EndsARangeSearchAndLaterOnesWork) {
    for (int64_t q : {1, 100}) {
        const CpuData<float> data(interruptedCase(q));
        expectInterruptible(
                data.problem({}, 2), [](const cpu::KnnProblem<float>& p) {
                    (void)cpu::runRange<float>(p, 20.f);
                });
        EXPECT_TRUE(data.checkRange(data.runRange(20.f, {}, 2), 20.f));
    }
}

/// A hook does not change the result.
TEST(CpuInterrupt, AHookThatReturnsChangesNothing) {
    const CpuData<float> data(interruptedCase(50));
    auto p = data.problem({}, 2);
    p.interrupt = [] {};
    EXPECT_TRUE(CpuData<float>::run(p) == data.run({}, 2));
}

/// Asked on the way, not only at the end: often enough for a user who waits.
TEST(CpuInterrupt, IsAskedOnTheWay) {
    CpuCase c = interruptedCase(240);
    c.n = 20000;
    c.d = 500;
    const CpuData<float> data(c);
    for (cpu::Variant variant : kCpuVariants) {
        cpu::Choice choice;
        choice.variant = variant;
        SCOPED_TRACE(describe(choice, 1));
        const int calls = countCalls(
                data.problem(choice, 1), [](const cpu::KnnProblem<float>& p) {
                    (void)CpuData<float>::run(p);
                });
        EXPECT_GE(calls, 2);
    }
}

} // namespace
} // namespace faiss_bits::test
