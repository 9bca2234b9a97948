#include "faiss_bits/flat/GpuIndexBitsFlat.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <faiss/IndexFlat.h>
#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/CopyableIndex.h"
#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/flat/FlatStorage.h"
#include "faiss_bits/flat/GpuSearchCounters.h"
#include "faiss_bits/flat/VectorFacts.h"
#include "kernels/knn/parts/PartsKnn.h"

namespace faiss_bits::gpu {

using detail::GpuContext;
using detail::requireNotNull;
using detail::requirePositive;
using detail::requireWithin;
using detail::withFaissErrors;
using faiss::gpu::DeviceScope;
using faiss::gpu::GpuResources;
using faiss::gpu::GpuResourcesProvider;
#if FAISS_BITS_FAISS_HAS_NUMERIC_TYPE
using faiss_bits::detail::requireFloat32;
#endif

namespace {

/// As many as FAISS counts, and as a search takes.
constexpr idx_t kMaxVectors =
        std::min<idx_t>(std::numeric_limits<ImplSize>::max(), kMostVectors);

// The checks below run while the base class's arguments are made, since
// FAISS's constructors end the process on some of these mistakes.

std::shared_ptr<GpuResources> checked(std::shared_ptr<GpuResources> resources) {
    requireNotNull(resources.get(), "resources");
    return resources;
}

GpuIndexBitsFlatConfig checked(GpuIndexBitsFlatConfig config) {
    detail::requireDevice(config.device);
    FAISS_THROW_IF_NOT_FMT(
            config.memorySpace == faiss::gpu::MemorySpace::Device ||
                    config.memorySpace == faiss::gpu::MemorySpace::Unified,
            "config.memorySpace = %d: Device (%d) or Unified (%d) is needed",
            int(config.memorySpace),
            int(faiss::gpu::MemorySpace::Device),
            int(faiss::gpu::MemorySpace::Unified));
    FAISS_THROW_IF_NOT_MSG(
            !(config.useFloat16 && config.useBFloat16),
            "config.useFloat16 = true and config.useBFloat16 = true: vectors "
            "are stored as one of them");
    detail::requireNoMissingCuvs(config, "config.use_cuvs");
    turnOffCuvs(config);
    return config;
}

const faiss::IndexFlat* checked(const faiss::IndexFlat* index) {
    requireNotNull(index, "index");
    detail::requireMetric(index->metric_type);
    requirePositive(index->d, "index->d");
    detail::requireCopyable(*index, "index");
    FAISS_THROW_IF_NOT_FMT(
            index->ntotal <= kMaxVectors,
            "index->ntotal = %lld is more than %lld vectors",
            (long long)index->ntotal,
            (long long)kMaxVectors);
    return index;
}

faiss::MetricType checked(faiss::MetricType metric) {
    detail::requireMetric(metric);
    return metric;
}

std::unique_ptr<detail::GpuSearchCounters> makeCounters(
        GpuResources& resources,
        int device) {
    DeviceScope scope(device);
    return withFaissErrors([&] {
        return std::make_unique<detail::GpuSearchCounters>(
                detail::contextOf(resources, device));
    });
}

} // namespace

GpuIndexBitsFlat::GpuIndexBitsFlat(
        GpuResourcesProvider* provider,
        const faiss::IndexFlat* index,
        GpuIndexBitsFlatConfig config)
        : GpuIndexBitsFlat(detail::resourcesOf(provider), index, config) {}

GpuIndexBitsFlat::GpuIndexBitsFlat(
        std::shared_ptr<GpuResources> resources,
        const faiss::IndexFlat* index,
        GpuIndexBitsFlatConfig config)
        : GpuIndexFlat(
                  checked(std::move(resources)),
                  checked(index)->d,
                  checked(index)->metric_type,
                  checked(config)),
          useBFloat16_(config.useBFloat16),
          facts_(std::make_unique<detail::VectorFacts>(
                  config.keepSearchImage,
                  resources_.get())),
          counters_(makeCounters(*resources_, config_.device)) {
    copyFrom(index);
}

GpuIndexBitsFlat::GpuIndexBitsFlat(
        GpuResourcesProvider* provider,
        int dims,
        faiss::MetricType metric,
        GpuIndexBitsFlatConfig config)
        : GpuIndexBitsFlat(
                  detail::resourcesOf(provider),
                  dims,
                  metric,
                  config) {}

GpuIndexBitsFlat::GpuIndexBitsFlat(
        std::shared_ptr<GpuResources> resources,
        int dims,
        faiss::MetricType metric,
        GpuIndexBitsFlatConfig config)
        : GpuIndexFlat(
                  checked(std::move(resources)),
                  requirePositive(dims, "dims"),
                  checked(metric),
                  checked(config)),
          useBFloat16_(config.useBFloat16),
          facts_(std::make_unique<detail::VectorFacts>(
                  config.keepSearchImage,
                  resources_.get())),
          counters_(makeCounters(*resources_, config_.device)) {
    if (useBFloat16_) {
        reset(); // in place of FAISS's storage
    }
}

GpuIndexBitsFlat::~GpuIndexBitsFlat() = default;

DataType GpuIndexBitsFlat::storageType_() const {
    if (useBFloat16_) {
        return DataType::BFloat16;
    }
    return flatConfig_.useFloat16 ? DataType::Float16 : DataType::Float32;
}

void GpuIndexBitsFlat::reset() {
    facts_->forget();
    if (!useBFloat16_) {
        GpuIndexFlat::reset();
        return;
    }
    // FAISS's copyFrom may have put a FlatIndex of its own there.
    DeviceScope scope(config_.device);
    const GpuContext context = detail::contextOf(*resources_, config_.device);
    withFaissErrors([&] {
        detail::rebuild(
                context,
                config_.memorySpace,
                data_,
                d,
                storageType_(),
                nullptr,
                0);
    });
    ntotal = 0;
}

faiss::gpu::FlatIndex* GpuIndexBitsFlat::getGpuData() {
    FAISS_THROW_IF_NOT_MSG(
            !useBFloat16_,
            "getGpuData: the index has useBFloat16 = true, and no FlatIndex of "
            "FAISS holds bfloat16; reconstruct_n reads the vectors");
    return GpuIndexFlat::getGpuData();
}

void GpuIndexBitsFlat::copyFrom(const faiss::IndexFlat* index) {
    checked(index);
    DeviceScope scope(config_.device);
    const GpuContext context = detail::contextOf(*resources_, config_.device);
    facts_->forget();
    const detail::ScopedMark mark(facts_->changes(), context.stream);
    withFaissErrors([&] {
        detail::rebuild(
                context,
                config_.memorySpace,
                data_,
                index->d,
                storageType_(),
                index->ntotal > 0 ? index->get_xb() : nullptr,
                index->ntotal);
    });
    GpuIndex::copyFrom(index);
}

void GpuIndexBitsFlat::copyTo(faiss::IndexFlat* index) const {
    requireNotNull(index, "index");
    GpuIndexFlat::copyTo(index); // reads through our reconstruct_n
}

void GpuIndexBitsFlat::reserve(idx_t numVecs) {
    requireWithin(numVecs, 0, kMaxVectors, "numVecs");
    DeviceScope scope(config_.device);
    detail::viewOf(*data_, storageType_());
    const cudaStream_t stream = resources_->getDefaultStream(config_.device);
    const detail::ScopedMark mark(facts_->changes(), stream);
    detail::reserveVectors(*data_, d, numVecs, stream);
}

void GpuIndexBitsFlat::add(idx_t n, const float* x) {
    detail::requireCount(n, "n");
    if (n == 0) {
        return;
    }
    requireNotNull(x, "x");
    FAISS_THROW_IF_NOT_FMT(
            n <= kMaxVectors - ntotal,
            "n = %lld: with the %lld vectors that are there, that is more "
            "than %lld",
            (long long)n,
            (long long)ntotal,
            (long long)kMaxVectors);
    detail::requireMetric(metric_type);
    DeviceScope scope(config_.device);
    const GpuContext context = detail::contextOf(*resources_, config_.device);
    withFaissErrors([&] {
        detail::viewOf(*data_, storageType_()); // or throws
        facts_->forget();
        const detail::ScopedMark mark(facts_->changes(), context.stream);
        detail::appendVectors(context, config_.memorySpace, *data_, d, x, n);
        ntotal += n;
    });
}

void GpuIndexBitsFlat::truncate(idx_t numVecs) {
    requireWithin(numVecs, 0, ntotal, "numVecs");
    if (numVecs == ntotal) {
        return;
    }
    DeviceScope scope(config_.device);
    const GpuContext context = detail::contextOf(*resources_, config_.device);
    withFaissErrors([&] {
        detail::viewOf(*data_, storageType_()); // or throws
        facts_->forget();
        const detail::ScopedMark mark(facts_->changes(), context.stream);
        detail::truncateVectors(
                context, config_.memorySpace, *data_, d, numVecs);
        ntotal = numVecs;
    });
}

SearchStats GpuIndexBitsFlat::stats() const {
    DeviceScope scope(config_.device);
    return withFaissErrors([&] {
        return counters_->read(detail::contextOf(*resources_, config_.device));
    });
}

void GpuIndexBitsFlat::reset_stats() {
    DeviceScope scope(config_.device);
    withFaissErrors([&] {
        counters_->reset(detail::contextOf(*resources_, config_.device));
    });
}

void GpuIndexBitsFlat::add_with_ids(idx_t n, const float* x, const idx_t* ids) {
    FAISS_THROW_IF_NOT_MSG(
            !ids,
            "ids: a flat index numbers its vectors itself and takes none; "
            "IndexIDMap keeps other ids");
    add(n, x);
}

void GpuIndexBitsFlat::addImpl_(ImplSize n, const float* x, const idx_t* ids) {
    FAISS_THROW_IF_NOT_MSG(
            !ids, "ids: a flat index numbers its vectors itself");
    GpuIndexBitsFlat::add(n, x);
}

#if FAISS_BITS_FAISS_HAS_NUMERIC_TYPE
void GpuIndexBitsFlat::add_ex(
        idx_t n,
        const void* x,
        faiss::NumericType numericType) {
    add(n, requireFloat32(x, numericType));
}

void GpuIndexBitsFlat::add_with_ids_ex(
        idx_t n,
        const void* x,
        faiss::NumericType numericType,
        const idx_t* ids) {
    add_with_ids(n, requireFloat32(x, numericType), ids);
}

void GpuIndexBitsFlat::search_ex(
        idx_t n,
        const void* x,
        faiss::NumericType numericType,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    search(n, requireFloat32(x, numericType), k, distances, labels, params);
}
#endif

} // namespace faiss_bits::gpu
