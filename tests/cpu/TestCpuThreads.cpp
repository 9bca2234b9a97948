/// Threads: inside a search and around it.

#include <omp.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <latch>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/ParallelFor.h"
#include "tests/cpu/CpuHarness.h"

namespace faiss_bits::test {
namespace {

/// Searches whose threads share the queries, the vectors, or neither.
std::vector<CpuCase> threadCases() {
    std::vector<CpuCase> cases;
    uint32_t seed = 0;
    for (Metric metric : {Metric::L2, Metric::Cosine, Metric::L1}) {
        for (int64_t q : {1, 2, 5, 40, 130}) {
            for (int64_t k : {1, 10, 300, 1100}) {
                CpuCase c;
                c.metric = metric;
                c.q = q;
                c.n = 1000;
                c.d = 12;
                c.k = k;
                // Far: many distances that differ by the last place or so.
                c.contents = k == 10 ? Contents::Mixed
                        : k == 1     ? Contents::Uniform
                                     : Contents::Far;
                c.seed = ++seed;
                cases.push_back(c);
            }
        }
    }
    return cases;
}

/// Any number of threads gives the same bits, and so does the same number
/// again.
TEST(CpuThreads, NeverChangeTheResult) {
    for (const CpuCase& c : threadCases()) {
        const CpuData<float> data(c);
        for (cpu::Variant variant : kCpuVariants) {
            cpu::Choice choice;
            choice.variant = variant;
            SCOPED_TRACE(c.describe());
            const auto one = data.run(choice, 1);
            if (c.q == 5) {
                ASSERT_TRUE(data.check(one)) << describe(choice, 1);
            }
            for (int threads : {1, 2, 3, 0, int(c.q) + 3}) {
                ASSERT_TRUE(data.run(choice, std::min(threads, 12)) == one)
                        << describe(choice, threads);
            }
        }
    }
}

TEST(CpuThreads, NeverChangeTheResultOfDoubles) {
    for (const CpuCase& c : threadCases()) {
        if (c.q % 5 == 0 && c.metric != Metric::L1) {
            const CpuData<double> data(c);
            SCOPED_TRACE(c.describe());
            const auto one = data.run({}, 1);
            ASSERT_TRUE(data.run({}, 3) == one);
            ASSERT_TRUE(data.run({}, 1) == one);
        }
    }
}

/// Blocks small enough that every thread has several.
TEST(CpuThreads, NeverChangeTheResultInSmallBlocks) {
    for (cpu::Variant variant : kCpuVariants) {
        for (cpu::Choice choice : choicesOf(variant)) {
            choice.queryBlock = 24;
            choice.vectorBlock = 64;
            choice.depthBlock = 16;
            for (int64_t q : {1, 100}) {
                CpuCase c;
                c.q = q;
                c.n = 700;
                c.d = 40;
                c.k = 30;
                c.contents = Contents::Uniform;
                const CpuData<float> data(c);
                const auto one = data.run(choice, 1);
                for (int threads : {2, 3, 5}) {
                    ASSERT_TRUE(data.run(choice, threads) == one)
                            << c.describe() << describe(choice, threads);
                }
            }
        }
    }
}

/// One and two queries meet so many vectors that each thread has some, in
/// plain searches, too, whose distances are those of the kernels.
TEST(CpuThreads, NeverChangeTheResultOfFewQueries) {
    for (int d : {3, 16, 40}) {
        for (int64_t k : {1, 10, 300}) {
            CpuCase c;
            c.q = 1 + k % 2;
            c.n = 1 + (5 << 20) / (4 * d);
            c.d = d;
            c.k = k;
            c.contents = Contents::Uniform;
            for (SearchMode mode : {SearchMode::Certified, SearchMode::Plain}) {
                c.mode = mode;
                const CpuData<float> data(c);
                EXPECT_EQ(cpu::planKnn(data.problem({}, 16)).threads, 16);
                const auto one = data.run({}, 1);
                ASSERT_TRUE(data.check(one)) << c.describe();
                for (int threads : {2, 3, 16}) {
                    ASSERT_TRUE(data.run({}, threads) == one)
                            << c.describe() << describe({}, threads);
                }
            }
        }
    }
}

/// Every part once, also by fewer threads than parts, and what a part throws
/// is thrown.
TEST(CpuThreads, EachPartHasItsTurn) {
    for (int workers : {1, 2, 3, 16}) {
        for (int team : {1, 2, 5, 16}) {
            std::vector<std::atomic<int>> turns(workers);
            std::atomic<bool> isOutside{false};
            cpu::parallelForOwn(team, workers, [&](idx_t part, int thread) {
                ++turns[part];
                isOutside = isOutside || thread < 0 || thread >= workers;
            });
            for (const auto& each : turns) {
                EXPECT_EQ(each, 1) << workers << " workers, team " << team;
            }
            EXPECT_FALSE(isOutside);
            EXPECT_THROW(
                    cpu::parallelForOwn(
                            team,
                            workers,
                            [&](idx_t part, int) {
                                if (part == workers - 1) {
                                    throw std::runtime_error("the last part");
                                }
                            }),
                    std::runtime_error);
        }
    }
}

/// Threads of this process, as the system numbers them.
std::set<std::string> threadsOfTheProcess() {
    std::set<std::string> names;
    for (const auto& entry :
         std::filesystem::directory_iterator("/proc/self/task")) {
        names.insert(entry.path().filename());
    }
    return names;
}

/// The same once they have not changed for a tenth of a second: those of tests
/// before may be about to end.
std::set<std::string> steadyThreads() {
    std::set<std::string> names = threadsOfTheProcess();
    for (int same = 0; same < 10; ++same) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        auto now = threadsOfTheProcess();
        if (now != names) {
            names = std::move(now);
            same = 0;
        }
    }
    return names;
}

/// A search that has less to do leaves the threads to the next one: ending and
/// starting them takes longer than many a search.
TEST(CpuThreads, StayForTheNextSearch) {
    CpuCase large;
    large.q = 200;
    large.n = 2000;
    large.d = 32;
    large.k = 10;
    const CpuData<float> data(large);
    (void)data.run({}, 4);
    const auto before = steadyThreads();
    ASSERT_GE(before.size(), 4u);
    for (cpu::Variant variant : kCpuVariants) {
        for (int64_t q : {1, 10, 20, 200}) {
            for (int64_t n : {100, 3000, 30000}) {
                CpuCase c = large;
                c.q = q;
                c.n = n;
                cpu::Choice choice;
                choice.variant = variant;
                (void)CpuData<float>(c).run(choice, 4);
                ASSERT_EQ(threadsOfTheProcess(), before)
                        << c.describe() << describe(choice, 4);
            }
        }
    }
}

/// A few searches of all kinds, small enough to be run many times.
std::vector<CpuCase> concurrentCases() {
    std::vector<CpuCase> cases;
    for (int i = 0; i < 4; ++i) {
        CpuCase c;
        c.metric = kCpuMetrics[i % 3];
        c.q = i % 2 ? 30 : 3;
        c.n = 600;
        c.d = 10 + 9 * i;
        c.k = 5 + 40 * i;
        c.contents = Contents::Uniform;
        c.seed = 50 + i;
        cases.push_back(c);
    }
    return cases;
}

/// The first searches of the process (constants, tables) come at once too,
/// where this test has a process of its own, as under ctest.
TEST(CpuConcurrent, SeveralThreadsSearchAtOnce) {
    const auto cases = concurrentCases();
    const int callers = int(cases.size());
    std::vector<std::unique_ptr<CpuData<float>>> data;
    for (const CpuCase& c : cases) {
        data.push_back(std::make_unique<CpuData<float>>(c));
    }
    constexpr int kRuns = 8;
    using Results = std::vector<CpuResult<float>>;
    std::vector<Results> results(callers);
    std::vector<cpu::RangeResult<float>> ranges(callers);
    std::latch start(callers);
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < callers; ++t) {
            threads.emplace_back([&, t] {
                start.arrive_and_wait();
                for (int run = 0; run < kRuns; ++run) {
                    cpu::Choice choice;
                    choice.variant = kCpuVariants[run % kCpuVariants.size()];
                    results[t].push_back(data[t]->run(choice, run % 2 ? 1 : 2));
                }
                ranges[t] = data[t]->runRange(0.5f, {}, 2);
            });
        }
    }
    for (int t = 0; t < callers; ++t) {
        for (int run = 0; run < kRuns; ++run) {
            cpu::Choice choice;
            choice.variant = kCpuVariants[run % kCpuVariants.size()];
            ASSERT_TRUE(data[t]->check(results[t][run]));
            ASSERT_TRUE(results[t][run] == data[t]->run(choice, 1))
                    << describe(choice, 1);
        }
        ASSERT_TRUE(data[t]->checkRange(ranges[t], 0.5f));
    }
}

