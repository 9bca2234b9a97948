#include "faiss_bits/cloners/GpuBitsCloner.h"

#include <algorithm>
#include <memory>
#include <typeinfo>
#include <vector>

#include <faiss/IndexFlat.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexIVFPQ.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexScalarQuantizer.h>
#include <faiss/MetaIndexes.h>
#include <faiss/clone_index.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/cloners/ClonedRefine.h"
#include "faiss_bits/common/CopyableIndex.h"
#include "faiss_bits/common/FaissCompat.h"
#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/flat/GpuIndexBitsFlat.h"
#include "faiss_bits/ivf/GpuIndexBitsIVFFlat.h"
#include "faiss_bits/ivf/GpuIndexBitsIVFPQ.h"
#include "faiss_bits/ivf/GpuIndexBitsIVFScalarQuantizer.h"
#include "faiss_bits/ivf/IvfChecks.h"

namespace faiss_bits::gpu {

namespace {

/// One of ours of that metric, without vectors.
std::unique_ptr<GpuIndexBitsFlat> emptyFlat(
        const BitsToGpuCloner& cloner,
        const faiss::Index& like,
        bool useFloat16) {
    GpuIndexBitsFlatConfig config;
    config.device = cloner.device;
    config.useFloat16 = useFloat16;
    config.useBFloat16 = cloner.useBFloat16;
    config.keepSearchImage = cloner.keepSearchImage;
    config.storeTransposed = cloner.storeTransposed;
    const faiss::gpu::GpuClonerOptions& options = cloner;
    copyCuvsChoice(config, options);
    const int d = int(like.d);
    if (like.metric_type == faiss::METRIC_L2) {
        return std::make_unique<GpuIndexBitsFlatL2>(cloner.provider, d, config);
    }
    if (like.metric_type == faiss::METRIC_INNER_PRODUCT) {
        return std::make_unique<GpuIndexBitsFlatIP>(cloner.provider, d, config);
    }
    return std::make_unique<GpuIndexBitsFlat>(
            cloner.provider, d, like.metric_type, config);
}

/// Whether it is a flat index of float16 components, which FAISS has as codes
/// of a scalar quantizer.
bool isFlatOfFloat16(const faiss::Index& index) {
    const auto* codes =
            dynamic_cast<const faiss::IndexScalarQuantizer*>(&index);
    return codes && codes->sq.qtype == faiss::ScalarQuantizer::QT_fp16;
}

/// Adds the vectors of `from`, some at a time: as float32 they take twice the
/// memory of the codes. Float16 storage has each component as it was.
void addDecoded(GpuIndexBitsFlat& to, const faiss::Index& from) {
    constexpr idx_t kFloatsAtATime = idx_t(1) << 24;
    const idx_t most = std::max<idx_t>(1, kFloatsAtATime / from.d);
    to.reserve(from.ntotal);
    std::vector<float> vectors(size_t(std::min(most, from.ntotal)) * from.d);
    for (idx_t begin = 0; begin < from.ntotal; begin += most) {
        const idx_t n = std::min(most, from.ntotal - begin);
        from.reconstruct_n(begin, n, vectors.data());
        to.add(n, vectors.data());
    }
}

/// Whether it is one of ours: FAISS's cloner knows what to say of others.
bool hasIvf(const faiss::IndexIVF& index) {
    return (index.metric_type == faiss::METRIC_L2 ||
            index.metric_type == faiss::METRIC_INNER_PRODUCT) &&
            dynamic_cast<const faiss::IndexFlat*>(index.quantizer);
}

template <class Config>
Config ivfConfigOf(const faiss::gpu::GpuClonerOptions& options, int device) {
    Config config;
    config.device = device;
    config.indicesOptions = options.indicesOptions;
    config.flatConfig.useFloat16 = options.useFloat16CoarseQuantizer;
    config.flatConfig.storeTransposed = options.storeTransposed;
    copyCuvsChoice(config, options);
    return config;
}

/// Such that FAISS takes as many kinds of codes as it can.
faiss::gpu::GpuIndexIVFPQConfig productConfigOf(
        const faiss::gpu::GpuClonerOptions& options,
        int device,
        const faiss::ProductQuantizer& pq) {
    auto config = ivfConfigOf<faiss::gpu::GpuIndexIVFPQConfig>(options, device);
    config.usePrecomputedTables = options.usePrecomputed;
    config.interleavedLayout =
            pq.nbits != 8 || !detail::hasCodesInRows(int(pq.M));
    // Beyond this its tables of float32 are too large; ours has none.
    constexpr size_t kMostEntries = 12288;
    config.useFloat16LookupTables =
            options.useFloat16 || pq.M << pq.nbits > kMostEntries;
    return config;
}

/// An index of ours without vectors becomes a copy of `index`.
template <class GpuIndex, class CpuIndex>
faiss::Index* copyIvf(
        std::unique_ptr<GpuIndex> ours,
        const CpuIndex& index,
        const faiss::gpu::GpuClonerOptions& options) {
    if (options.reserveVecs > 0 && index.ntotal == 0) {
        ours->reserveMemory(options.reserveVecs);
    }
    ours->copyFrom(&index);
    return ours.release();
}

/// The containers that FAISS's cloner copies part by part.
bool holdsOthers(const faiss::Index* index) {
    return dynamic_cast<const faiss::IndexIDMap*>(index) ||
            dynamic_cast<const faiss::IndexPreTransform*>(index);
}

} // namespace

faiss::Index* BitsToGpuCloner::clone_Index(const faiss::Index* index) {
    detail::requireNotNull(index, "index");
    detail::requireCopyable(*index, "index");
    const auto* flat = dynamic_cast<const faiss::IndexFlat*>(index);
    if (flat && detail::hasMetric(flat->metric_type)) {
        auto clone = emptyFlat(*this, *flat, useFloat16);
        clone->copyFrom(flat);
        return clone.release();
    }
    if (isFlatOfFloat16(*index) && !useBFloat16 &&
        detail::hasMetric(index->metric_type)) {
        auto clone = emptyFlat(*this, *index, true);
        clone->metric_arg = index->metric_arg;
        addDecoded(*clone, *index);
        return clone.release();
    }
    const auto* ivfFlat = dynamic_cast<const faiss::IndexIVFFlat*>(index);
    if (ivfFlat && !useBFloat16 && hasIvf(*ivfFlat)) {
        return copyIvf(
                std::make_unique<GpuIndexBitsIVFFlat>(
                        provider,
                        int(ivfFlat->d),
                        int(ivfFlat->nlist),
                        ivfFlat->metric_type,
                        ivfConfigOf<faiss::gpu::GpuIndexIVFFlatConfig>(
                                *this, device)),
                *ivfFlat,
                *this);
    }
    const auto* scalar =
            dynamic_cast<const faiss::IndexIVFScalarQuantizer*>(index);
    if (scalar && !useBFloat16 && hasIvf(*scalar)) {
        return copyIvf(
                std::make_unique<GpuIndexBitsIVFScalarQuantizer>(
                        provider,
                        int(scalar->d),
                        int(scalar->nlist),
                        scalar->sq.qtype,
                        scalar->metric_type,
                        scalar->by_residual,
                        ivfConfigOf<
                                faiss::gpu::GpuIndexIVFScalarQuantizerConfig>(
                                *this, device)),
                *scalar,
                *this);
    }
    const auto* product = dynamic_cast<const faiss::IndexIVFPQ*>(index);
    if (product && !useBFloat16 && hasIvf(*product) &&
        (product->pq.nbits == 8 || FAISS_BITS_FAISS_COPIES_PACKED_CODES)) {
        return copyIvf(
                std::make_unique<GpuIndexBitsIVFPQ>(
                        provider,
                        int(product->d),
                        int(product->nlist),
                        int(product->pq.M),
                        int(product->pq.nbits),
                        product->metric_type,
                        productConfigOf(*this, device, product->pq)),
                *product,
                *this);
    }
    // What refines reads single vectors, which no index on a GPU hands out.
    auto* refine = faiss_bits::detail::cloneRefine(
            index,
            [this](const faiss::Index* base) { return clone_Index(base); },
            faiss::clone_index);
    if (refine) {
        return refine;
    }
    // What holds other indexes comes back here with each of them.
    FAISS_THROW_IF_NOT_FMT(
            !useBFloat16 || holdsOthers(index),
            "useBFloat16 = true, but index is a %s, which no index of ours "
            "takes the place of",
            faiss::demangle_cpp_symbol(typeid(*index).name()).c_str());
    return ToGpuCloner::clone_Index(index);
}

faiss::Index* index_cpu_to_gpu(
        faiss::gpu::GpuResourcesProvider* provider,
        int device,
        const faiss::Index* index,
        const faiss::gpu::GpuClonerOptions* options,
        bool useBFloat16) {
    detail::requireNotNull(provider, "provider");
    detail::requireNotNull(index, "index");
    detail::requireDevice(device);
    const faiss::gpu::GpuClonerOptions defaults;
    BitsToGpuCloner cloner(provider, device, options ? *options : defaults);
    cloner.useBFloat16 = useBFloat16;
    return cloner.clone_Index(index);
}

} // namespace faiss_bits::gpu
