#pragma once

#include <memory>

#include <faiss/gpu/GpuIndexIVF.h>

#include "faiss_bits/common/FaissCompat.h"
#include "faiss_bits/common/GpuStaging.h"

namespace faiss {
struct IndexIVF;
} // namespace faiss

/// What the constructors and copies of our indexes of inverted lists check and
/// share. FAISS's own end the process on some of these mistakes, so the checks
/// run while the base class's arguments are made. Not part of the API.
namespace faiss_bits::gpu::detail {

/// GpuIndexIVF::copyFrom takes no more.
constexpr size_t kMostFaissProbes = 2048;

// Each returns its argument, or throws FaissException that names it.

faiss::gpu::GpuResourcesProvider* checkedProvider(
        faiss::gpu::GpuResourcesProvider* provider);
faiss::Index* checkedQuantizer(faiss::Index* coarseQuantizer);
/// Also that its centroids can be read: vectors are residuals of them.
faiss::Index* checkedCentroids(faiss::Index* coarseQuantizer);
faiss::MetricType checkedIvfMetric(faiss::MetricType metric);

/// A config that FAISS takes, without cuVS.
template <class Config>
Config checkedIvfConfig(Config config) {
    requireDevice(config.device);
    requireNoMissingCuvs(config, "config.use_cuvs");
    turnOffCuvs(config);
    turnOffCuvs(config.flatConfig);
    return config;
}

/// Whether FAISS has product codes of so many parts that are not interleaved.
bool hasCodesInRows(int numParts);

/// Throws for what no copy can be made of.
void requireIvfIndex(const faiss::IndexIVF* index);

/// A GpuIndexBitsFlat for the centroids of a new index.
std::unique_ptr<faiss::Index> makeIvfQuantizer(
        faiss::gpu::GpuResourcesProvider* provider,
        int dims,
        faiss::MetricType metric,
        const faiss::gpu::GpuIndexIVFConfig& config);

/// A copy of an IndexFlat on our device; of another quantizer nullptr.
std::unique_ptr<faiss::Index> copyFlatQuantizer(
        std::shared_ptr<faiss::gpu::GpuResources> resources,
        const faiss::gpu::GpuIndexIVFConfig& config,
        const faiss::Index* quantizer);

/// Calls copy(index) with a CPU index that has few enough probes for FAISS.
template <class CpuIndex, class Copy>
void withFewProbes(const CpuIndex* index, const Copy& copy) {
    if (index->nprobe <= kMostFaissProbes) {
        return copy(index);
    }
    // A copy shares what it does not own.
    CpuIndex fewer(*index);
    fewer.own_fields = false;
    fewer.own_invlists = false;
    fewer.nprobe = 1;
    copy(&fewer);
}

/// Makes `ours`, if there is one, the quantizer of an index.
void replaceQuantizer(
        faiss::gpu::GpuIndexIVF& index,
        std::unique_ptr<faiss::Index> ours);

/// Gives `index` the quantizer, sizes and metric of `copy`, which is left with
/// no quantizer. nprobe stays.
void takeFields(
        faiss::gpu::GpuIndexIVF& index,
        faiss::gpu::GpuIndexIVF& copy) noexcept;

} // namespace faiss_bits::gpu::detail
