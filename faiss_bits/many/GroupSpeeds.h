#pragma once

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "faiss_bits/common/FaissCompat.h"

/// Not part of the API.
namespace faiss_bits::gpu::detail {

/// How fast groups of replicas are, of the searches before. GPUs of one kind
/// differ by some per cent in a search of many queries, and those of several
/// kinds by more: each gets as many queries as it searches in the time of the
/// others. Plain arithmetic.
class GroupSpeeds {
   public:
    explicit GroupSpeeds(size_t groups) : speeds_(groups, 1.0) {}

    /// Queries of each group in one search and the seconds that it took.
    /// Few queries or no time of one: nothing is learned. A search moves what
    /// is known by a quarter of the way where it is off by 0.06 at most, else
    /// by 0.01: one that was held up says little.
    void learn(
            const std::vector<idx_t>& rows,
            const std::vector<double>& seconds);

    /// Of each group, 1 on average, about 1/4 to 4.
    const std::vector<double>& speeds() const {
        return speeds_;
    }

    /// Fewer queries of a group say nothing about a search of many.
    static constexpr idx_t kLeastRows = 2048;

   private:
    std::vector<double> speeds_;
};

/// Takes the times of the groups' searches. Where those of the last call had
/// waited for their results it is the host's, from the beginning of the call
/// until they are there: all that makes one group end later than another is in
/// it, as the time until its thread has its queries. Else it is their streams',
/// by events. What a search took is learned when the next one begins.
///
/// Threads  begin() and end() of a group in its thread, the others in the
///          calling one while no group works
class GroupTimes {
   public:
    explicit GroupTimes(size_t groups);
    ~GroupTimes();

    /// A call begins. Speeds with what the last one took, if all of it is done.
    const std::vector<double>& newCall();

    /// Before and after a group's search of so many queries; the current device
    /// is the stream's. Where CUDA fails no time is taken.
    ///
    /// late  seconds until its end that depend on no speed
    void begin(int group, cudaStream_t stream, idx_t rows, double late);
    /// Whether all of the stream is done by now.
    bool end(int group, cudaStream_t stream);

   private:
    struct Timer {
        cudaEvent_t begin = nullptr;
        cudaEvent_t end = nullptr;
        idx_t rows = 0; ///< 0: no search in this call
        double late = 0;
        bool hasEnded = false;
        bool hasWaited = false;
        std::chrono::steady_clock::time_point endOnHost;
    };
    /// Of a search that has ended; 0: not known.
    double secondsOf_(const Timer& timer) const;

    std::vector<Timer> timers_;
    std::chrono::steady_clock::time_point call_;
    bool isByHost_ = false; // the times of this call
    GroupSpeeds speeds_;
};

/// Takes the time of a group's search from its beginning to its end.
class TimedSearch {
   public:
    /// times  null: nobody takes it. The others as of GroupTimes::begin
    TimedSearch(
            GroupTimes* times,
            int group,
            cudaStream_t stream,
            idx_t rows,
            double late)
            : times_(times), group_(group), stream_(stream) {
        if (times_) {
            times_->begin(group, stream, rows, late);
        }
    }
    ~TimedSearch() {
        (void)end();
    }
    /// Once; the destructor does it else. Whether all of the stream is known to
    /// be done by now.
    bool end() {
        GroupTimes* const times = std::exchange(times_, nullptr);
        return times && times->end(group_, stream_);
    }
    TimedSearch(const TimedSearch&) = delete;
    TimedSearch& operator=(const TimedSearch&) = delete;

   private:
    GroupTimes* times_;
    int group_;
    cudaStream_t stream_;
};

} // namespace faiss_bits::gpu::detail
