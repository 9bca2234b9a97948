#include "faiss_bits/many/GpuIndexBitsShards.h"

#include <utility>

#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/many/ManyCalls.h"
#include "faiss_bits/many/ShardSet.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu {

using detail::CurrentDevice;
using detail::GpuContext;
using detail::requireCount;
using detail::requireNotNull;
using detail::ShardPiece;
using detail::ShardRun;
using detail::ShardSet;
using detail::withFaissErrors;

namespace {

std::unique_ptr<ShardSet> makeSet(
        const DeviceList& devices,
        const GpuIndexBitsManyConfig& config) {
    detail::requireManyConfig(config);
    return withFaissErrors(
            [&] { return std::make_unique<ShardSet>(devices, config); });
}

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
        : faiss::Index(dims, metric) {
    detail::requireDims(dims);
    detail::requireMetric(metric);
    set_ = makeSet(devices, config);
    for (int shard = 0; shard < set_->devices.size(); ++shard) {
        set_->devices.onPart(shard, [&] {
            const DevicePlace& place = set_->devices[shard];
            auto flat = std::make_unique<GpuIndexBitsFlat>(
                    place.resources,
                    dims,
                    metric,
                    detail::flatConfigOf(config, place.device));
            set_->flat.push_back(flat.get());
            set_->shards.push_back(std::move(flat));
        });
    }
    is_trained = true;
}

GpuIndexBitsShards::GpuIndexBitsShards(
        const DeviceList& devices,
        const faiss::IndexFlat* index,
        GpuIndexBitsManyConfig config)
        : GpuIndexBitsShards(
                  devices,
                  checked(index)->d,
                  checked(index)->metric_type,
                  config) {
    metric_arg = index->metric_arg;
    if (index->ntotal > 0) {
        add(index->ntotal, index->get_xb());
    }
}

GpuIndexBitsShards::GpuIndexBitsShards(
        const DeviceList& devices,
        std::vector<std::unique_ptr<faiss::gpu::GpuIndex>> parts,
        GpuIndexBitsManyConfig config) {
    set_ = makeSet(devices, config);
    detail::requireParts(devices, parts);
    for (const auto& part : parts) {
        ntotal += part->ntotal;
    }
    d = parts[0]->d;
    metric_type = parts[0]->metric_type;
    metric_arg = parts[0]->metric_arg;
    is_trained = true;
    set_->shards = std::move(parts);
}

GpuIndexBitsShards::~GpuIndexBitsShards() = default;

int GpuIndexBitsShards::count() const {
    return set_->devices.size();
}

int GpuIndexBitsShards::getDevice() const {
    return set_->devices[0].device;
}

std::shared_ptr<faiss::gpu::GpuResources> GpuIndexBitsShards::getResources()
        const {
    return set_->devices[0].resources;
}

const faiss::Index* GpuIndexBitsShards::at(int shard) const {
    FAISS_THROW_IF_NOT_FMT(
            shard >= 0 && shard < count(),
            "shard = %d is outside 0..%d",
            shard,
            count() - 1);
    return set_->shards[shard].get();
}

idx_t GpuIndexBitsShards::shardSize(int shard) const {
    return at(shard)->ntotal;
}

int GpuIndexBitsShards::shardDevice(int shard) const {
    at(shard);
    return set_->devices[shard].device;
}

idx_t GpuIndexBitsShards::shardK(int shard, idx_t n, idx_t k) const {
    at(shard);
    return set_->widths(n, k, set_->isFlat())[shard];
}

void GpuIndexBitsShards::requireFlat_(const char* what) const {
    FAISS_THROW_IF_NOT_FMT(
            set_->isFlat(),
            "%s: the shards are inverted lists, which are filled before they "
            "are dealt out and have ids of their own",
            what);
}

void GpuIndexBitsShards::train(idx_t, const float*) {}

void GpuIndexBitsShards::add_with_ids(
        idx_t n,
        const float* x,
        const idx_t* ids) {
    FAISS_THROW_IF_NOT_MSG(
            !ids,
            "ids: a flat index numbers its vectors itself and takes none; "
            "IndexIDMap keeps other ids");
    add(n, x);
}

void GpuIndexBitsShards::add(idx_t n, const float* x) {
    requireFlat_("add");
    requireCount(n, "n");
    if (n == 0) {
        return;
    }
    requireNotNull(x, "x");
    withFaissErrors([&] { addPieces_(n, x); });
}

void GpuIndexBitsShards::addPieces_(idx_t n, const float* x) {
    const auto& devices = set_->devices;
    const GpuContext home = devices.context(0);
    const CurrentDevice scope(home.device);
    const bool onHost = detail::placeOf(home, "x", x).onHost;
    const std::vector<ShardPiece> pieces = set_->map.plan(n);
    std::vector<const ShardPiece*> of(devices.size());
    for (const ShardPiece& piece : pieces) {
        of[piece.shard] = &piece;
    }
    detail::ShardMap after = set_->map;
    after.commit(pieces);
    auto segments = set_->uploadSegments(after);

    std::vector<idx_t> before;
    for (int shard = 0; shard < count(); ++shard) {
        before.push_back(set_->flat[shard]->ntotal);
    }
    // x on the device has been written on the stream of the first resources.
    if (!onHost) {
        detail::waitFor(home.stream);
    }
    try {
        devices.onEach([&](int shard) {
            if (!of[shard]) {
                return;
            }
            const float* from = x + of[shard]->first * d;
            const idx_t count = of[shard]->count;
            const GpuContext context = devices.context(shard);
            if (onHost || context.device == home.device) {
                set_->flat[shard]->add(count, from);
            } else {
                set_->copies->add(
                        devices.groupOf(shard),
                        *set_->flat[shard],
                        context,
                        home,
                        from,
                        count);
            }
            if (!onHost) {
                detail::waitFor(context.stream); // x is the caller's again
            }
        });
    } catch (...) {
        for (int shard = 0; shard < count(); ++shard) {
            try {
                set_->flat[shard]->truncate(before[shard]);
            } catch (const std::exception&) {
                // That of the addition says more: the device has failed.
            }
        }
        throw;
    }
    set_->map = std::move(after);
    set_->segments = std::move(segments);
    ntotal = set_->map.total();
}

void GpuIndexBitsShards::reset() {
    withFaissErrors([&] {
        set_->devices.onEach([&](int shard) { set_->shards[shard]->reset(); });
    });
    set_->map.clear();
    set_->segments.clear();
    set_->sample.clear();
    ntotal = 0;
}

void GpuIndexBitsShards::reconstruct(idx_t key, float* out) const {
    requireFlat_("reconstruct");
    FAISS_THROW_IF_NOT_FMT(
            key >= 0 && key < ntotal,
            "key = %lld is outside 0..%lld",
            (long long)key,
            (long long)ntotal - 1);
    reconstruct_n(key, 1, out);
}

void GpuIndexBitsShards::reconstruct_n(idx_t i0, idx_t n, float* out) const {
    requireFlat_("reconstruct_n");
    requireCount(n, "n");
    if (n == 0) {
        return;
    }
    FAISS_THROW_IF_NOT_FMT(
            i0 >= 0 && i0 < ntotal,
            "i0 = %lld is outside 0..%lld",
            (long long)i0,
            (long long)ntotal - 1);
    FAISS_THROW_IF_NOT_FMT(
            n <= ntotal - i0,
            "n = %lld: there are only %lld vectors from i0 = %lld on",
            (long long)n,
            (long long)(ntotal - i0),
            (long long)i0);
    requireNotNull(out, "out");
    withFaissErrors([&] {
        FAISS_THROW_IF_NOT_MSG(
                detail::placeOf(set_->devices.context(0), "out", out).onHost,
                "out lies on a device, and must lie on the host");
        for (const ShardRun& run : set_->map.runs(i0, n)) {
            set_->devices.onPart(run.shard, [&] {
                set_->flat[run.shard]->reconstruct_n(
                        run.inShard, run.count, out + (run.inWhole - i0) * d);
            });
        }
    });
}

void GpuIndexBitsShards::copyTo(faiss::IndexFlat* index) const {
    requireFlat_("copyTo");
    requireNotNull(index, "index");
    std::vector<float> vectors(size_t(ntotal) * d);
    reconstruct_n(0, ntotal, vectors.data());
    faiss::IndexFlat copy(d, metric_type);
    copy.metric_arg = metric_arg;
    copy.add(ntotal, vectors.data());
    *index = std::move(copy);
}

} // namespace faiss_bits::gpu
