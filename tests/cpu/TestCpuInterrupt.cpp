/// The interrupt hook: who calls it, how often, and what its exception leaves.

#include <omp.h>

#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/RangeLengths.h"
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

/// A range search by one thread, of which just the first of each 256 vectors is
/// near (`isNearFirst`), or just the others are: the sample of vectors that
/// plans the search sees the first ones alone.
int callsOfRange(
        int64_t q,
        int64_t n,
        int d,
        bool isNearFirst,
        float radius,
        int stopAt,
        cpu::Variant variant = cpu::Variant::Auto) {
    std::vector<float> queries(q * d, 0.5f), vectors(n * d, 0.5f);
    for (int64_t i = 0; i < n; ++i) {
        vectors[i * d] = (i % 256 == 0) == isNearFirst ? 1.f : 100.f;
    }
    cpu::Problem<float> p;
    p.numQueries = q;
    p.numVectors = n;
    p.d = d;
    p.queries = queries.data();
    p.vectors = vectors.data();
    p.threads = 1;
    p.choice.variant = variant;
    int calls = 0;
    p.interrupt = [&] {
        if (++calls == stopAt) {
            throw Stop();
        }
    };
    (void)cpu::runRange<float>(p, radius);
    return calls;
}

/// Canonical distances of all pairs: many queries, and one piece of vectors.
TEST(CpuInterrupt, IsAskedWhileManyQueriesMeetAPieceInRange) {
    EXPECT_THROW(callsOfRange(3000, 4096, 128, true, 2.f, 2), Stop);
}

/// Candidates: their canonical distances take longer than the sweep.
TEST(CpuInterrupt, IsAskedWhileCandidatesInRangeAreRescored) {
    const int none = callsOfRange(128, 16384, 256, false, 0.1f, 0);
    EXPECT_GE(callsOfRange(128, 16384, 256, false, 2.f, 0), none + 1);
    EXPECT_THROW(callsOfRange(128, 16384, 256, false, 2.f, none + 1), Stop);
}

TEST(CpuInterrupt, IsAskedInARangeSearchWithNothingPacked) {
    EXPECT_THROW(
            callsOfRange(2000, 16384, 64, false, 0.1f, 2, cpu::Variant::Direct),
            Stop);
}

/// The pass over all vectors for their lengths.
TEST(CpuInterrupt, IsAskedWhileLengthsAreMeasured) {
    for (Metric metric : {Metric::InnerProduct, Metric::Cosine}) {
        constexpr int kDepth = 1024;
        const std::vector<float> row(kDepth, 0.5f);
        const std::vector<idx_t> ids(200000, 0);
        cpu::Problem<float> p;
        p.metric = metric;
        p.numQueries = 1;
        p.numVectors = idx_t(ids.size());
        p.d = kDepth;
        p.queries = p.vectors = row.data();
        p.vectorIds = ids.data();
        p.threads = 1;
        int left = 2;
        p.interrupt = [&] {
            if (--left == 0) {
                throw Stop();
            }
        };
        const auto setup = cpu::checkProblem(p, false);
        cpu::Lengths<float> lengths;
        EXPECT_THROW(cpu::measureLengths(setup, lengths), Stop);
    }
}

} // namespace
} // namespace faiss_bits::test
