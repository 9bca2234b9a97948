#pragma once

#include <vector>

#include <faiss/Index.h>

#include "benchs/common/DeviceData.h"
#include "benchs/common/Timing.h"
#include "benchs/many/Answers.h"

namespace faiss_bits::bench {

/// Results [q, k] of one search on the first device.
struct Outputs {
    Outputs(int64_t q, int64_t k) : distances(q * k), labels(q * k) {}

    /// To the host, when the device has done all that was enqueued.
    Answers download() const;

    DeviceArray<float> distances;
    DeviceArray<int64_t> labels;
};

/// Times searches of the same queries. No result is served from the L2.
class SearchTimes {
   public:
    /// Of up to so many queries of d dimensions.
    SearchTimes(int64_t mostQueries, int64_t d);

    /// Ms with arrays on the first device.
    double onDevice(
            const faiss::Index& index,
            int64_t q,
            int64_t k,
            const Outputs& out);

    /// Ms with arrays on the host, as FAISS's IndexShards needs them; its
    /// results are then in ofHost.
    double onHost(const faiss::Index& index, int64_t q, int64_t k);

    /// The same of several indexes in turns (timeInTurns); results are the last
    /// one's.
    std::vector<double> onHostInTurns(
            const std::vector<const faiss::Index*>& indexes,
            int64_t q,
            int64_t k);

    /// Once, and not timed.
    void searchOnHost(const faiss::Index& index, int64_t q, int64_t k);

    Answers ofHost; ///< of the last search with arrays there

    /// [mostQueries, d] on the device.
    const float* queries() const {
        return queries_.data();
    }

    /// The same on the host.
    const float* hostQueries() const {
        return hostQueries_.data();
    }

    /// Displaces what the L2 holds. Enqueues on the default stream.
    void flush() {
        flush_.enqueue();
    }

   private:
    TimingMode modeOnHost_();

    CacheFlush flush_;
    DeviceArray<float> queries_;
    std::vector<float> hostQueries_;
};

} // namespace faiss_bits::bench
