#pragma once

#include <algorithm>
#include <utility>

#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexIVFPQ.h>
#include <faiss/IndexScalarQuantizer.h>
#include <faiss/impl/AuxIndexStructures.h>
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

/// An index on several devices and its like on one.
struct IvfPair {
    IvfPair(const DeviceList& places,
            const faiss::Index& cpu,
            const GpuMultipleClonerOptions& options,
            const GpuIndexBitsManyConfig& config)
            : many(index_cpu_to_gpu_multiple(places, &cpu, &options, config)),
              one(gpu::index_cpu_to_gpu(sharedResources(), 0, &cpu, &options)) {
    }

    void add(
            const std::vector<float>& vectors,
            const std::vector<idx_t>& ids,
            bool onDevice) {
        const idx_t n = idx_t(vectors.size()) / kIvfD;
        const idx_t* given = ids.empty() ? nullptr : ids.data();
        one->add_with_ids(n, vectors.data(), given);
        if (!onDevice) {
            many->add_with_ids(n, vectors.data(), given);
            return;
        }
        const DeviceBuffer<float> x(vectors);
        const DeviceBuffer<idx_t> there(ids);
        many->add_with_ids(n, x.data(), given ? there.data() : nullptr);
    }

    /// All within a radius, of each query by id.
    void expectSameRanges(const std::vector<float>& queries, float radius) {
        const idx_t q = idx_t(queries.size()) / kIvfD;
        faiss::RangeSearchResult a(q), b(q);
        many->range_search(q, queries.data(), radius, &a);
        one->range_search(q, queries.data(), radius, &b);
        for (idx_t i = 0; i <= q; ++i) {
            ASSERT_EQ(a.lims[i], b.lims[i]);
        }
        const auto sorted = [](const faiss::RangeSearchResult& r, idx_t i) {
            std::vector<std::pair<idx_t, float>> found;
            for (size_t j = r.lims[i]; j < r.lims[i + 1]; ++j) {
                found.push_back({r.labels[j], r.distances[j]});
            }
            std::sort(found.begin(), found.end());
            return found;
        };
        for (idx_t i = 0; i < q; ++i) {
            ASSERT_EQ(sorted(a, i), sorted(b, i)) << "query " << i;
        }
    }

    std::unique_ptr<faiss::Index> many;
    std::unique_ptr<faiss::Index> one;
};

/// Replicas, and shards of every type.
inline std::vector<GpuMultipleClonerOptions> dealings() {
    std::vector<GpuMultipleClonerOptions> all(1);
    for (int type : shardTypes()) {
        GpuMultipleClonerOptions options;
        options.shard = true;
        options.shard_type = type;
        all.push_back(options);
    }
    return all;
}

} // namespace faiss_bits::test
