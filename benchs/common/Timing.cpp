#include "benchs/common/Timing.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits::bench {

namespace {

/// Loading code, which the first call may do, takes less than this.
constexpr double kLoadMs = 1000;

int repeatsFor(double ms, const TimingMode& mode) {
    if (ms > mode.onceMs) {
        return 1;
    }
    return ms > mode.fewMs ? 3
                           : std::clamp(
                                     int(mode.totalMs / ms),
                                     mode.leastRepeats,
                                     mode.mostRepeats);
}

Measured medianOf(std::vector<double> times) {
    std::sort(times.begin(), times.end());
    const size_t half = times.size() / 2;
    const double median = times.size() % 2
            ? times[half]
            : (times[half - 1] + times[half]) / 2;
    return {median, int(times.size())};
}

class Clock {
   public:
    explicit Clock(const TimingMode& mode) : mode_(mode) {
        BITS_CUDA_CHECK(cudaEventCreate(&begin_));
        BITS_CUDA_CHECK(cudaEventCreate(&end_));
    }
    Clock(const Clock&) = delete;
    Clock& operator=(const Clock&) = delete;
    ~Clock() {
        (void)cudaEventDestroy(begin_);
        (void)cudaEventDestroy(end_);
    }

    double time(const std::function<void(int)>& call, int i) {
        if (mode_.before) {
            mode_.before();
        }
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
        if (mode_.wallClock) {
            const auto begin = std::chrono::steady_clock::now();
            call(i);
            BITS_CUDA_CHECK(cudaDeviceSynchronize());
            const auto end = std::chrono::steady_clock::now();
            return std::chrono::duration<double, std::milli>(end - begin)
                    .count();
        }
        BITS_CUDA_CHECK(cudaEventRecord(begin_, mode_.stream));
        call(i);
        BITS_CUDA_CHECK(cudaEventRecord(end_, mode_.stream));
        BITS_CUDA_CHECK(cudaEventSynchronize(end_));
        float ms = 0;
        BITS_CUDA_CHECK(cudaEventElapsedTime(&ms, begin_, end_));
        return ms;
    }

   private:
    const TimingMode& mode_;
    cudaEvent_t begin_ = nullptr;
    cudaEvent_t end_ = nullptr;
};

} // namespace

Measured timeCall(
        const std::function<void(int)>& call,
        const TimingMode& mode) {
    Clock clock(mode);
    const double first = clock.time(call, 0);
    if (first > mode.firstMs && first <= mode.maxMs) {
        return {first, 1};
    }
    if (first > mode.maxMs + kLoadMs) {
        return {first, 0};
    }
    // So the second call tells how long one takes.
    std::vector<double> times = {clock.time(call, 0)};
    if (times[0] > mode.maxMs) {
        return {times[0], 0};
    }
    const int repeats = repeatsFor(times[0], mode);
    for (int i = repeats - 2; i >= 0; --i) {
        times.push_back(clock.time(call, i));
    }
    return medianOf(std::move(times));
}

std::vector<Measured> timeInTurns(
        const std::vector<std::function<void(int)>>& calls,
        const TimingMode& mode) {
    constexpr int kTurns = 4;
    Clock clock(mode);
    struct One {
        std::vector<double> times;
        int ofTurn = 0; // 0: too slow to repeat
    };
    std::vector<One> all;
    for (const auto& call : calls) {
        One& one = all.emplace_back();
        const double first = clock.time(call, 0);
        if (first > mode.firstMs) {
            one.times = {first};
            continue;
        }
        const double second = clock.time(call, 0);
        const int repeats = repeatsFor(second, mode);
        if (repeats == 1) {
            one.times = {second};
            continue;
        }
        one.ofTurn = (repeats + kTurns - 1) / kTurns;
    }
    for (int turn = 0; turn < kTurns; ++turn) {
        for (size_t c = 0; c < calls.size(); ++c) {
            One& one = all[c];
            for (int i = one.ofTurn; i >= 0 && one.ofTurn > 0; --i) {
                const double ms = clock.time(calls[c], i);
                if (i < one.ofTurn) {
                    one.times.push_back(ms);
                }
            }
        }
    }
    std::vector<Measured> measured;
    for (One& one : all) {
        measured.push_back(medianOf(std::move(one.times)));
    }
    return measured;
}

} // namespace faiss_bits::bench
