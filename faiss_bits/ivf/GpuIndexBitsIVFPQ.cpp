#include "faiss_bits/ivf/GpuIndexBitsIVFPQ.h"

#include <utility>

#include <faiss/IndexIVFPQ.h>
#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/FaissAssert.h>
#include <faiss/invlists/InvertedLists.h>

#include "faiss_bits/ivf/IvfChecks.h"
#include "faiss_bits/ivf/ListStorage.h"

namespace faiss_bits::gpu {

using detail::checkedCentroids;
using detail::checkedIvfConfig;
using detail::checkedIvfMetric;
using detail::checkedProvider;
using detail::requirePositive;
using faiss::gpu::DeviceScope;
using faiss::gpu::GpuIndexIVFPQConfig;
using faiss::gpu::GpuResourcesProvider;

namespace {

/// subQuantizers, if FAISS's GPU has such codes: its own checks come when parts
/// of the index are made, and name no values.
int checkedParts(
        int dims,
        int subQuantizers,
        int bitsPerCode,
        const GpuIndexIVFPQConfig& config) {
    detail::requireDevice(config.device);
    FAISS_THROW_IF_NOT_FMT(
            subQuantizers >= 1 &&
                    requirePositive(dims, "dims") % subQuantizers == 0,
            "subQuantizers = %d does not divide dims = %d",
            subQuantizers,
            dims);
    const bool isPacked =
            bitsPerCode == 4 || bitsPerCode == 5 || bitsPerCode == 6;
    FAISS_THROW_IF_NOT_FMT(
            bitsPerCode == 8 || (config.interleavedLayout && isPacked),
            "bitsPerCode = %d: 8 are supported, or with "
            "config.interleavedLayout 4, 5, 6 and 8",
            bitsPerCode);
    FAISS_THROW_IF_NOT_FMT(
            config.interleavedLayout || detail::hasCodesInRows(subQuantizers),
            "subQuantizers = %d is none that FAISS has without "
            "config.interleavedLayout",
            subQuantizers);
    const size_t bytes = (size_t(subQuantizers) << bitsPerCode) *
            (config.useFloat16LookupTables ? 2 : 4);
    const size_t most = faiss::gpu::getMaxSharedMemPerBlock(config.device);
    FAISS_THROW_IF_NOT_FMT(
            bytes <= most,
            "subQuantizers = %d and bitsPerCode = %d: FAISS refuses tables of "
            "%zu bytes, more than %zu (config.useFloat16LookupTables halves "
            "them)",
            subQuantizers,
            bitsPerCode,
            bytes,
            most);
    return subQuantizers;
}

const faiss::IndexIVFPQ* checked(
        const faiss::IndexIVFPQ* index,
        const GpuIndexIVFPQConfig& config) {
    detail::requireIvfIndex(index);
    checkedParts(int(index->d), int(index->pq.M), int(index->pq.nbits), config);
    FAISS_THROW_IF_NOT_MSG(
            index->by_residual,
            "index->by_residual = false: FAISS's GPU has codes of residuals "
            "alone");
    FAISS_THROW_IF_NOT_FMT(
            index->polysemous_ht == 0,
            "index->polysemous_ht = %d: FAISS's GPU has no polysemous codes",
            int(index->polysemous_ht));
    return index;
}

} // namespace

GpuIndexBitsIVFPQ::GpuIndexBitsIVFPQ(
        GpuResourcesProvider* provider,
        int dims,
        int nlist,
        int subQuantizers,
        int bitsPerCode,
        faiss::MetricType metric,
        GpuIndexIVFPQConfig config)
        : GpuIndexBitsIVF(
                  provider,
                  detail::makeIvfQuantizer(provider, dims, metric, config),
                  dims,
                  requirePositive(nlist, "nlist"),
                  checkedParts(dims, subQuantizers, bitsPerCode, config),
                  bitsPerCode,
                  metric,
                  checkedIvfConfig(config)) {}

GpuIndexBitsIVFPQ::GpuIndexBitsIVFPQ(
        GpuResourcesProvider* provider,
        const faiss::IndexIVFPQ* index,
        GpuIndexIVFPQConfig config)
        : GpuIndexBitsIVFPQ(
                  provider,
                  int(checked(index, config)->d),
                  int(index->nlist),
                  int(index->pq.M),
                  int(index->pq.nbits),
                  index->metric_type,
                  config) {
    copyFrom(index);
}

GpuIndexBitsIVFPQ::GpuIndexBitsIVFPQ(
        GpuResourcesProvider* provider,
        faiss::Index* coarseQuantizer,
        int dims,
        int nlist,
        int subQuantizers,
        int bitsPerCode,
        faiss::MetricType metric,
        GpuIndexIVFPQConfig config)
        : GpuIndexBitsIVF(
                  checkedProvider(provider),
                  checkedCentroids(coarseQuantizer),
                  requirePositive(dims, "dims"),
                  requirePositive(nlist, "nlist"),
                  checkedParts(dims, subQuantizers, bitsPerCode, config),
                  bitsPerCode,
                  checkedIvfMetric(metric),
                  checkedIvfConfig(config)) {}

void GpuIndexBitsIVFPQ::copyFrom(const faiss::IndexIVFPQ* index) {
    checked(index, ivfpqConfig_);
    DeviceScope scope(config_.device);
    auto ours =
            detail::copyFlatQuantizer(resources_, ivfConfig_, index->quantizer);
    // A copy beside what is here, which goes when nothing can fail any more.
    faiss::gpu::GpuResourcesProviderFromInstance provider(resources_);
    GpuIndexBitsIVFPQ copy(
            &provider,
            int(index->d),
            int(index->nlist),
            int(index->pq.M),
            int(index->pq.nbits),
            index->metric_type,
            ivfpqConfig_);
    copy.usePrecomputedTables_ = usePrecomputedTables_;
    detail::withFewProbes(index, [&](const faiss::IndexIVFPQ* cpu) {
        copy.GpuIndexIVFPQ::copyFrom(cpu);
    });
    detail::replaceQuantizer(copy, std::move(ours));
    take_(copy, index->nprobe);
    std::swap(pq, copy.pq);
    subQuantizers_ = copy.subQuantizers_;
    bitsPerCode_ = copy.bitsPerCode_;
}

void GpuIndexBitsIVFPQ::copyTo(faiss::IndexIVFPQ* index) const {
    detail::requireNotNull(index, "index");
#if !FAISS_BITS_FAISS_COPIES_PACKED_CODES
    if (bitsPerCode_ != 8) {
        FAISS_THROW_IF_NOT_MSG(
                ivfpqConfig_.indicesOptions != faiss::gpu::INDICES_IVF,
                "config.indicesOptions = INDICES_IVF: the index has no ids to "
                "copy");
        DeviceScope scope(config_.device);
        faiss::ProductQuantizer quantizer(d, subQuantizers_, bitsPerCode_);
        auto lists = std::make_unique<faiss::ArrayInvertedLists>(
                size_t(nlist), quantizer.code_size);
        if (index_) {
            detail::copyProductLists(
                    *index_,
                    resources_->getDefaultStream(config_.device),
                    quantizer.centroids,
                    *lists);
        }
        GpuIndexIVF::copyTo(index);
        index->by_residual = true;
        index->use_precomputed_table = 0;
        index->precomputed_table.clear();
        index->do_polysemous_training = false;
        index->polysemous_training = nullptr;
        index->scan_table_threshold = 0;
        index->polysemous_ht = 0;
        index->pq = quantizer;
        index->code_size = quantizer.code_size;
        index->replace_invlists(lists.release(), true);
        return;
    }
#endif
    GpuIndexIVFPQ::copyTo(index);
}

IvfLists GpuIndexBitsIVFPQ::ivfLists_() const {
    return detail::productListsOf(
            *index_, ivfConfig_.indicesOptions, bitsPerCode_);
}

} // namespace faiss_bits::gpu
