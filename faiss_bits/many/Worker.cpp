#include "faiss_bits/many/Worker.h"

#include <sched.h>

#include <utility>

namespace faiss_bits::gpu::detail {

namespace {

/// Longer than what a caller does between two searches of a few queries.
constexpr std::chrono::microseconds kSpin(500);
/// Jobs that follow each other more slowly are not waited for: what a thread
/// takes to wake is little beside them.
constexpr std::chrono::milliseconds kMostGap(10);

/// Whether this thread may run on several cores; who wants a job done can then
/// go on while it asks.
bool hasSeveralCores() {
    cpu_set_t cores;
    // Fails with more cores than the set has places.
    return sched_getaffinity(0, sizeof(cores), &cores) == 0
            ? CPU_COUNT(&cores) > 1
            : std::thread::hardware_concurrency() != 1;
}

} // namespace

Worker::Worker() : thread_([this] { run_(); }) {}

Worker::~Worker() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        ends_.store(true, std::memory_order_release);
    }
    wanted_.notify_one();
    thread_.join();
}

void Worker::start(std::function<void()> job) {
    {
        // So that it is not between its last look and its sleep.
        const std::lock_guard<std::mutex> lock(mutex_);
        job_ = std::move(job);
        hasJob_.store(true, std::memory_order_release);
    }
    wanted_.notify_one();
}

bool Worker::waitFor(std::chrono::milliseconds time) {
    std::unique_lock<std::mutex> lock(mutex_);
    return done_.wait_for(lock, time, [&] { return isDone(); });
}

bool Worker::asksUntil_(Clock::time_point end) const {
    do {
        if (hasJob_.load(std::memory_order_acquire) ||
            ends_.load(std::memory_order_acquire)) {
            return true;
        }
        std::this_thread::yield();
    } while (Clock::now() < end);
    return false;
}

bool Worker::comesSoon_(Clock::time_point ended, Clock::duration gap) {
    if (asksUntil_(ended + kSpin)) {
        return true;
    }
    if (gap > kMostGap) {
        return false;
    }
    {
        std::unique_lock<std::mutex> lock(mutex_);
        const bool isHere = wanted_.wait_until(
                lock, ended + gap / 2, [&] { return hasJob_ || ends_; });
        if (isHere) {
            return true;
        }
    }
    return asksUntil_(ended + gap + gap / 2);
}

void Worker::run_() {
    const bool maySpin = hasSeveralCores();
    bool spins = false; // not before the first job
    Clock::time_point ended;
    Clock::duration gap{}; // from the last job but one to the last
    for (;;) {
        if (!spins || !comesSoon_(ended, gap)) {
            std::unique_lock<std::mutex> lock(mutex_);
            wanted_.wait(lock, [&] { return hasJob_ || ends_; });
        }
        if (!hasJob_.load(std::memory_order_acquire)) {
            return;
        }
        gap = Clock::now() - ended;
        {
            // What it holds goes before its caller goes on.
            const std::function<void()> job = std::move(job_);
            job_ = nullptr;
            job();
        }
        ended = Clock::now();
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            hasJob_.store(false, std::memory_order_release);
        }
        done_.notify_one();
        spins = maySpin;
    }
}

} // namespace faiss_bits::gpu::detail