/// Callers with OpenMP of their own, with nesting off and on.
TEST(CpuConcurrent, InsideAParallelRegion) {
    const auto cases = concurrentCases();
    const int callers = int(cases.size());
    std::vector<std::unique_ptr<CpuData<float>>> data;
    for (const CpuCase& c : cases) {
        data.push_back(std::make_unique<CpuData<float>>(c));
    }
    const int levels = omp_get_max_active_levels();
    for (int allowed : {1, 2}) {
        omp_set_max_active_levels(allowed);
        for (cpu::Variant variant : kCpuVariants) {
            cpu::Choice choice;
            choice.variant = variant;
            std::vector<CpuResult<float>> results(callers);
#pragma omp parallel for num_threads(callers) schedule(static, 1)
            for (int t = 0; t < callers; ++t) {
                results[t] = data[t]->run(choice, t % 2 ? 0 : 2);
            }
            for (int t = 0; t < callers; ++t) {
                EXPECT_TRUE(data[t]->check(results[t]));
                EXPECT_TRUE(results[t] == data[t]->run(choice, 1))
                        << "levels " << allowed << describe(choice, 1);
            }
        }
    }
    omp_set_max_active_levels(levels);
}

/// The search leaves the caller's OpenMP as it was.
TEST(CpuConcurrent, SettingsOfOpenMPStay) {
    const int before = omp_get_max_threads();
    omp_set_num_threads(3);
    const CpuData<float> data(concurrentCases()[1]);
    (void)data.run({}, 2);
    EXPECT_EQ(omp_get_max_threads(), 3);
    omp_set_num_threads(before);
}

} // namespace
} // namespace faiss_bits::test
