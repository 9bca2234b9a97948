#include "faiss_bits/many/GpuIndexBitsMetricSpaceShards.h"

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/RangeArguments.h"
#include "faiss_bits/many/ManyRange.h"
#include "faiss_bits/many/MetricShardSet.h"
#include "faiss_bits/metric_space/GpuIndexBitsMetricSpace.h"
#include "faiss_bits/metric_space/GpuMetricRun.h"
#include "faiss_bits/metric_space/IndexMetricSpace.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu {

using detail::CurrentDevice;
using detail::GpuContext;
using detail::MetricShardSet;
using detail::requireNotNull;
using detail::withFaissErrors;
using faiss_bits::detail::MetricContents;

namespace {

template <class Index>
const Index& checked(const Index* index) {
    requireNotNull(index, "index");
    return *index;
}

std::unique_ptr<MetricShardSet> makeSet(
        const DeviceList& devices,
        const GpuIndexBitsManyConfig& config,
        const MetricContents& whole) {
    FAISS_THROW_IF_NOT_MSG(
            !config.useFloat16 && !config.useBFloat16,
            "config.useFloat16 or config.useBFloat16 is set: an index for "
            "metric spaces has float32 vectors alone");
    return withFaissErrors([&] {
        return std::make_unique<MetricShardSet>(devices, config, whole);
    });
}

/// An array of results, on the host or on the first device.
template <class T>
class ResultArray {
   public:
    ResultArray(const GpuContext& home, const char* name, T* out, size_t count)
            : home_(home), out_(out), count_(count) {
        requireNotNull(out, name);
        if (!detail::placeOf(home, name, out).onHost) {
            copy_.resize(count);
        }
    }

    T* data() {
        return copy_.empty() ? out_ : copy_.data();
    }

    void finish() {
        if (!copy_.empty()) {
            BITS_CUDA_CHECK(cudaMemcpyAsync(
                    out_,
                    copy_.data(),
                    count_ * sizeof(T),
                    cudaMemcpyHostToDevice,
                    home_.stream));
            detail::waitFor(home_.stream);
        }
    }

   private:
    const GpuContext& home_;
    T* out_;
    size_t count_;
    std::vector<T> copy_;
};

} // namespace

GpuIndexBitsMetricSpaceShards::GpuIndexBitsMetricSpaceShards(
        const DeviceList& devices,
        const GpuIndexBitsMetricSpace* index,
        GpuIndexBitsManyConfig config)
        : faiss::Index(checked(index).d, checked(index).metric_type) {
    {
        const CurrentDevice scope(index->getDevice());
        withFaissErrors([&] { index->build_(); });
    }
    set_ = makeSet(devices, config, index->contents_());
    ntotal = index->ntotal;
    is_trained = true;
}

GpuIndexBitsMetricSpaceShards::GpuIndexBitsMetricSpaceShards(
        const DeviceList& devices,
        const IndexMetricSpace* index,
        GpuIndexBitsManyConfig config)
        : faiss::Index(checked(index).d, checked(index).metric_type) {
    index->build_();
    set_ = makeSet(devices, config, index->contents_());
    ntotal = index->ntotal;
    is_trained = true;
}

GpuIndexBitsMetricSpaceShards::~GpuIndexBitsMetricSpaceShards() = default;

int GpuIndexBitsMetricSpaceShards::count() const {
    return set_->devices.size();
}

int GpuIndexBitsMetricSpaceShards::getDevice() const {
    return set_->devices[0].device;
}

idx_t GpuIndexBitsMetricSpaceShards::shardSize(int shard) const {
    shardDevice(shard);
    return set_->shards[shard].size;
}

int GpuIndexBitsMetricSpaceShards::shardDevice(int shard) const {
    detail::requireWithin(shard, 0, count() - 1, "shard");
    return set_->devices[shard].device;
}

void GpuIndexBitsMetricSpaceShards::add(idx_t, const float*) {
    FAISS_THROW_MSG(
            "add: the vectors are dealt out by an index that is made; add to "
            "one on a GPU or on the CPU, and deal that out");
}

void GpuIndexBitsMetricSpaceShards::reset() {
    FAISS_THROW_MSG(
            "reset: the vectors are those of the index that was dealt out");
}

void GpuIndexBitsMetricSpaceShards::range_search(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    faiss_bits::detail::requireRange(n, x, radius, result);
    faiss_bits::detail::requireNoFilter(params);
    withFaissErrors([&] {
        const GpuContext home = set_->devices.context(0);
        const CurrentDevice scope(home.device);
        detail::requireNoMetricCapture(home);
        if (n == 0) {
            result->do_allocation();
            return;
        }
        const detail::QueriesOnHost host(home, x, size_t(n) * d);
        set_->range(stages, n, host.data(), radius, result);
    });
}

void GpuIndexBitsMetricSpaceShards::search(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    faiss_bits::detail::requireCount(n, "n");
    detail::requirePositive(k, "k");
    faiss_bits::detail::requireNoFilter(params);
    if (n == 0) {
        return;
    }
    requireNotNull(x, "x");
    withFaissErrors([&] {
        const GpuContext home = set_->devices.context(0);
        const CurrentDevice scope(home.device);
        detail::requireNoMetricCapture(home);
        const size_t all = size_t(n) * size_t(k);
        ResultArray<float> toDistances(home, "distances", distances, all);
        ResultArray<idx_t> toLabels(home, "labels", labels, all);
        const detail::QueriesOnHost host(home, x, size_t(n) * d);
        set_->nearest(n, host.data(), k, toDistances.data(), toLabels.data());
        toDistances.finish();
        toLabels.finish();
    });
}

uint64_t GpuIndexBitsMetricSpaceShards::numDistances() const {
    uint64_t sum = 0;
    for (const detail::MetricShard& shard : set_->shards) {
        sum += shard.distances;
    }
    return sum;
}

void GpuIndexBitsMetricSpaceShards::resetDistances() {
    for (detail::MetricShard& shard : set_->shards) {
        shard.distances = 0;
    }
}

} // namespace faiss_bits::gpu
