#include "faiss_bits/many/ShardSample.h"

#include <algorithm>
#include <exception>
#include <numeric>

#include "faiss_bits/many/ShardBatch.h"
#include "faiss_bits/many/ShardSet.h"
#include "kernels/device/Hash.h"
#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/knn/fused/FusedLists.h"
#include "kernels/many/RowLimits.h"

namespace faiss_bits::gpu::detail {

namespace {

/// Member i of a sample of m of n vectors: one from each of as many even parts,
/// the same ones in every run.
idx_t sampled(idx_t i, idx_t m, idx_t n) {
    const idx_t begin = i * n / m;
    const idx_t end = (i + 1) * n / m;
    return begin + idx_t(mixBits(uint32_t(i)) % uint32_t(end - begin));
}

/// The vectors of a sample, by shards.
std::vector<float> draw(const ShardSet& set, int d, idx_t total) {
    const double share = sampleOf(total).share();
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

/// Whether shards that find limits of their own are scanned in 8 bits, which
/// those with limits that are given are not: that gains more than a sample for
/// all. Where devices have several shards the samples of these would add up.
bool scansInBytes(
        const ShardSet& set,
        const std::vector<idx_t>& sizes,
        idx_t n,
        idx_t k) {
    const GpuIndexBitsFlat& first = *set.flat[0];
    if (first.metric_type != faiss::METRIC_L2 || !set.config.keepSearchImage ||
        set.devices.groups().size() != sizes.size()) {
        return false;
    }
    constexpr size_t kScratch = size_t(512) << 20;
    const float there = 0; // only asked for
    FlatKnnProblem p;
    p.metric = Metric::L2;
    p.numVectors = std::ranges::min(sizes);
    p.numQueries = n;
    p.d = first.d;
    p.k = int(std::min(k, p.numVectors));
    p.vectorNorms = p.greatestNorm = &there;
    p.searchImage = &there;
    p.imageHasBytes = true;
    p.device = deviceTraits(set.devices[0].device);
    const auto plan = planFused(p, kScratch);
    return plan && expectsBytes(*plan, p);
}

} // namespace

bool ShardSample::isReadyFor(const ShardSet& set, idx_t n, idx_t k) {
    std::vector<idx_t> sizes;
    for (int shard = 0; shard < set.devices.size(); ++shard) {
        sizes.push_back(set.sizeOf(shard));
    }
    if (!gainsBySample(sizes, int(set.devices.groups().size()), n, k)) {
        return false; // before one is made that would be of no use
    }
    if (scansInBytes(set, sizes, n, k)) {
        return false;
    }
    const idx_t total = std::accumulate(sizes.begin(), sizes.end(), idx_t(0));
    const bool isOld = total > made_.total + made_.total / 8;
    if ((indexes_.empty() || isOld) && (isShort_ || !make_(set, total))) {
        return false;
    }
    for (const auto& index : indexes_) {
        index->metric_arg = set.flat[0]->metric_arg;
    }
    return made_.saysEnough(k);
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
        made_ = {size, total};
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
    const idx_t rank = made_.rank(k);
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
    return made_.numWithin(k, set.sizeOf(shard));
}

void ShardSample::clear() {
    indexes_.clear();
    made_ = {};
    isShort_ = false;
}

} // namespace faiss_bits::gpu::detail
