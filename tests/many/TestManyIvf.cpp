/// Inverted lists over several devices: the bits of one index.

#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexIVFPQ.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexScalarQuantizer.h>
#include <faiss/MetaIndexes.h>
#include <faiss/VectorTransform.h>
#include <faiss/impl/IDSelector.h>

#include "faiss_bits/cloners/GpuBitsCloner.h"
#include "faiss_bits/cloners/GpuBitsMultipleCloner.h"
#include "faiss_bits/ivf/SearchParametersBitsIVF.h"
#include "tests/many/ManyHarness.h"

namespace faiss_bits::test {
namespace {

using faiss::gpu::GpuMultipleClonerOptions;
using gpu::index_cpu_to_gpu_multiple;

constexpr int kD = 16;
constexpr int kLists = 12;

class ManyIvf : public GpuTest {};

enum class Kind { Flat, Scalar, Product };

/// Centroids are the first vectors, so that there is little to train.
std::unique_ptr<faiss::IndexIVF> makeCpu(
        Kind kind,
        faiss::MetricType metric,
        faiss::IndexFlat& quantizer,
        const std::vector<float>& vectors) {
    std::unique_ptr<faiss::IndexIVF> index;
    if (kind == Kind::Flat) {
        index = std::make_unique<faiss::IndexIVFFlat>(
                &quantizer, kD, kLists, metric);
    } else if (kind == Kind::Scalar) {
        index = std::make_unique<faiss::IndexIVFScalarQuantizer>(
                &quantizer,
                kD,
                kLists,
                faiss::ScalarQuantizer::QT_8bit,
                metric);
    } else {
        auto product = std::make_unique<faiss::IndexIVFPQ>(
                &quantizer, kD, kLists, 4, 8);
        product->metric_type = metric;
        product->cp.niter = 2;
        product->pq.cp.niter = 2;
        index = std::move(product);
    }
    quantizer.add(kLists, vectors.data());
    const idx_t n = idx_t(vectors.size()) / kD;
    index->train(n, vectors.data());
    index->add(n, vectors.data());
    return index;
}

std::vector<int> shardTypes() {
    std::vector<int> types = {1, 2};
    if (gpu::detail::kHasSubsetOfLists) {
        types.push_back(4);
    }
    return types;
}

void expectSame(
        const faiss::Index& many,
        const faiss::Index& one,
        const std::vector<float>& queries) {
    ASSERT_EQ(many.ntotal, one.ntotal);
    faiss::IDSelectorRange range(100, 400);
    for (int64_t k : {1, 30, 700}) {
        for (int nprobe : {1, 5, kLists}) {
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

TEST_F(ManyIvf, SmallEveryKindIsOneIndex) {
    const auto vectors = makeVectors(600, kD, 1);
    for (Kind kind : {Kind::Flat, Kind::Scalar, Kind::Product}) {
        for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
            faiss::IndexFlat quantizer(kD, metric);
            const auto cpu = makeCpu(kind, metric, quantizer, vectors);
            cpu->nprobe = 3;
            const std::unique_ptr<faiss::Index> one(
                    gpu::index_cpu_to_gpu(sharedResources(), 0, cpu.get()));
            for (int64_t q : {1, 40}) {
                const auto queries = makeVectors(q, kD, 2);
                for (int count : {2, 3}) {
                    GpuMultipleClonerOptions options;
                    SCOPED_TRACE(
                            ::testing::Message()
                            << "kind " << int(kind) << " metric " << int(metric)
                            << " parts " << count);
                    const std::unique_ptr<faiss::Index> replicas(
                            index_cpu_to_gpu_multiple(
                                    placesOf(count), cpu.get(), &options));
                    ASSERT_TRUE(dynamic_cast<GpuIndexBitsReplicas*>(
                            replicas.get()));
                    expectSame(*replicas, *one, queries);
                    options.shard = true;
                    for (int type : shardTypes()) {
                        options.shard_type = type;
                        const std::unique_ptr<faiss::Index> shards(
                                index_cpu_to_gpu_multiple(
                                        placesOf(count),
                                        cpu.get(),
                                        &options,
                                        waysOf()[type % 3]));
                        ASSERT_TRUE(dynamic_cast<GpuIndexBitsShards*>(
                                shards.get()));
                        expectSame(*shards, *one, queries);
                    }
                }
            }
        }
    }
}

TEST_F(ManyIvf, SmallLimitsOfRangesAreRefused) {
    const auto vectors = makeVectors(600, kD, 1);
    faiss::IndexFlat quantizer(kD);
    const auto cpu = makeCpu(Kind::Flat, faiss::METRIC_L2, quantizer, vectors);
    for (const bool isSharded : {false, true}) {
        GpuMultipleClonerOptions options;
        options.shard = isSharded;
        options.shard_type = 1;
        const std::unique_ptr<faiss::Index> many(
                index_cpu_to_gpu_multiple(placesOf(2), cpu.get(), &options));
        gpu::SearchParametersBitsIVF params;
        params.nprobe = kLists;
        faiss::RangeSearchResult all(1);
        many->range_search(1, vectors.data(), INFINITY, &all, &params);
        EXPECT_EQ(all.lims[1], 600u);
        params.max_results = 1000; // of all parts together
        faiss::RangeSearchResult none(1);
        EXPECT_TRUE(faissThrowsNaming(
                [&] {
                    many->range_search(
                            1, vectors.data(), INFINITY, &none, &params);
                },
                "max_results = 1000"));
    }
}

TEST_F(ManyIvf, SmallTiesOverTheBorders) {
    const auto vectors = makeVectors(600, kD, 1, Fill::Integers);
    std::vector<float> few(vectors);
    for (size_t i = 0; i < few.size(); ++i) {
        few[i] = vectors[i % (50 * kD)]; // every vector twelve times
    }
    faiss::IndexFlat quantizer(kD);
    const auto cpu = makeCpu(Kind::Flat, faiss::METRIC_L2, quantizer, few);
    const std::unique_ptr<faiss::Index> one(
            gpu::index_cpu_to_gpu(sharedResources(), 0, cpu.get()));
    GpuMultipleClonerOptions options;
    options.shard = true;
    for (int type : shardTypes()) {
        options.shard_type = type;
        const std::unique_ptr<faiss::Index> shards(index_cpu_to_gpu_multiple(
                placesOf(8), cpu.get(), &options, smallConfig()));
        expectSame(*shards, *one, makeVectors(25, kD, 2, Fill::Integers));
    }
}

TEST_F(ManyIvf, SmallCallsThatNeedFlatParts) {
    faiss::IndexFlat quantizer(kD);
    const auto vectors = makeVectors(600, kD, 1);
    const auto cpu = makeCpu(Kind::Flat, faiss::METRIC_L2, quantizer, vectors);
    GpuMultipleClonerOptions options;
    for (bool shard : {false, true}) {
        options.shard = shard;
        const std::unique_ptr<faiss::Index> many(
                index_cpu_to_gpu_multiple(placesOf(2), cpu.get(), &options));
        EXPECT_TRUE(faissThrowsNaming(
                [&] { many->add(1, vectors.data()); }, "add"));
        EXPECT_EQ(many->ntotal, 600);
    }
}

TEST_F(ManyIvf, SmallFlatAndWrappedIndexes) {
    const auto vectors = makeVectors(200, kD, 1);
    const auto queries = makeVectors(10, kD, 2);
    faiss::IndexFlatL2 flat(kD);
    flat.add(200, vectors.data());
    const std::unique_ptr<faiss::Index> one(
            gpu::index_cpu_to_gpu(sharedResources(), 0, &flat));
    const auto want = searchOnHost(*one, queries, 9);
    GpuMultipleClonerOptions options;
    for (bool shard : {false, true}) {
        options.shard = shard;
        const std::unique_ptr<faiss::Index> many(index_cpu_to_gpu_multiple(
                placesOf(3), &flat, &options, smallConfig()));
        EXPECT_TRUE(sameOutput(searchOnHost(*many, queries, 9), want));

        faiss::IndexFlatL2 inner(kD);
        faiss::IndexIDMap map(&inner);
        std::vector<idx_t> ids(200);
        for (int i = 0; i < 200; ++i) {
            ids[i] = 1000 - i;
        }
        map.add_with_ids(200, vectors.data(), ids.data());
        const std::unique_ptr<faiss::Index> mapped(
                index_cpu_to_gpu_multiple(placesOf(3), &map, &options));
        auto out = searchOnHost(*mapped, queries, 9);
        for (idx_t& label : out.labels) {
            label = 1000 - label;
        }
        EXPECT_TRUE(sameOutput(out, want));
    }
    const std::unique_ptr<faiss::Index> alone(
            index_cpu_to_gpu_multiple(placesOf(1), &flat));
    EXPECT_TRUE(dynamic_cast<GpuIndexBitsFlatL2*>(alone.get()));
}

TEST_F(ManyIvf, SmallRefusals) {
    faiss::IndexFlat quantizer(kD);
    const auto vectors = makeVectors(600, kD, 1);
    const auto cpu = makeCpu(Kind::Flat, faiss::METRIC_L2, quantizer, vectors);
    const auto places = placesOf(2);
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index_cpu_to_gpu_multiple(places, nullptr); }, "index"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index_cpu_to_gpu_multiple(DeviceList(), cpu.get()); },
            "devices"));
    const faiss::IndexScalarQuantizer other(
            kD, faiss::ScalarQuantizer::QT_8bit);
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index_cpu_to_gpu_multiple(places, &other); }, "index"));
    GpuMultipleClonerOptions options;
    options.shard = true;
    options.shard_type = 7;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index_cpu_to_gpu_multiple(places, cpu.get(), &options); },
            "shard_type",
            "7"));
    options.shard_type = 1;
    options.indicesOptions = faiss::gpu::INDICES_CPU;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index_cpu_to_gpu_multiple(places, cpu.get(), &options); },
            "indicesOptions"));
    options.indicesOptions = faiss::gpu::INDICES_64_BIT;
    const idx_t negative = -3;
    cpu->add_with_ids(1, vectors.data(), &negative);
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index_cpu_to_gpu_multiple(places, cpu.get(), &options); },
            "shard_type",
            "600 of 601"));
}

} // namespace
} // namespace faiss_bits::test
