#include "faiss_bits/many/GpuIndexBitsShards.h"

#include <numeric>
#include <utility>

#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/many/ShardSet.h"

namespace faiss_bits::gpu {

using detail::makePartSet;
using detail::requireNotNull;
using detail::ShardPiece;
using detail::ShardRun;
using detail::ShardSet;
using detail::withFaissErrors;
using faiss_bits::detail::requireKey;
using faiss_bits::detail::requireRun;

namespace {

const faiss::IndexFlat* checked(const faiss::IndexFlat* index) {
    requireNotNull(index, "index");
    return index;
}

} // namespace

GpuIndexBitsShards::GpuIndexBitsShards(
        const DeviceList& devices,
        int dims,
        faiss::MetricType metric,
        GpuIndexBitsManyConfig config)
        : GpuIndexBitsMany(
                  makePartSet<ShardSet>(devices, config),
                  dims,
                  metric) {}

GpuIndexBitsShards::GpuIndexBitsShards(
        const DeviceList& devices,
        const faiss::IndexFlat* index,
        GpuIndexBitsManyConfig config)
        : GpuIndexBitsShards(
                  devices,
                  checked(index)->d,
                  checked(index)->metric_type,
                  config) {
    copyFrom_(*index);
}

GpuIndexBitsShards::GpuIndexBitsShards(
        const DeviceList& devices,
        std::vector<std::unique_ptr<faiss::gpu::GpuIndex>> parts,
        GpuIndexBitsManyConfig config)
        : GpuIndexBitsMany(
                  makePartSet<ShardSet>(devices, config),
                  std::move(parts)) {
    for (const auto& part : shards_().parts) {
        ntotal += part->ntotal;
    }
}

GpuIndexBitsShards::~GpuIndexBitsShards() = default;

ShardSet& GpuIndexBitsShards::shards_() const {
    return static_cast<ShardSet&>(parts_());
}

idx_t GpuIndexBitsShards::shardSize(int shard) const {
    return at(shard)->ntotal;
}

int GpuIndexBitsShards::shardDevice(int shard) const {
    at(shard);
    return shards_().devices[shard].device;
}

idx_t GpuIndexBitsShards::shardK(int shard, idx_t n, idx_t k) const {
    at(shard);
    return shards_().widths(n, k, shards_().isFlat())[shard];
}

void GpuIndexBitsShards::addVectors_(
        idx_t n,
        const float* x,
        const idx_t* ids,
        bool onHost) {
    ShardSet& set = shards_();
    const std::vector<ShardPiece> pieces = set.plan(n);
    std::vector<const ShardPiece*> of(set.devices.size());
    for (const ShardPiece& piece : pieces) {
        of[piece.shard] = &piece;
    }
    std::vector<idx_t> numbers;
    if (!set.isFlat() && !ids) {
        numbers.resize(size_t(n));
        std::iota(numbers.begin(), numbers.end(), ntotal);
        ids = numbers.data();
    }
    detail::ShardMap after = set.map;
    if (set.isFlat()) {
        after.commit(pieces);
    }
    auto segments = set.uploadSegments(after);

    set.addOrTakeBack([&](int shard) {
        if (const ShardPiece* piece = of[shard]) {
            set.addTo(
                    shard,
                    piece->count,
                    x + piece->first * d,
                    ids ? ids + piece->first : nullptr,
                    onHost);
        }
    });
    set.map = std::move(after);
    set.segments = std::move(segments);
    ntotal += n;
}

void GpuIndexBitsShards::wasReset_() {
    shards_().map.clear();
    shards_().segments.clear();
    shards_().sample.clear();
}

void GpuIndexBitsShards::reconstruct(idx_t key, float* out) const {
    requireFlat_("reconstruct");
    requireParts_();
    requireKey(key, ntotal);
    reconstruct_n(key, 1, out);
}

void GpuIndexBitsShards::reconstruct_n(idx_t i0, idx_t n, float* out) const {
    requireFlat_("reconstruct_n");
    requireParts_();
    requireRun(i0, n, ntotal);
    if (n == 0) {
        return;
    }
    requireNotNull(out, "out");
    withFaissErrors([&] {
        FAISS_THROW_IF_NOT_MSG(
                detail::placeOf(shards_().devices.context(0), "out", out)
                        .onHost,
                "out lies on a device, and must lie on the host");
        for (const ShardRun& run : shards_().map.runs(i0, n)) {
            shards_().devices.onPart(run.shard, [&] {
                shards_().flat[run.shard]->reconstruct_n(
                        run.inShard, run.count, out + (run.inWhole - i0) * d);
            });
        }
    });
}

} // namespace faiss_bits::gpu
