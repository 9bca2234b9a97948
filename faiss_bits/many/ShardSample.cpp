#include "faiss_bits/many/ShardSample.h"

#include <algorithm>
#include <exception>

#include "faiss_bits/many/ShardBatch.h"
#include "faiss_bits/many/ShardSet.h"
#include "kernels/device/Hash.h"
#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/many/RowLimits.h"
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

/// Member i of a sample of m of n vectors: one from each of as many even parts,
/// the same ones in every run.
idx_t sampled(idx_t i, idx_t m, idx_t n) {
    const idx_t begin = i * n / m;
    const idx_t end = (i + 1) * n / m;
    return begin + idx_t(mixBits(uint32_t(i)) % uint32_t(end - begin));
}

/// Vectors of a sample of so many.
idx_t sampleSizeOf(idx_t total) {
    return std::min(total / kShare, kMostSamples);
}

/// Queries that gain by limits.
idx_t leastQueriesOf(const ManyDevices& devices) {
    const idx_t groups = idx_t(devices.groups().size());
    return groups == 1
            ? kLeastQueries
            : std::max(
                      kLeastQueries, kLeastOfSeveral * groups / devices.size());
}

/// The vectors of a sample, by shards.
std::vector<float> draw(const ShardSet& set, int d, idx_t total) {
    const double share = double(sampleSizeOf(total)) / double(total);
    std::vector<float> vectors;
    for (int shard = 0; shard < set.devices.size(); ++shard) {
        const idx_t n = set.sizeOf(shard);
        const idx_t m = std::max<idx_t>(1, idx_t(share * double(n)));
        std::vector<idx_t> keys;
        for (idx_t i = 0; i < m; ++i) {
            keys.push_back(sampled(i, m, n));
        }
        const size_t first = vectors.size();
        vectors.resize(first + size_t(m) * d);
        set.devices.onPart(shard, [&] {
            set.flat[shard]->reconstruct_batch(
                    m, keys.data(), vectors.data() + first);
        });
    }
    return vectors;
}

/// Whether a sample of `size`, such a share of all vectors, says enough of its
/// rank'th, and few more than k are no farther, as all of these are rescored.
/// For k = 2000 1,328 more, of 2^21 vectors, were a gain on two devices; 2,992
/// more, of 2^23, took them 45.6 ms where shards with limits of their own took
/// 38.3 (H200, d = 128, 10,240 queries).
bool saysEnough(idx_t rank, idx_t size, double share, idx_t k) {
    constexpr double kMostInVain = 2048;
    return rank * kLeastSharePerRank <= size &&
            double(rank) / share - double(k) <= kMostInVain;
}

} // namespace

bool ShardSample::isReadyFor(const ShardSet& set, idx_t n, idx_t k) {
    const int shards = set.devices.size();
    if (shards < 2 || n < leastQueriesOf(set.devices) || k > kMaxFinishK) {
        return false;
    }
    idx_t total = 0;
    for (int shard = 0; shard < shards; ++shard) {
        const idx_t size = set.sizeOf(shard);
        if (size < kLeastShard) {
            return false;
        }
        total += size;
    }
    const idx_t size = sampleSizeOf(total);
    const double share = double(size) / double(total);
    if (!saysEnough(sampleRank(double(k), share), size, share, k)) {
        return false; // before one is made that would be of no use
    }
    const bool isOld = total > total_ + total_ / 8;
    if ((indexes_.empty() || isOld) && (isShort_ || !make_(set, total))) {
        return false;
    }
    for (const auto& index : indexes_) {
        index->metric_arg = set.flat[0]->metric_arg;
    }
    return saysEnough(rank_(k), size_, share_(), k);
}

bool ShardSample::make_(const ShardSet& set, idx_t total) {
    clear();
    const int d = set.flat[0]->d;
    try {
        const std::vector<float> vectors = draw(set, d, total);
        const idx_t size = idx_t(vectors.size()) / d;
        for (const PartGroup& group : set.devices.groups()) {
            const int lead = group.parts[0];
            set.devices.onPart(lead, [&] {
                const DevicePlace& place = set.devices[lead];
                GpuIndexBitsFlatConfig config;
                config.device = place.device;
                config.keepSearchImage = set.config.keepSearchImage;
                auto index = std::make_unique<GpuIndexBitsFlat>(
                        place.resources, d, set.flat[0]->metric_type, config);
                index->add(size, vectors.data());
                indexes_.push_back(std::move(index));
            });
        }
        size_ = size;
        total_ = total;
        return true;
    } catch (const std::exception&) {
        clear();
        isShort_ = true;
        return false;
    }
}

void ShardSample::limits(
        int group,
        const GpuContext& lead,
        const float* x,
        idx_t rows,
        idx_t k,
        MemoryStack& memory,
        float* limits) const {
    const idx_t rank = rank_(k);
    const GpuIndexBitsFlat& index = *indexes_[group];
    const Results found(
            memory.take(lead, size_t(rows) * rank * kResultBytes), rows, rank);
    index.search(rows, x, rank, found.distances, found.labels);
    runRowLimits(
            found.distances,
            found.labels,
            rows,
            rank,
            isSimilarity(requireMetric(index.metric_type)),
            limits,
            lead.stream);
}

idx_t ShardSample::numWithin(const ShardSet& set, int shard, idx_t k) const {
    return idx_t(
            double(rank_(k)) / share_() * double(set.sizeOf(shard)) /
            double(total_));
}

idx_t ShardSample::rank_(idx_t k) const {
    return idx_t(sampleRank(double(k), share_()));
}

void ShardSample::clear() {
    indexes_.clear();
    size_ = total_ = 0;
    isShort_ = false;
}

} // namespace faiss_bits::gpu::detail
