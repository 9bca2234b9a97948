#pragma once

#include <memory>
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

/// Times searches of the same queries. No result is served from the L2 of any
/// device.
class SearchTimes {
   public:
    /// Of up to so many queries of d dimensions, on the first `devices`
    /// devices.
    SearchTimes(int64_t mostQueries, int64_t d, int64_t devices);

    /// Ms with arrays on the first device.
    double onDevice(
            const faiss::Index& index,
            int64_t q,
            int64_t k,
            const Outputs& out);

    /// What a search of several devices takes, and one device for its share.
    struct InTurns {
        double ms = 0;      // of all
        double shareMs = 0; // of the share; 0: there is none to be timed
    };
    /// The same by so many shards or replicas on so many devices, and, where
    /// each has one and the queries can be divided, by the first
    /// device for what it has to do there (deviceShareOf), in turns
    /// (timeInTurns): GPUs that have just worked are slower, so that one that
    /// was timed before all others is too fast. Results are those of all.
    InTurns onDeviceInTurns(
            const faiss::Index& all,
            int parts,
            int devices,
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

    /// Displaces what the L2 of each device holds, at the same time: so all of
    /// them come from the same work. Enqueues on the first one's default
    /// stream, and waits for the others.
    void flush();

   private:
    TimingMode modeOnHost_();

    CacheFlush flush_;
    std::vector<std::unique_ptr<CacheFlush>> others_; ///< of devices 1 and up
    DeviceArray<float> queries_;
    std::vector<float> hostQueries_;
};

} // namespace faiss_bits::bench
