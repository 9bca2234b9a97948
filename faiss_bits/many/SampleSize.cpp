#include "faiss_bits/many/SampleSize.h"

#include <algorithm>
#include <numeric>

#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/survivors/SurvivorSort.h"

namespace faiss_bits::gpu::detail {

namespace {

/// Fewer queries wait for the search of the sample longer than they gain: on
/// one device; and on several of one shard each, which meet once more before
/// they search, and save one sample each.
constexpr idx_t kLeastQueries = 512;
constexpr idx_t kLeastOfSeveral = 2048;
/// Smaller shards take limits by other ways than a sample.
constexpr idx_t kLeastShard = 8192;
/// A sample is one vector of so many, or the most there are.
constexpr idx_t kShare = 16;
constexpr idx_t kMostSamples = 1 << 16;
/// Fewer for a place of the result say too little.
constexpr idx_t kLeastSharePerRank = 8;
/// More that are rescored without need cost more than limits gain. For
/// k = 2000 1,328 more, of 2^21 vectors, were a gain on two devices; 2,992
/// more, of 2^23, took them 45.6 ms where shards with limits of their own took
/// 38.3 (H200, d = 128, 10,240 queries).
constexpr double kMostInVain = 2048;

} // namespace

idx_t SampleSize::rank(idx_t k) const {
    return idx_t(sampleRank(double(k), share()));
}

idx_t SampleSize::numWithin(idx_t k, idx_t n) const {
    return idx_t(double(rank(k)) / share() * double(n) / double(total));
}

bool SampleSize::saysEnough(idx_t k) const {
    const idx_t itsRank = rank(k);
    return itsRank * kLeastSharePerRank <= size &&
            double(itsRank) / share() - double(k) <= kMostInVain;
}

SampleSize sampleOf(idx_t total) {
    return {std::min(total / kShare, kMostSamples), total};
}

idx_t leastSampleQueries(int shards, int groups) {
    return groups == 1
            ? kLeastQueries
            : std::max(kLeastQueries, kLeastOfSeveral * groups / shards);
}

bool gainsBySample(
        const std::vector<idx_t>& shardSizes,
        int groups,
        idx_t n,
        idx_t k) {
    const int shards = int(shardSizes.size());
    if (shards < 2 || n < leastSampleQueries(shards, groups) ||
        k > kMaxFinishK || std::ranges::min(shardSizes) < kLeastShard) {
        return false;
    }
    const idx_t total =
            std::accumulate(shardSizes.begin(), shardSizes.end(), idx_t(0));
    return sampleOf(total).saysEnough(k);
}

} // namespace faiss_bits::gpu::detail
