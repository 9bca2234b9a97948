#include "faiss_bits/many/MetricShardSet.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/many/MetricParts.h"
#include "faiss_bits/many/ShardMap.h"
#include "faiss_bits/many/StagedRange.h"
#include "faiss_bits/metric_space/GpuMetricRun.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

using faiss_bits::detail::MetricContents;
using faiss_bits::detail::MetricIndexKind;
using metric_space::GroupsMemory;
using metric_space::HostGroupBounds;
using metric_space::MetricVectors;

namespace {

/// Merges the k nearest of some shards for one query, by (distance, id).
void mergeNearest(
        const std::vector<std::vector<float>>& distances,
        const std::vector<std::vector<idx_t>>& ids,
        idx_t row,
        idx_t k,
        float* outDistances,
        idx_t* outIds) {
    std::vector<idx_t> at(distances.size(), row * k);
    const idx_t end = (row + 1) * k;
    for (idx_t i = 0; i < k; ++i) {
        int best = 0;
        for (int s = 0; s < int(at.size()); ++s) {
            // An empty place (-1) comes behind every other one.
            const auto rank = [&](int shard) {
                const idx_t place = at[shard];
                const bool isThere = place < end && ids[shard][place] >= 0;
                return std::make_tuple(
                        !isThere,
                        isThere ? distances[shard][place] : 0.f,
                        isThere ? ids[shard][place] : 0);
            };
            if (rank(s) < rank(best)) {
                best = s;
            }
        }
        const idx_t place = at[best];
        if (place == end) { // the others are at their end, or empty
            best = -1;
        }
        outDistances[i] = best < 0 ? std::numeric_limits<float>::max()
                                   : distances[best][place];
        outIds[i] = best < 0 ? -1 : ids[best][place];
        if (best >= 0) {
            ++at[best];
        }
    }
}

} // namespace

MetricShardSet::MetricShardSet(
        const DeviceList& list,
        const GpuIndexBitsManyConfig& config,
        const MetricContents& whole)
        : devices(list, config, "shard"),
          copies(std::make_unique<DeviceCopies>(devices, config)),
          d(whole.d),
          kind(whole.kind),
          shards(list.size()) {
    const int parts = devices.size();
    devices.onEach([&](int part) {
        const MetricPart dealt = metricPart(whole, part, parts);
        const MetricContents& c = dealt.contents;
        const GpuContext context = devices.context(part);
        const auto allocate = allocateOnDevice;
        // By their ids for a while: the groups have a copy.
        const size_t bytes = c.vectors.size() * sizeof(float);
        const auto vectors = allocate(std::max<size_t>(bytes, 1));
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                vectors.get(),
                c.vectors.data(),
                bytes,
                cudaMemcpyHostToDevice,
                context.stream));
        const MetricVectors view{
                c.metric, c.d, c.n, static_cast<const float*>(vectors.get())};
        MetricShard& shard = shards[part];
        shard.size = dealt.size;
        shard.groups = kind == MetricIndexKind::ListOfClusters
                ? GroupsMemory(view, c.list, allocate, context.stream)
                : GroupsMemory(
                          view,
                          c.table,
                          faiss_bits::detail::kPivotGroup,
                          allocate,
                          context.stream);
        shard.groups.setIds(dealt.ids, whole.n, context.stream);
        waitFor(context.stream);
    });
}

void MetricShardSet::makeBounds_() const {
    if (std::all_of(shards.begin(), shards.end(), [](const MetricShard& shard) {
            return shard.bounds.groups().numIds > 0;
        })) {
        return;
    }
    std::vector<HostGroupBounds> ofParts(shards.size());
    devices.onEach([&](int part) {
        ofParts[part] = readGroupBounds(
                shards[part].groups.groups(), devices.context(part).stream);
    });
    const HostGroupBounds all = joinBounds(ofParts);
    devices.onEach([&](int part) {
        const cudaStream_t stream = devices.context(part).stream;
        MetricShard& shard = shards[part];
        std::vector<int32_t> own = all.referenceIds;
        for (size_t g = 0; g < own.size(); ++g) {
            if (int(g % shards.size()) != part) {
                own[g] = -1;
            }
        }
        auto ownCenters = allocateOnDevice(
                std::max<size_t>(own.size(), 1) * sizeof(int32_t));
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                ownCenters.get(),
                own.data(),
                own.size() * sizeof(int32_t),
                cudaMemcpyHostToDevice,
                stream));
        waitFor(stream);
        GroupsMemory bounds(all, allocateOnDevice, stream);
        shard.ownCenters = std::move(ownCenters);
        shard.bounds = std::move(bounds);
    });
}

void MetricShardSet::range(
        RangeStages stages,
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result) const {
    FAISS_THROW_IF_NOT_FMT(
            stages <= RangeStages::Two,
            "stages = %d is none of RangeStages",
            int(stages));
    const bool isEmpty = shards[0].groups.groups().numIds == 0;
    const bool hasNoEnd = kind == MetricIndexKind::Sss;
    if (isEmpty || (stages == RangeStages::OneAndAHalf && hasNoEnd)) {
        stages = RangeStages::One;
    }
    if (stages != RangeStages::One) {
        makeBounds_();
    }
    StagedRange search(*this, stages, x, radius);
    const idx_t rows = search.pageRows(n);
    for (idx_t first = 0; first < n; first += rows) {
        throwIfInterrupted();
        search.runPage(first, std::min(rows, n - first));
    }
    search.moveTo(result);
}

void MetricShardSet::nearest(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* ids) const {
    const size_t parts = shards.size();
    const size_t row = size_t(d) * sizeof(float);
    const size_t places = size_t(k) * (sizeof(float) + sizeof(idx_t));
    std::vector<std::vector<float>> shardDistances(parts);
    std::vector<std::vector<idx_t>> shardIds(parts);
    forMetricPages(n, row, places * parts, [&](idx_t first, idx_t count) {
        const size_t all = size_t(count) * size_t(k);
        devices.onEach([&](int part) {
            MetricShard& shard = shards[part];
            const GpuContext context = devices.context(part);
            const DeviceArray queries(
                    context, "x", x + first * d, size_t(count) * row);
            auto outIds = allocTemporary(context, all * sizeof(idx_t));
            auto outDistances = allocTemporary(context, all * sizeof(float));
            MetricRun run(
                    context,
                    shard.groups.groups(),
                    count,
                    static_cast<const float*>(queries.data()));
            shard.distances += run.nearest(
                    k,
                    static_cast<float*>(outDistances.get()),
                    static_cast<idx_t*>(outIds.get()));
            shardDistances[part].resize(all);
            shardIds[part].resize(all);
            copyOut(context,
                    outDistances.get(),
                    "distances",
                    shardDistances[part].data(),
                    all * sizeof(float));
            copyOut(context,
                    outIds.get(),
                    "labels",
                    shardIds[part].data(),
                    all * sizeof(idx_t));
        });
        const int groups = int(devices.groups().size());
        devices.onGroups([&](int group) {
            const idx_t end = sliceBegin(count, groups, group + 1);
            for (idx_t q = sliceBegin(count, groups, group); q < end; ++q) {
                mergeNearest(
                        shardDistances,
                        shardIds,
                        q,
                        k,
                        distances + (first + q) * k,
                        ids + (first + q) * k);
            }
        });
    });
}

} // namespace faiss_bits::gpu::detail
