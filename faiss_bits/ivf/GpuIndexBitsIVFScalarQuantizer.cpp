#include "faiss_bits/ivf/GpuIndexBitsIVFScalarQuantizer.h"

#include <utility>

#include <faiss/IndexScalarQuantizer.h>
#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/FaissCompat.h"
#include "faiss_bits/ivf/IvfChecks.h"
#include "faiss_bits/ivf/ListStorage.h"

namespace faiss_bits::gpu {

using detail::checkedCentroids;
using detail::checkedIvfConfig;
using detail::checkedIvfMetric;
using detail::checkedProvider;
using detail::checkedQuantizer;
using detail::requirePositive;
using faiss::ScalarQuantizer;
using faiss::gpu::DeviceScope;
using faiss::gpu::GpuIndexIVFScalarQuantizerConfig;
using faiss::gpu::GpuResourcesProvider;

namespace {

ScalarQuantizer::QuantizerType checkedType(
        ScalarQuantizer::QuantizerType qtype,
        const GpuIndexIVFScalarQuantizerConfig& config) {
    switch (qtype) {
        case ScalarQuantizer::QT_8bit:
        case ScalarQuantizer::QT_8bit_uniform:
        case ScalarQuantizer::QT_8bit_direct:
        case ScalarQuantizer::QT_4bit:
        case ScalarQuantizer::QT_4bit_uniform:
        case ScalarQuantizer::QT_fp16:
            break;
        case ScalarQuantizer::QT_6bit:
            // FAISS cannot add to such lists, and ends the process.
            FAISS_THROW_IF_NOT_FMT(
                    config.interleavedLayout,
                    "config.interleavedLayout = false: qtype = %d (QT_6bit) "
                    "needs it",
                    int(qtype));
            break;
        default:
            FAISS_THROW_FMT(
                    "qtype = %d is none of the types of FAISS's GPU: QT_8bit, "
                    "QT_8bit_uniform, QT_8bit_direct, QT_4bit, "
                    "QT_4bit_uniform, QT_6bit, QT_fp16",
                    int(qtype));
    }
    return qtype;
}

const faiss::IndexIVFScalarQuantizer* checked(
        const faiss::IndexIVFScalarQuantizer* index,
        const GpuIndexIVFScalarQuantizerConfig& config) {
    detail::requireIvfIndex(index);
    checkedType(index->sq.qtype, config);
    return index;
}

} // namespace

GpuIndexBitsIVFScalarQuantizer::GpuIndexBitsIVFScalarQuantizer(
        GpuResourcesProvider* provider,
        int dims,
        int nlist,
        ScalarQuantizer::QuantizerType qtype,
        faiss::MetricType metric,
        bool encodeResidual,
        GpuIndexIVFScalarQuantizerConfig config)
        : GpuIndexBitsIVF(
                  provider,
                  detail::makeIvfQuantizer(provider, dims, metric, config),
                  dims,
                  requirePositive(nlist, "nlist"),
                  checkedType(qtype, config),
                  metric,
                  encodeResidual,
                  checkedIvfConfig(config)) {}

GpuIndexBitsIVFScalarQuantizer::GpuIndexBitsIVFScalarQuantizer(
        GpuResourcesProvider* provider,
        const faiss::IndexIVFScalarQuantizer* index,
        GpuIndexIVFScalarQuantizerConfig config)
        : GpuIndexBitsIVFScalarQuantizer(
                  provider,
                  int(checked(index, config)->d),
                  int(index->nlist),
                  index->sq.qtype,
                  index->metric_type,
                  index->by_residual,
                  config) {
    copyFrom(index);
}

GpuIndexBitsIVFScalarQuantizer::GpuIndexBitsIVFScalarQuantizer(
        GpuResourcesProvider* provider,
        faiss::Index* coarseQuantizer,
        int dims,
        int nlist,
        ScalarQuantizer::QuantizerType qtype,
        faiss::MetricType metric,
        bool encodeResidual,
        GpuIndexIVFScalarQuantizerConfig config)
        : GpuIndexBitsIVF(
                  checkedProvider(provider),
                  encodeResidual ? checkedCentroids(coarseQuantizer)
                                 : checkedQuantizer(coarseQuantizer),
                  requirePositive(dims, "dims"),
                  requirePositive(nlist, "nlist"),
                  checkedType(qtype, config),
                  checkedIvfMetric(metric),
                  encodeResidual,
                  checkedIvfConfig(config)) {}

void GpuIndexBitsIVFScalarQuantizer::copyFrom(
        const faiss::IndexIVFScalarQuantizer* index) {
    checked(index, ivfSQConfig_);
    DeviceScope scope(config_.device);
    auto ours =
            detail::copyFlatQuantizer(resources_, ivfConfig_, index->quantizer);
    // A copy beside what is here, which goes when nothing can fail any more.
    faiss::gpu::GpuResourcesProviderFromInstance provider(resources_);
    GpuIndexBitsIVFScalarQuantizer copy(
            &provider,
            int(index->d),
            int(index->nlist),
            index->sq.qtype,
            index->metric_type,
            index->by_residual,
            ivfSQConfig_);
    detail::withFewProbes(
            index, [&](const faiss::IndexIVFScalarQuantizer* cpu) {
                copy.GpuIndexIVFScalarQuantizer::copyFrom(cpu);
            });
    detail::replaceQuantizer(copy, std::move(ours));
    take_(copy, index->nprobe);
    std::swap(sq, copy.sq);
    by_residual = copy.by_residual;
}

IvfLists GpuIndexBitsIVFScalarQuantizer::ivfLists_() const {
    return detail::scalarListsOf(*index_, ivfConfig_.indicesOptions);
}

} // namespace faiss_bits::gpu
