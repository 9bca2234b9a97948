#include "faiss_bits/many/GroupSpeeds.h"

#include <algorithm>
#include <cmath>

namespace faiss_bits::gpu::detail {

void GroupSpeeds::learn(
        const std::vector<idx_t>& rows,
        const std::vector<double>& seconds) {
    constexpr double kPart = 0.25;
    // A search that was held up is far off: it moves little.
    constexpr double kNear = 0.06;
    constexpr double kFarStep = 0.01;
    constexpr double kMost = 4;
    const size_t groups = speeds_.size();
    double sum = 0;
    for (size_t g = 0; g < groups; ++g) {
        if (rows[g] < kLeastRows || !(seconds[g] > 0)) {
            return;
        }
        sum += double(rows[g]) / seconds[g];
    }
    double moved = 0;
    for (size_t g = 0; g < groups; ++g) {
        const double seen = double(rows[g]) / seconds[g] * double(groups) / sum;
        const double off = seen - speeds_[g];
        const double step = std::abs(off) <= kNear
                ? kPart * off
                : std::copysign(kFarStep, off);
        speeds_[g] = std::clamp(speeds_[g] + step, 1 / kMost, kMost);
        moved += speeds_[g];
    }
    for (double& speed : speeds_) {
        speed *= double(groups) / moved;
    }
}

GroupTimes::GroupTimes(size_t groups) : timers_(groups), speeds_(groups) {}

GroupTimes::~GroupTimes() {
    for (const Timer& timer : timers_) {
        for (cudaEvent_t event : {timer.begin, timer.end}) {
            if (event) {
                (void)cudaEventDestroy(event);
            }
        }
    }
}

const std::vector<double>& GroupTimes::newCall() {
    std::vector<idx_t> rows;
    std::vector<double> seconds;
    bool haveWaited = true;
    for (Timer& timer : timers_) {
        rows.push_back(timer.hasEnded ? timer.rows : 0);
        seconds.push_back(timer.hasEnded ? secondsOf_(timer) : 0);
        haveWaited = haveWaited && timer.hasEnded && timer.hasWaited;
        timer.hasEnded = false;
    }
    speeds_.learn(rows, seconds);
    isByHost_ = haveWaited;
    call_ = std::chrono::steady_clock::now();
    return speeds_.speeds();
}

double GroupTimes::secondsOf_(const Timer& timer) const {
    if (isByHost_) {
        const std::chrono::duration<double> all = timer.endOnHost - call_;
        return timer.hasWaited ? all.count() - timer.late : 0;
    }
    float ms = 0;
    // Asked first: to a query, not ready is an answer; to the difference, an
    // error, which compute-sanitizer reports.
    if (cudaEventQuery(timer.end) != cudaSuccess ||
        cudaEventElapsedTime(&ms, timer.begin, timer.end) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    return double(ms) * 1e-3;
}

void GroupTimes::begin(
        int group,
        cudaStream_t stream,
        idx_t rows,
        double late) {
    Timer& timer = timers_[group];
    timer.hasEnded = false;
    timer.rows = rows;
    timer.late = late;
    if (isByHost_) {
        return;
    }
    const auto exists = [](cudaEvent_t& event) {
        return event || cudaEventCreate(&event) == cudaSuccess;
    };
    const bool isSet = exists(timer.begin) && exists(timer.end) &&
            cudaEventRecord(timer.begin, stream) == cudaSuccess;
    if (!isSet) {
        timer.rows = 0;
        (void)cudaGetLastError(); // the search says it if it fails, too
    }
}

bool GroupTimes::end(int group, cudaStream_t stream) {
    Timer& timer = timers_[group];
    timer.endOnHost = std::chrono::steady_clock::now();
    timer.hasWaited = cudaStreamQuery(stream) == cudaSuccess;
    timer.hasEnded = timer.rows > 0 &&
            (isByHost_ || cudaEventRecord(timer.end, stream) == cudaSuccess);
    if (!timer.hasWaited || !timer.hasEnded) {
        (void)cudaGetLastError();
    }
    return timer.hasWaited;
}

} // namespace faiss_bits::gpu::detail
