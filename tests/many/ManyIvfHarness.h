#pragma once

#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexIVFPQ.h>
#include <faiss/IndexScalarQuantizer.h>
#include <faiss/impl/IDSelector.h>

#include "faiss_bits/cloners/GpuBitsCloner.h"
#include "faiss_bits/cloners/GpuBitsMultipleCloner.h"
#include "tests/many/ManyHarness.h"

/// What the tests of inverted lists on several devices share.
namespace faiss_bits::test {

using faiss::gpu::GpuMultipleClonerOptions;
using gpu::index_cpu_to_gpu_multiple;

inline constexpr int kIvfD = 16;
inline constexpr int kIvfLists = 12;

enum class IvfKind { Flat, Scalar, Product };

inline constexpr IvfKind kIvfKinds[] = {
        IvfKind::Flat,
        IvfKind::Scalar,
        IvfKind::Product};

/// Not trained.
inline std::unique_ptr<faiss::IndexIVF> makeUntrainedIvf(
        IvfKind kind,
        faiss::MetricType metric,
        faiss::IndexFlat& quantizer) {
    if (kind == IvfKind::Flat) {
        return std::make_unique<faiss::IndexIVFFlat>(
                &quantizer, kIvfD, kIvfLists, metric);
    }
    if (kind == IvfKind::Scalar) {
        return std::make_unique<faiss::IndexIVFScalarQuantizer>(
                &quantizer,
                kIvfD,
                kIvfLists,
                faiss::ScalarQuantizer::QT_8bit,
                metric);
    }
    auto product = std::make_unique<faiss::IndexIVFPQ>(
            &quantizer, kIvfD, kIvfLists, 4, 8);
    product->metric_type = metric;
    product->cp.niter = 2;
    product->pq.cp.niter = 2;
    return product;
}

/// Trained with vectors, without any. Centroids are the first ones, so that
/// there is little to train.
inline std::unique_ptr<faiss::IndexIVF> makeTrainedIvf(
        IvfKind kind,
        faiss::MetricType metric,
        faiss::IndexFlat& quantizer,
        const std::vector<float>& vectors) {
    auto index = makeUntrainedIvf(kind, metric, quantizer);
    quantizer.add(kIvfLists, vectors.data());
    index->train(idx_t(vectors.size()) / kIvfD, vectors.data());
    return index;
}

/// The same with the vectors.
inline std::unique_ptr<faiss::IndexIVF> makeCpuIvf(
        IvfKind kind,
        faiss::MetricType metric,
        faiss::IndexFlat& quantizer,
        const std::vector<float>& vectors) {
    auto index = makeTrainedIvf(kind, metric, quantizer, vectors);
    index->add(idx_t(vectors.size()) / kIvfD, vectors.data());
    return index;
}

inline std::vector<int> shardTypes() {
    std::vector<int> types = {1, 2};
    if (gpu::detail::kHasSubsetOfLists) {
        types.push_back(4);
    }
    return types;
}

inline void expectSameIvf(
        const faiss::Index& many,
        const faiss::Index& one,
        const std::vector<float>& queries) {
    ASSERT_EQ(many.ntotal, one.ntotal);
    faiss::IDSelectorRange range(100, 400);
    for (int64_t k : {1, 30, 700}) {
        for (int nprobe : {1, 5, kIvfLists}) {
            faiss::SearchParametersIVF params;
            params.nprobe = nprobe;
            for (auto* selector :
                 std::initializer_list<faiss::IDSelector*>{nullptr, &range}) {
                params.sel = selector;
                EXPECT_TRUE(sameOutput(
                        searchOnHost(many, queries, k, &params),
                        searchOnHost(one, queries, k, &params)))
                        << "k " << k << " nprobe " << nprobe << " filter "
                        << (selector != nullptr);
            }
        }
        EXPECT_TRUE(sameOutput(
                searchOnDevice(many, queries, k),
                searchOnDevice(one, queries, k)));
    }
}

} // namespace faiss_bits::test
