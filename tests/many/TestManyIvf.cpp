/// Inverted lists over several devices: the bits of one index.

#include <algorithm>

#include <faiss/IndexPreTransform.h>
#include <faiss/MetaIndexes.h>
#include <faiss/VectorTransform.h>

#include "faiss_bits/ivf/SearchParametersBitsIVF.h"
#include "faiss_bits/many/ShardBatch.h"
#include "tests/many/ManyIvfHarness.h"

namespace faiss_bits::test {

using gpu::detail::kResultBytes;
using gpu::detail::ListsHome;
using gpu::detail::mostMergedAtHome;

namespace {

class ManyIvf : public GpuTest {};

TEST_F(ManyIvf, SmallEveryKindIsOneIndex) {
    const auto vectors = makeVectors(600, kIvfD, 1);
    for (IvfKind kind : kIvfKinds) {
        for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
            faiss::IndexFlat quantizer(kIvfD, metric);
            const auto cpu = makeCpuIvf(kind, metric, quantizer, vectors);
            cpu->nprobe = 3;
            const std::unique_ptr<faiss::Index> one(
                    gpu::index_cpu_to_gpu(sharedResources(), 0, cpu.get()));
            for (int64_t q : {1, 40}) {
                const auto queries = makeVectors(q, kIvfD, 2);
                for (int count : {2, 3, 8}) {
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
                    expectSameIvf(*replicas, *one, queries);
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
                        expectSameIvf(*shards, *one, queries);
                    }
                }
            }
        }
    }
}

/// What the first device merges alone: its memory allows more of lists that
/// are written there.
TEST(ListsHome, MostThatTheFirstDeviceMerges) {
    constexpr size_t kMuch = size_t(1) << 30;
    EXPECT_EQ(mostMergedAtHome(ListsHome::SentFlat, 2, kMuch), 1 << 19);
    EXPECT_EQ(mostMergedAtHome(ListsHome::Sent, 1, kMuch), 3 << 19);
    EXPECT_EQ(mostMergedAtHome(ListsHome::Sent, 4, kMuch), 1 << 19);
    EXPECT_EQ(mostMergedAtHome(ListsHome::Written, 2, kMuch), 1 << 23);
    EXPECT_EQ(mostMergedAtHome(ListsHome::Written, 5, kMuch), 1 << 21);
    EXPECT_EQ(mostMergedAtHome(ListsHome::Written, 2, 48 << 20), 3 << 19);
    EXPECT_EQ(mostMergedAtHome(ListsHome::Written, 2, 96 << 20), 1 << 21);
    EXPECT_EQ(mostMergedAtHome(ListsHome::Written, 4, 0), 1 << 19);
    for (const int groups : {2, 3, 8}) {
        // All other lists are a quarter of the memory at most.
        const int64_t rows =
                mostMergedAtHome(ListsHome::Written, groups, size_t(1) << 26);
        EXPECT_LE(
                rows * (groups - 1) * int64_t(kResultBytes),
                std::max<int64_t>((1 << 26) / 4, (3 << 19) * kResultBytes));
    }
}

/// Of shards so few results are merged on the first device, and more on all: 2,
/// 3 and 4 groups, on one device and on as many, where there are so many.
TEST_F(ManyIvf, SmallEdgesOfTheMergeOnTheFirstDevice) {
    const auto vectors = makeVectors(600, kIvfD, 1, Fill::Integers);
    faiss::IndexFlat quantizer(kIvfD);
    const auto cpu =
            makeCpuIvf(IvfKind::Flat, faiss::METRIC_L2, quantizer, vectors);
    cpu->nprobe = 5;
    GpuMultipleClonerOptions options;
    options.shard = true;
    constexpr int64_t k = 64;
    for (const int count : {2, 3, 4}) {
        std::vector<int64_t> rows;
        for (const ListsHome how : {ListsHome::Sent, ListsHome::Written}) {
            if (count == 2 && how == ListsHome::Written) {
                continue; // more than the tests' memory takes in one batch
            }
            const auto resources = partResources(0)->getResources();
            resources->initializeForDevice(0);
            const size_t memory = resources->getTempMemoryAvailable(0);
            const int64_t most = mostMergedAtHome(how, count, memory) / k;
            rows.insert(rows.end(), {most - 1, most, most + 1});
        }
        const auto queries = makeVectors(rows.back(), kIvfD, 2, Fill::Integers);
        for (const int devices : {1, std::min(count, numDevices())}) {
            for (const auto& config : waysOf()) {
                SCOPED_TRACE(
                        ::testing::Message()
                        << count << " shards, " << devices << " devices, "
                        << nameOfWay(config));
                const IvfPair pair(
                        placesOf(count, devices), *cpu, options, config);
                for (const int64_t q : rows) {
                    const std::vector<float> some(
                            queries.begin(), queries.begin() + q * kIvfD);
                    EXPECT_TRUE(sameOutput(
                            searchOnDevice(*pair.many, some, k),
                            searchOnDevice(*pair.one, some, k)))
                            << "q = " << q;
                }
            }
        }
    }
}

