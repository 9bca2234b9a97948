#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "benchs/common/DeviceData.h"
#include "benchs/common/Timing.h"
#include "benchs/ivf/IvfIndexes.h"
#include "benchs/ivf/IvfReference.h"

namespace faiss_bits::bench {

/// Two indexes with vectors, queries of them, and the answers of the last
/// search; what all of bench_ivf does with these.
class IvfSearches {
   public:
    /// vectors [n, d] and queries [q, d] on the host; the queries, and
    /// resources, outlive it.
    IvfSearches(
            IvfResources& resources,
            const IvfShape& shape,
            const std::vector<float>& vectors,
            const std::vector<float>& queries,
            bool withRival);

    IvfIndexes& indexes() {
        return indexes_;
    }

    /// Vectors in the lists of the first q queries: of each query its own, and
    /// of a list that several probe once.
    struct Probed {
        int64_t pairs = 0;
        int64_t vectors = 0;
    };
    Probed probed(int nprobe, int64_t q);

    /// Median time of a search, wall clock.
    Measured time(
            faiss::gpu::GpuIndexIVF& index,
            int nprobe,
            int64_t q,
            int k,
            TimingMode mode,
            const faiss::SearchParameters* params = nullptr);

    /// Of the last search: the first, the last and one in the middle.
    IvfReference::Found check(
            int nprobe,
            int64_t q,
            int k,
            const std::vector<bool>* members = nullptr);

    /// Labels [q, k] of the last search.
    std::vector<int64_t> labels() const;

   private:
    IvfIndexes indexes_;
    DeviceArray<float> queries_;
    IvfReference reference_;
    CacheFlush flush_;
    DeviceArray<float> distances_;
    DeviceArray<int64_t> labels_;
};

} // namespace faiss_bits::bench
