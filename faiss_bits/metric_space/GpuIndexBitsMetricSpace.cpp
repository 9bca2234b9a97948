#include "faiss_bits/metric_space/GpuIndexBitsMetricSpace.h"

#include <algorithm>
#include <utility>

#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/metric_space/GpuMetricState.h"
#include "faiss_bits/metric_space/IndexMetricSpace.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/metric_space/MetricBuild.h"

namespace faiss_bits::gpu {

using detail::GpuContext;
using detail::requireNotNull;
using detail::withFaissErrors;
using faiss::gpu::DeviceScope;
using faiss_bits::detail::MetricContents;
using faiss_bits::detail::MetricIndexKind;

namespace {

// These run while the base class's arguments are made, since FAISS's
// constructors end the process on some of these mistakes.

std::shared_ptr<faiss::gpu::GpuResources> checked(
        std::shared_ptr<faiss::gpu::GpuResources> resources) {
    requireNotNull(resources.get(), "resources");
    return resources;
}

faiss::gpu::GpuIndexConfig checked(faiss::gpu::GpuIndexConfig config) {
    detail::requireDevice(config.device);
    FAISS_THROW_IF_NOT_FMT(
            config.memorySpace == faiss::gpu::MemorySpace::Device,
            "config.memorySpace = %d: Device (%d) is needed",
            int(config.memorySpace),
            int(faiss::gpu::MemorySpace::Device));
    detail::requireNoMissingCuvs(config, "config.use_cuvs");
    turnOffCuvs(config);
    return config;
}

} // namespace

GpuIndexBitsMetricSpace::GpuIndexBitsMetricSpace(
        std::shared_ptr<faiss::gpu::GpuResources> resources,
        MetricContents contents,
        faiss::gpu::GpuIndexConfig config)
        : GpuIndex(
                  checked(std::move(resources)),
                  contents.d,
                  faiss_bits::detail::faissMetricOf(contents.metric),
                  0,
                  checked(config)),
          state_(std::make_unique<State>()) {
    is_trained = true;
    state_->contents = std::move(contents);
}

GpuIndexBitsMetricSpace::~GpuIndexBitsMetricSpace() = default;

const MetricContents& GpuIndexBitsMetricSpace::options_() const {
    return state_->contents;
}

void GpuIndexBitsMetricSpace::add(idx_t n, const float* x) {
    faiss_bits::detail::requireRoomFor(ntotal, n, x);
    if (n == 0) {
        return;
    }
    DeviceScope scope(config_.device);
    const GpuContext context = detail::contextOf(*resources_, config_.device);
    withFaissErrors([&] {
        State& state = *state_;
        detail::placeOf(context, "x", x); // or throws
        const size_t row = size_t(d) * sizeof(float);
        const idx_t needed = ntotal + n;
        std::shared_ptr<void> vectors = state.vectors;
        idx_t capacity = state.capacity;
        if (needed > capacity) {
            // No more than asked for the first time, then some room.
            capacity = ntotal == 0 ? n : std::max(needed, ntotal + ntotal / 2);
            vectors = detail::allocateOnDevice(size_t(capacity) * row);
            if (ntotal > 0) {
                BITS_CUDA_CHECK(cudaMemcpyAsync(
                        vectors.get(),
                        state.data(),
                        size_t(ntotal) * row,
                        cudaMemcpyDeviceToDevice,
                        context.stream));
            }
        }
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                static_cast<float*>(vectors.get()) + ntotal * d,
                x,
                size_t(n) * row,
                cudaMemcpyDefault,
                context.stream));
        detail::waitFor(context.stream);
        state.vectors = std::move(vectors);
        state.capacity = capacity;
        state.forgetIndex();
        state.contents.n = needed;
        ntotal = needed;
    });
}

void GpuIndexBitsMetricSpace::add_with_ids(
        idx_t n,
        const float* x,
        const idx_t* ids) {
    FAISS_THROW_IF_NOT_MSG(
            !ids,
            "ids must be null: the index numbers its vectors itself; "
            "IndexIDMap gives them other ids");
    add(n, x);
}

bool GpuIndexBitsMetricSpace::addImplRequiresIDs_() const {
    return false;
}

void GpuIndexBitsMetricSpace::addImpl_(
        ImplSize n,
        const float* x,
        const idx_t* ids) {
    add_with_ids(n, x, ids);
}

void GpuIndexBitsMetricSpace::reset() {
    DeviceScope scope(config_.device);
    state_->forgetIndex();
    state_->vectors.reset();
    state_->capacity = 0;
    state_->contents.n = 0;
    ntotal = 0;
}

void GpuIndexBitsMetricSpace::build_() const {
    using namespace metric_space;
    State& state = *state_;
    MetricContents& c = state.contents;
    const GpuContext context = detail::contextOf(*resources_, config_.device);
    const auto allocate = detail::allocateOnDevice;
    if (!c.isBuilt) {
        ListOfClusters list;
        PivotTable table;
        if (c.kind == MetricIndexKind::ListOfClusters) {
            const size_t bytes = listOfClustersWorkspaceBytes(c.n);
            auto scratch = detail::allocTemporary(context, bytes);
            list = buildListOfClustersOnGpu(
                    state.view(),
                    c.listOptions,
                    {scratch.get(), bytes},
                    context.stream,
                    detail::throwIfInterrupted);
        } else {
            const size_t bytes = pivotsWorkspaceBytes(c.n);
            auto scratch = detail::allocTemporary(context, bytes);
            table = buildPivotsOnGpu(
                    state.view(),
                    c.pivotOptions,
                    {scratch.get(), bytes},
                    context.stream,
                    detail::throwIfInterrupted);
        }
        c.list = std::move(list);
        c.table = std::move(table);
        c.isBuilt = true;
        state.hasGroups = false;
    }
    if (!state.hasGroups) {
        state.groups = c.kind == MetricIndexKind::ListOfClusters
                ? GroupsMemory(state.view(), c.list, allocate, context.stream)
                : GroupsMemory(
                          state.view(),
                          c.table,
                          faiss_bits::detail::kPivotGroup,
                          allocate,
                          context.stream);
        state.hasGroups = true;
    }
    if (query_major) {
        state.groups.makeColumns(allocate, context.stream);
    }
}

