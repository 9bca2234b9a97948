#include "faiss_bits/many/GroupSpeeds.h"

#include <algorithm>

namespace faiss_bits::gpu::detail {

void GroupSpeeds::learn(
        const std::vector<idx_t>& rows,
        const std::vector<double>& seconds) {
    constexpr double kPart = 0.25;
    constexpr double kMostStep = 0.02;
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
        const double step = kPart * (seen - speeds_[g]);
        speeds_[g] = std::clamp(
                speeds_[g] + std::clamp(step, -kMostStep, kMostStep),
                1 / kMost,
                kMost);
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

void GroupTimes::begin(int group, cudaStream_t stream, idx_t rows) {
    Timer& timer = timers_[group];
    timer.hasEnded = false;
    const auto exists = [](cudaEvent_t& event) {
        return event || cudaEventCreate(&event) == cudaSuccess;
    };
    const bool isSet = exists(timer.begin) && exists(timer.end) &&
            cudaEventRecord(timer.begin, stream) == cudaSuccess;
    timer.rows = isSet ? rows : 0;
    if (!isSet) {
        (void)cudaGetLastError(); // the search says it if it fails, too
    }
}

void GroupTimes::end(int group, cudaStream_t stream) {
    Timer& timer = timers_[group];
    timer.hasEnded =
            timer.rows > 0 && cudaEventRecord(timer.end, stream) == cudaSuccess;
    if (!timer.hasEnded) {
        (void)cudaGetLastError();
    }
}

const std::vector<double>& GroupTimes::speeds() {
    std::vector<idx_t> rows;
    std::vector<double> seconds;
    for (Timer& timer : timers_) {
        float ms = 0;
        // Not ready is an error of this function's.
        const bool isKnown = timer.hasEnded &&
                cudaEventElapsedTime(&ms, timer.begin, timer.end) ==
                        cudaSuccess;
        if (!isKnown) {
            (void)cudaGetLastError();
        }
        rows.push_back(isKnown ? timer.rows : 0);
        seconds.push_back(double(ms) * 1e-3);
        timer.hasEnded = false;
    }
    speeds_.learn(rows, seconds);
    return speeds_.speeds();
}

} // namespace faiss_bits::gpu::detail
