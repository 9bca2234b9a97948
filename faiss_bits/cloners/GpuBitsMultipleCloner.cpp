#include "faiss_bits/cloners/GpuBitsMultipleCloner.h"

#include <algorithm>
#include <memory>
#include <typeinfo>

#include <faiss/IndexFlat.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexIVFPQ.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexScalarQuantizer.h>
#include <faiss/MetaIndexes.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/cloners/GpuBitsCloner.h"
#include "faiss_bits/common/CopyableIndex.h"
#include "faiss_bits/common/FaissCompat.h"
#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/ivf/EmptyIvf.h"
#include "faiss_bits/many/GpuIndexBitsReplicas.h"
#include "faiss_bits/many/GpuIndexBitsShards.h"

namespace faiss_bits::gpu {

namespace {

using GpuParts = std::vector<std::unique_ptr<faiss::gpu::GpuIndex>>;

/// One part, by the cloner for one GPU.
std::unique_ptr<faiss::gpu::GpuIndex> clonePart(
        const DevicePlace& place,
        const faiss::gpu::GpuClonerOptions& options,
        const faiss::Index& index) {
    faiss::gpu::GpuResourcesProviderFromInstance provider(place.resources);
    std::unique_ptr<faiss::Index> clone(faiss_bits::gpu::index_cpu_to_gpu(
            &provider, place.device, &index, &options));
    auto* onGpu = dynamic_cast<faiss::gpu::GpuIndex*>(clone.get());
    FAISS_THROW_IF_NOT_FMT(
            onGpu,
            "a %s has no copy on a GPU",
            faiss::demangle_cpp_symbol(typeid(index).name()).c_str());
    (void)clone.release();
    return std::unique_ptr<faiss::gpu::GpuIndex>(onGpu);
}

/// The vectors of part `part` of `parts` go to an index without vectors.
void copyShard(
        const faiss::IndexIVF& from,
        faiss::IndexIVF& to,
        int type,
        idx_t parts,
        idx_t part) {
    if (from.ntotal == 0) {
        return; // FAISS divides by it
    }
    if (type == 1) {
        detail::copySubset(from, to, type, parts, part);
        return;
    }
    const idx_t all = type == 2 ? from.ntotal : idx_t(from.nlist);
    detail::copySubset(
            from, to, type, part * all / parts, (part + 1) * all / parts);
}

bool canBeOurIvf(const faiss::Index* index) {
    return dynamic_cast<const faiss::IndexIVFFlat*>(index) ||
            dynamic_cast<const faiss::IndexIVFScalarQuantizer*>(index) ||
            dynamic_cast<const faiss::IndexIVFPQ*>(index);
}

/// The centroids in a flat index: the index's own, or a copy in `made`.
faiss::Index* flatQuantizer(
        const faiss::IndexIVF& index,
        bool flatten,
        std::unique_ptr<faiss::Index>& made) {
    faiss::Index* quantizer = index.quantizer;
    if (dynamic_cast<const faiss::IndexFlat*>(quantizer)) {
        return quantizer;
    }
    FAISS_THROW_IF_NOT_FMT(
            flatten,
            "index->quantizer is a %s: an IndexFlat is needed, or "
            "options.common_ivf_quantizer, which makes one of it",
            faiss::demangle_cpp_symbol(typeid(*quantizer).name()).c_str());
    std::vector<float> centroids(size_t(quantizer->ntotal) * quantizer->d);
    quantizer->reconstruct_n(0, quantizer->ntotal, centroids.data());
    made = std::make_unique<faiss::IndexFlat>(
            quantizer->d, quantizer->metric_type);
    made->add(quantizer->ntotal, centroids.data());
    return made.get();
}

/// Ids decide between equal distances, and tell the shards' vectors apart.
void requireIdsOnDevices(const faiss::gpu::GpuClonerOptions& options) {
    FAISS_THROW_IF_NOT_FMT(
            options.indicesOptions == faiss::gpu::INDICES_64_BIT ||
                    options.indicesOptions == faiss::gpu::INDICES_32_BIT,
            "options.indicesOptions = %d: shards need ids on the devices, "
            "INDICES_64_BIT (%d) or INDICES_32_BIT (%d)",
            int(options.indicesOptions),
            int(faiss::gpu::INDICES_64_BIT),
            int(faiss::gpu::INDICES_32_BIT));
}

} // namespace

BitsToGpuClonerMultiple::BitsToGpuClonerMultiple(
        const DeviceList& devices,
        const faiss::gpu::GpuMultipleClonerOptions& options,
        const GpuIndexBitsManyConfig& config)
        : devices(devices), options(options), config(config) {
    FAISS_THROW_IF_NOT_MSG(devices.size() >= 1, "devices is empty");
    const bool useFloat16 = options.useFloat16 || config.useFloat16;
    this->options.useFloat16 = this->config.useFloat16 = useFloat16;
}

faiss::Index* BitsToGpuClonerMultiple::clone_Index(const faiss::Index* index) {
    detail::requireNotNull(index, "index");
    detail::requireCopyable(*index, "index");
    if (devices.size() == 1) {
        faiss::gpu::GpuResourcesProviderFromInstance provider(
                devices[0].resources);
        BitsToGpuCloner cloner(&provider, devices[0].device, options);
        cloner.useBFloat16 = config.useBFloat16;
        cloner.keepSearchImage = config.keepSearchImage;
        return cloner.clone_Index(index);
    }
    const auto* flat = dynamic_cast<const faiss::IndexFlat*>(index);
    if (flat && detail::hasMetric(flat->metric_type)) {
        if (options.shard) {
            return std::make_unique<GpuIndexBitsShards>(devices, flat, config)
                    .release();
        }
        return std::make_unique<GpuIndexBitsReplicas>(devices, flat, config)
                .release();
    }
    if (canBeOurIvf(index) && !config.useBFloat16) {
        const auto& ivf = dynamic_cast<const faiss::IndexIVF&>(*index);
        const int type = options.shard_type;
        FAISS_THROW_IF_NOT_FMT(
                !options.shard || type == 1 || type == 2 ||
                        (type == 4 && detail::kHasSubsetOfLists),
                "options.shard_type = %d: 1 (ids modulo the number of devices) "
                "or 2 (ranges of ids) is needed, or 4 (lists) where FAISS has "
                "it",
                type);
        std::unique_ptr<faiss::Index> made;
        faiss::Index* quantizer =
                flatQuantizer(ivf, detail::wantsCommonQuantizer(options), made);
        if (options.shard) {
            requireIdsOnDevices(options);
        }
        faiss::gpu::GpuMultipleClonerOptions ofPart = options;
        if (options.shard) {
            ofPart.reserveVecs =
                    (options.reserveVecs + long(devices.size()) - 1) /
                    long(devices.size());
        }
        GpuParts parts;
        idx_t copied = 0;
        for (size_t i = 0; i < devices.size(); ++i) {
            if (!options.shard && !made) {
                parts.push_back(clonePart(devices[i], ofPart, ivf));
                continue;
            }
            const auto some = detail::emptyIvfLike(ivf, quantizer);
            if (options.shard) {
                copyShard(ivf, *some, type, idx_t(devices.size()), idx_t(i));
            } else {
                detail::copySubset(ivf, *some, 1, 1, 0); // all
            }
            copied += some->ntotal;
            parts.push_back(clonePart(devices[i], ofPart, *some));
        }
        FAISS_THROW_IF_NOT_FMT(
                !options.shard || copied == ivf.ntotal,
                "options.shard_type = %d finds %lld of %lld vectors: 1 needs "
                "ids of 0 and more, 2 those below ntotal",
                type,
                (long long)copied,
                (long long)ivf.ntotal);
        if (options.shard) {
            return std::make_unique<GpuIndexBitsShards>(
                           devices, std::move(parts), config)
                    .release();
        }
        return std::make_unique<GpuIndexBitsReplicas>(
                       devices, std::move(parts), config)
                .release();
    }
    FAISS_THROW_IF_NOT_FMT(
            dynamic_cast<const faiss::IndexIDMap*>(index) ||
                    dynamic_cast<const faiss::IndexPreTransform*>(index),
            "index is a %s, which no index of ours on several devices takes "
            "the place of%s",
            faiss::demangle_cpp_symbol(typeid(*index).name()).c_str(),
            config.useBFloat16 ? " with config.useBFloat16 = true" : "");
    return faiss::Cloner::clone_Index(index);
}

faiss::Index* index_cpu_to_gpu_multiple(
        const DeviceList& devices,
        const faiss::Index* index,
        const faiss::gpu::GpuMultipleClonerOptions* options,
        const GpuIndexBitsManyConfig& config) {
    detail::requireNotNull(index, "index");
    const faiss::gpu::GpuMultipleClonerOptions defaults;
    BitsToGpuClonerMultiple cloner(
            devices, options ? *options : defaults, config);
    return cloner.clone_Index(index);
}

} // namespace faiss_bits::gpu