void GpuIndexBitsMetricSpace::build() {
    DeviceScope scope(config_.device);
    withFaissErrors([&] { build_(); });
}

bool GpuIndexBitsMetricSpace::isBuilt() const {
    return state_->contents.isBuilt;
}

void GpuIndexBitsMetricSpace::reconstruct(idx_t key, float* out) const {
    faiss_bits::detail::requireKey(key, ntotal);
    reconstruct_n(key, 1, out);
}

void GpuIndexBitsMetricSpace::reconstruct_n(idx_t i0, idx_t n, float* out)
        const {
    faiss_bits::detail::requireRun(i0, n, ntotal);
    if (n == 0) {
        return;
    }
    requireNotNull(out, "out");
    DeviceScope scope(config_.device);
    const GpuContext context = detail::contextOf(*resources_, config_.device);
    withFaissErrors([&] {
        detail::copyOut(
                context,
                state_->data() + i0 * d,
                "out",
                out,
                size_t(n) * d * sizeof(float));
    });
}

void GpuIndexBitsMetricSpace::reconstruct_batch(
        idx_t n,
        const idx_t* keys,
        float* out) const {
    faiss_bits::detail::requireCount(n, "n");
    if (n == 0) {
        return;
    }
    requireNotNull(keys, "keys");
    requireNotNull(out, "out");
    DeviceScope scope(config_.device);
    const GpuContext context = detail::contextOf(*resources_, config_.device);
    withFaissErrors([&] {
        const auto bytes = size_t(n) * sizeof(idx_t);
        std::vector<idx_t> onHost;
        onHost.resize(n);
        detail::placeOf(context, "keys", keys);
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                onHost.data(), keys, bytes, cudaMemcpyDefault, context.stream));
        detail::waitFor(context.stream);
        faiss_bits::detail::requireIds(n, onHost.data(), ntotal, "keys", true);
        const size_t row = size_t(d) * sizeof(float);
        auto rows = detail::allocTemporary(context, size_t(n) * row);
        BITS_CUDA_CHECK(cudaMemsetAsync(
                rows.get(), 0, size_t(n) * row, context.stream));
        for (idx_t i = 0; i < n; ++i) {
            if (onHost[i] >= 0) {
                BITS_CUDA_CHECK(cudaMemcpyAsync(
                        static_cast<float*>(rows.get()) + i * d,
                        state_->data() + onHost[i] * d,
                        row,
                        cudaMemcpyDeviceToDevice,
                        context.stream));
            }
        }
        detail::copyOut(context, rows.get(), "out", out, size_t(n) * row);
    });
}

uint64_t GpuIndexBitsMetricSpace::numDistances() const {
    return state_->distances;
}

void GpuIndexBitsMetricSpace::resetDistances() {
    state_->distances = 0;
}

MetricContents GpuIndexBitsMetricSpace::contents_() const {
    MetricContents contents = state_->contents;
    contents.vectors.resize(size_t(ntotal) * d);
    reconstruct_n(0, ntotal, contents.vectors.data());
    return contents;
}

void GpuIndexBitsMetricSpace::setContents_(MetricContents contents) {
    FAISS_THROW_IF_NOT_MSG(
            contents.kind == state_->contents.kind,
            "contents are of another kind of index");
    DeviceScope scope(config_.device);
    const GpuContext context = detail::contextOf(*resources_, config_.device);
    withFaissErrors([&] {
        const size_t bytes = contents.vectors.size() * sizeof(float);
        auto vectors = detail::allocateOnDevice(bytes);
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                vectors.get(),
                contents.vectors.data(),
                bytes,
                cudaMemcpyHostToDevice,
                context.stream));
        detail::waitFor(context.stream);
        State& state = *state_;
        state.forgetIndex();
        state.vectors = std::move(vectors);
        state.capacity = contents.n;
    });
    contents.vectors = {};
    contents.table.distances = {};
    d = contents.d;
    metric_type = faiss_bits::detail::faissMetricOf(contents.metric);
    ntotal = contents.n;
    state_->contents = std::move(contents);
}

void GpuIndexBitsMetricSpace::copyFrom_(const IndexMetricSpace& index) {
    setContents_(index.contents_());
}

void GpuIndexBitsMetricSpace::copyTo_(IndexMetricSpace& index) const {
    index.setContents_(contents_());
}

void GpuIndexBitsMetricSpace::write(const char* fname) const {
    requireNotNull(fname, "fname");
    faiss_bits::detail::writeMetricFile(fname, contents_());
}

void GpuIndexBitsMetricSpace::read(const char* fname) {
    setContents_(
            faiss_bits::detail::readMetricFile(fname, state_->contents.kind));
}

} // namespace faiss_bits::gpu
