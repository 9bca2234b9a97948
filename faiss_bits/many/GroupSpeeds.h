#pragma once

#include <memory>
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
    /// is known by a quarter of the way, and by 0.02 at most: one that was held
    /// up says little.
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

/// Takes the times of the groups' searches, on their streams. What a search
/// took is known when the next one begins.
///
/// Threads  begin() and end() of a group in its thread, the others in the
///          calling one while no group works
class GroupTimes {
   public:
    explicit GroupTimes(size_t groups);
    ~GroupTimes();

    /// Before and after a group's search of so many queries; the current device
    /// is the stream's. Where CUDA fails no time is taken.
    void begin(int group, cudaStream_t stream, idx_t rows);
    void end(int group, cudaStream_t stream);

    /// Speeds with what the last search took, if all of it is done.
    const std::vector<double>& speeds();

   private:
    struct Timer {
        cudaEvent_t begin = nullptr;
        cudaEvent_t end = nullptr;
        idx_t rows = 0; ///< 0: no search since speeds()
        bool hasEnded = false;
    };
    std::vector<Timer> timers_;
    GroupSpeeds speeds_;
};

/// Takes the time of a group's search from its beginning to its end.
class TimedSearch {
   public:
    /// times  null: nobody takes it
    TimedSearch(GroupTimes* times, int group, cudaStream_t stream, idx_t rows)
            : times_(times), group_(group), stream_(stream) {
        if (times_) {
            times_->begin(group, stream, rows);
        }
    }
    ~TimedSearch() {
        if (times_) {
            times_->end(group_, stream_);
        }
    }
    TimedSearch(const TimedSearch&) = delete;
    TimedSearch& operator=(const TimedSearch&) = delete;

   private:
    GroupTimes* times_;
    int group_;
    cudaStream_t stream_;
};

} // namespace faiss_bits::gpu::detail
