#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include <cuda_runtime_api.h>

namespace faiss_bits::bench {

struct Measured {
    double ms = 0;   ///< median
    int repeats = 0; ///< 1: a single call, too slow to repeat; 0: given up
};

/// How a call is timed, and what is done before each timing.
struct TimingMode {
    /// true: wall clock around the call and a device synchronisation, so host
    /// work counts; false: events on the stream.
    bool wallClock = false;
    cudaStream_t stream = nullptr;
    std::function<void()> before; ///< not timed
    /// Gives up where a call takes longer than this, the first one aside.
    double maxMs = 1e300;
    double totalMs = 60; ///< repeats together, within their numbers
    int leastRepeats = 7;
    int mostRepeats = 51;
    double fewMs = 100;    ///< above it 3 repeats
    double onceMs = 300;   ///< above it one, after the warm-up
    double firstMs = 1000; ///< above it the first call is the measurement
};

/// Median time of call(i), i = repeats - 1, ..., 0, after one warm-up, with as
/// many repeats as the mode says.
Measured timeCall(const std::function<void(int)>& call, const TimingMode& mode);

/// The same of several calls that are compared, in four turns: in each a part
/// of every call's repeats, one call after the other, and before each part the
/// call once more, not timed. So what changes with time, as the clock of a GPU
/// that gets warm, is nobody's gain.
std::vector<Measured> timeInTurns(
        const std::vector<std::function<void(int)>>& calls,
        const TimingMode& mode);

/// Seconds since the program's start, for --max-seconds.
class Budget {
   public:
    explicit Budget(double maxSeconds) : maxSeconds_(maxSeconds) {}
    double seconds() const {
        const auto now = std::chrono::steady_clock::now();
        return std::chrono::duration<double>(now - start_).count();
    }
    bool isSpent() const {
        return seconds() > maxSeconds_;
    }

   private:
    std::chrono::steady_clock::time_point start_ =
            std::chrono::steady_clock::now();
    double maxSeconds_;
};

} // namespace faiss_bits::bench
