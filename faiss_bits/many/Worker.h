#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

/// Not part of the API.
namespace faiss_bits::gpu::detail {

/// A thread for jobs, one at a time. After a job it asks for the next one for a
/// while before it sleeps: searches follow each other, and a thread that sleeps
/// takes long to wake (of 120 us for one query on two devices some 25, where it
/// is woken and wakes the other; H200, FAISS's IndexReplicas of one IVF index).
/// It yields while it asks, so that threads with work on the same core come
/// first. The time that it asks for counts all the same where a quota limits
/// the processor's time (cgroups): up to 0.5 ms a job and thread; and where
/// jobs come every 10 ms or sooner, around the time that the next one is due:
/// so long after the last as that came after the one before, from half to one
/// and a half of it. Four devices' searches that take 3.5 ms were found to
/// begin 170 us later where the threads had gone to sleep meanwhile (a virtual
/// machine with H200s). Where the process may use one core alone it sleeps at
/// once.
///
/// Threads  start(), isDone() and waitFor() from one thread at a time
class Worker {
   public:
    /// Throws std::system_error where there is no thread.
    Worker();
    /// Waits for the job that runs.
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    /// Begins with a job; the one before is done. A job does not throw.
    void start(std::function<void()> job);

    /// Whether start()'s job is done; what it has written can be read then.
    bool isDone() const {
        return !hasJob_.load(std::memory_order_acquire);
    }

    /// Sleeps until it is done or the time is over: isDone().
    bool waitFor(std::chrono::milliseconds time);

   private:
    using Clock = std::chrono::steady_clock;

    void run_();
    /// Asks for the next job, once at least.
    bool asksUntil_(Clock::time_point end) const;
    /// Asks for a while after the last job's end, and when the next one is due
    /// if that comes as soon as the last one came.
    bool comesSoon_(Clock::time_point ended, Clock::duration gap);

    std::mutex mutex_;
    std::condition_variable wanted_;
    std::condition_variable done_;
    std::function<void()> job_;
    /// Set by start(), and taken back when the job is done; set for good by the
    /// destructor.
    std::atomic<bool> hasJob_ = false;
    std::atomic<bool> ends_ = false;
    std::thread thread_; // the last: it uses the others
};

} // namespace faiss_bits::gpu::detail
