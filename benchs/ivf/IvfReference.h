#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "benchs/ivf/IvfIndexes.h"

namespace faiss_bits::bench {

/// What is right of some answers: distances in float64 of all vectors of the
/// lists that ours probes, decoded by FAISS on the CPU.
class IvfReference {
   public:
    /// queries [n, d] on the host, and the same on the device.
    IvfReference(
            IvfIndexes& indexes,
            const float* queries,
            const float* onDevice);

    struct Found {
        int64_t places = 0; ///< that were looked at
        int64_t wrong = 0;  ///< with another distance or label than is right
        int64_t among = 0;  ///< labels that are among the nearest k

        double recall() const {
            return places ? double(among) / double(places) : 1;
        }
    };

    /// The answers [k] of one query, of an index whose nprobe is that of ours.
    /// members: ids that are allowed, null: all.
    Found check(
            int64_t query,
            int nprobe,
            int k,
            const int64_t* labels,
            const float* distances,
            const std::vector<bool>* members = nullptr);

   private:
    struct List {
        std::vector<float> vectors; ///< [ids.size(), d]
        std::vector<int64_t> ids;
    };
    /// Of each id: distance, negated inner product, or NaN: not in the lists.
    using Keys = std::vector<double>;

    const List& list(int64_t number);
    const Keys& keys(int64_t query, int nprobe);

    IvfIndexes& indexes_;
    const float* queries_;
    const float* onDevice_;
    std::map<int64_t, List> lists_;
    std::map<std::pair<int64_t, int>, Keys> keys_;
};

} // namespace faiss_bits::bench
