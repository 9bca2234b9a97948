/// The threads of an index on several devices: no device is needed.

#include <sched.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "faiss_bits/many/Worker.h"

namespace faiss_bits::test {
namespace {

using gpu::detail::Worker;
using std::chrono::milliseconds;

void waitFor(Worker& worker) {
    while (!worker.waitFor(milliseconds(20))) {
    }
}

/// At once, after a short while, and after one in which it has gone to sleep.
TEST(Worker, RunsOneJobAfterTheOther) {
    Worker worker;
    int sum = 0; // of the jobs: seen when they are done
    for (int pause :
         {0, 0, 0, 1, 0, 3, 3, 3, 3, 0, 3, 5, 2, 20, 0, 20, 20, 0}) {
        std::this_thread::sleep_for(milliseconds(pause));
        const int before = sum;
        worker.start([&sum] { ++sum; });
        waitFor(worker);
        ASSERT_TRUE(worker.isDone());
        ASSERT_EQ(sum, before + 1);
    }
}

TEST(Worker, ManyJobsAreAllSeen) {
    Worker worker;
    long sum = 0;
    for (long i = 0; i < 20000; ++i) {
        worker.start([&sum, i] { sum += i; });
        while (!worker.isDone()) {
            std::this_thread::yield();
        }
        ASSERT_EQ(sum, i * (i + 1) / 2);
    }
}

TEST(Worker, SaysThatAJobGoesOn) {
    Worker worker;
    EXPECT_TRUE(worker.isDone());
    std::atomic<bool> goOn = false;
    worker.start([&] {
        while (!goOn) {
            std::this_thread::yield();
        }
    });
    EXPECT_FALSE(worker.isDone());
    EXPECT_FALSE(worker.waitFor(milliseconds(5)));
    goOn = true;
    waitFor(worker);
    EXPECT_TRUE(worker.isDone());
}

/// On one core a thread that asked for more would keep the others waiting.
TEST(Worker, SleepsAtOnceOnOneCore) {
    cpu_set_t all, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
    CPU_ZERO(&one);
    for (int core = 0; CPU_COUNT(&one) == 0; ++core) {
        if (CPU_ISSET(core, &all)) {
            CPU_SET(core, &one);
        }
    }
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    {
        Worker worker; // its thread has the core of this one
        clockid_t clock{};
        worker.start([&] { pthread_getcpuclockid(pthread_self(), &clock); });
        waitFor(worker);
        const auto cpuTime = [&] {
            timespec time{};
            EXPECT_EQ(clock_gettime(clock, &time), 0);
            return time.tv_sec * 1e6 + time.tv_nsec * 1e-3; // us
        };
        constexpr int kJobs = 50;
        const double before = cpuTime();
        for (int i = 0; i < kJobs; ++i) {
            worker.start([] {});
            waitFor(worker);
            std::this_thread::sleep_for(milliseconds(2));
        }
        // Asking takes 500 us after each.
        EXPECT_LT(cpuTime() - before, kJobs * 250.0);
    }
    ASSERT_EQ(sched_setaffinity(0, sizeof(all), &all), 0);
}

/// Jobs that come every 5 ms are asked for from half of that time on, those
/// that come every 15 ms for half a millisecond.
TEST(Worker, AsksWhenTheNextOneIsDue) {
    for (const auto& [pause, most] :
         std::vector<std::pair<int, double>>{{5, 8500}, {15, 2000}}) {
        Worker worker;
        clockid_t clock{};
        worker.start([&] { pthread_getcpuclockid(pthread_self(), &clock); });
        waitFor(worker);
        const auto cpuTime = [&] {
            timespec time{};
            EXPECT_EQ(clock_gettime(clock, &time), 0);
            return time.tv_sec * 1e6 + time.tv_nsec * 1e-3; // us
        };
        constexpr int kJobs = 30;
        const double before = cpuTime();
        int sum = 0;
        for (int i = 0; i < kJobs; ++i) {
            std::this_thread::sleep_for(milliseconds(pause));
            worker.start([&] { ++sum; });
            waitFor(worker);
        }
        EXPECT_EQ(sum, kJobs);
        EXPECT_LT(cpuTime() - before, kJobs * most) << pause << " ms";
    }
}

/// What a job holds is let go of before its caller goes on.
TEST(Worker, KeepsNothingOfAJob) {
    Worker worker;
    const auto held = std::make_shared<int>(1);
    worker.start([held] {});
    waitFor(worker);
    EXPECT_EQ(held.use_count(), 1);
}

TEST(Worker, EndsAfterItsJob) {
    bool isDone = false;
    {
        Worker worker;
        worker.start([&] {
            std::this_thread::sleep_for(milliseconds(10));
            isDone = true;
        });
    }
    EXPECT_TRUE(isDone);
    Worker unused; // ends without one
}

TEST(Worker, SeveralAtTheSameTime) {
    std::vector<std::unique_ptr<Worker>> workers;
    for (int i = 0; i < 7; ++i) {
        workers.push_back(std::make_unique<Worker>());
    }
    std::vector<int> counts(workers.size());
    for (int round = 0; round < 300; ++round) {
        for (size_t i = 0; i < workers.size(); ++i) {
            workers[i]->start([&counts, i] { ++counts[i]; });
        }
        for (const auto& worker : workers) {
            waitFor(*worker);
        }
        ASSERT_EQ(counts, std::vector<int>(workers.size(), round + 1));
    }
}

} // namespace
} // namespace faiss_bits::test