TEST_F(ManyIvf, SmallLimitsOfRangesAreRefused) {
    const auto vectors = makeVectors(600, kIvfD, 1);
    faiss::IndexFlat quantizer(kIvfD);
    const auto cpu =
            makeCpuIvf(IvfKind::Flat, faiss::METRIC_L2, quantizer, vectors);
    for (const bool isSharded : {false, true}) {
        GpuMultipleClonerOptions options;
        options.shard = isSharded;
        options.shard_type = 1;
        const std::unique_ptr<faiss::Index> many(
                index_cpu_to_gpu_multiple(placesOf(2), cpu.get(), &options));
        gpu::SearchParametersBitsIVF params;
        params.nprobe = kIvfLists;
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
    const auto vectors = makeVectors(600, kIvfD, 1, Fill::Integers);
    std::vector<float> few(vectors);
    for (size_t i = 0; i < few.size(); ++i) {
        few[i] = vectors[i % (50 * kIvfD)]; // every vector twelve times
    }
    faiss::IndexFlat quantizer(kIvfD);
    const auto cpu =
            makeCpuIvf(IvfKind::Flat, faiss::METRIC_L2, quantizer, few);
    const std::unique_ptr<faiss::Index> one(
            gpu::index_cpu_to_gpu(sharedResources(), 0, cpu.get()));
    GpuMultipleClonerOptions options;
    options.shard = true;
    for (int type : shardTypes()) {
        options.shard_type = type;
        const std::unique_ptr<faiss::Index> shards(index_cpu_to_gpu_multiple(
                placesOf(8), cpu.get(), &options, smallConfig()));
        expectSameIvf(*shards, *one, makeVectors(25, kIvfD, 2, Fill::Integers));
    }
}

TEST_F(ManyIvf, SmallFlatAndWrappedIndexes) {
    const auto vectors = makeVectors(200, kIvfD, 1);
    const auto queries = makeVectors(10, kIvfD, 2);
    faiss::IndexFlatL2 flat(kIvfD);
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

        faiss::IndexFlatL2 inner(kIvfD);
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

/// What FAISS's options have no field for reaches an index on one device too.
TEST_F(ManyIvf, OneDeviceHasTheConfig) {
    constexpr int kD = 64;
    constexpr int kN = 1 << 18;
    faiss::IndexFlatL2 cpu(kD);
    const auto vectors = makeVectors(kN, kD, 1);
    cpu.add(kN, vectors.data());
    const auto clone = [&](const GpuIndexBitsManyConfig& config) {
        std::unique_ptr<faiss::Index> index(
                index_cpu_to_gpu_multiple(placesOf(1), &cpu, nullptr, config));
        const auto& flat = dynamic_cast<const GpuIndexBitsFlat&>(*index);
        std::vector<float> stored(vectors.size());
        flat.reconstruct_n(0, kN, stored.data());
        return std::pair(stored, flat.plan(10, 5).searchImage);
    };
    GpuIndexBitsManyConfig config;
    const auto usual = clone(config);
    EXPECT_TRUE(usual.first == vectors);
    EXPECT_EQ(usual.second, "not_yet");
    config.keepSearchImage = false;
    EXPECT_EQ(clone(config).second, "none");
    config.useFloat16 = true;
    const auto halves = clone(config).first;
    EXPECT_FALSE(halves == vectors);
    config.useFloat16 = false;
    config.useBFloat16 = true;
    const auto shorter = clone(config).first;
    EXPECT_FALSE(shorter == vectors);
    EXPECT_FALSE(shorter == halves);
}

TEST_F(ManyIvf, SmallRefusals) {
    faiss::IndexFlat quantizer(kIvfD);
    const auto vectors = makeVectors(600, kIvfD, 1);
    const auto cpu =
            makeCpuIvf(IvfKind::Flat, faiss::METRIC_L2, quantizer, vectors);
    const auto places = placesOf(2);
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index_cpu_to_gpu_multiple(places, nullptr); }, "index"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index_cpu_to_gpu_multiple(DeviceList(), cpu.get()); },
            "devices"));
    const faiss::IndexScalarQuantizer other(
            kIvfD, faiss::ScalarQuantizer::QT_8bit);
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index_cpu_to_gpu_multiple(places, &other); }, "index"));
    GpuIndexBitsManyConfig config;
    config.useBFloat16 = true;
    EXPECT_TRUE(faissThrowsNaming(
            [&] {
                index_cpu_to_gpu_multiple(places, cpu.get(), nullptr, config);
            },
            "useBFloat16"));
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
