/// Arrays on the host: few results of shards, which the host merges, and many
/// pages through pinned memory.

#include <cmath>

#include <faiss/impl/IDSelector.h>

#include "tests/many/ManyIvfHarness.h"

namespace faiss_bits::test {
namespace {

class ManyHostArrays : public GpuTest {};

/// Every shard for itself, on one device.
GpuIndexBitsManyConfig apart() {
    return waysOf()[1];
}

/// 4,096 results of all shards, and one more.
TEST_F(ManyHostArrays, SmallEdgesOfTheMergeOnTheHost) {
    const int d = 3; // many ties
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        for (int count : {2, 4}) {
            ShardsCase c(
                    placesOf(count),
                    d,
                    metric,
                    makeVectors(3000, d, 1, Fill::Integers),
                    apart());
            const auto expectEdges = [&] {
                for (int64_t q : {1, 2, 16}) {
                    const auto queries = makeVectors(q, d, 2, Fill::Integers);
                    for (int64_t add : {-1, 0, 1}) {
                        c.expectSame(queries, 4096 / count / q + add);
                    }
                }
            };
            expectEdges();
            c.add(makeVectors(100, d, 3, Fill::Integers)); // out of order
            expectEdges();
            const faiss::IDSelectorRange range(500, 1800);
            faiss::SearchParameters params;
            params.sel = const_cast<faiss::IDSelectorRange*>(&range);
            for (int64_t k : {10, 600}) {
                c.expectSame(makeVectors(3, d, 4, Fill::Integers), k, &params);
            }
        }
    }
}

TEST_F(ManyHostArrays, SmallManyShardsAndEmptyOnes) {
    const int d = 5;
    for (int64_t n : {0, 3, 20, 2000}) {
        const ShardsCase c(
                placesOf(16),
                d,
                faiss::METRIC_L2,
                makeVectors(n, d, 1),
                apart());
        for (int64_t k : {1, 9, 256, 257}) {
            c.expectSame(makeVectors(1, d, 2), k);
        }
    }
}

TEST_F(ManyHostArrays, SmallHardVectors) {
    const int d = 12;
    for (Hard kind : kHard) {
        const ShardsCase c(
                placesOf(3),
                d,
                faiss::METRIC_L2,
                makeHard(kind, 500, d, 5),
                apart());
        c.expectSame(makeHard(kind, 4, d, 6), 300);
    }
}

TEST_F(ManyHostArrays, SmallAssignAndPlainMode) {
    const int d = 6;
    ShardsCase c(
            placesOf(3), d, faiss::METRIC_L2, makeVectors(400, d, 1), apart());
    const auto queries = makeVectors(7, d, 2);
    for (idx_t k : {1, 5, 500}) {
        std::vector<idx_t> got(7 * k), want(7 * k);
        c.many.assign(7, queries.data(), got.data(), k);
        c.one.assign(7, queries.data(), want.data(), k);
        EXPECT_EQ(got, want);
    }
    c.many.search_mode = SearchMode::Plain;
    const auto onHost = searchOnHost(c.many, queries, 20);
    const auto onDevice = searchOnDevice(c.many, queries, 20);
    EXPECT_TRUE(sameOutput(onHost, onDevice));
}

/// A shard that fails says which it is, and nothing is written.
TEST_F(ManyHostArrays, SmallErrorsLeaveTheOutputs) {
    FailingResources failing;
    faiss::gpu::StandardGpuResources* good = partResources(0);
    struct Provider : faiss::gpu::GpuResourcesProvider {
        explicit Provider(FailingResources& resources)
                : shared(&resources, [](FailingResources*) {}) {}
        std::shared_ptr<faiss::gpu::GpuResources> getResources() override {
            return shared;
        }
        std::shared_ptr<faiss::gpu::GpuResources> shared;
    } provider(failing);
    DeviceList places;
    places.add(good, 0);
    places.add(&provider, 0);
    const int d = 4;
    GpuIndexBitsShards shards(places, d, faiss::METRIC_L2, apart());
    const auto vectors = makeVectors(300, d, 1);
    shards.add(300, vectors.data());
    const auto queries = makeVectors(2, d, 2);
    std::vector<float> distances(2 * 5, -7);
    std::vector<idx_t> labels(2 * 5, -7);
    failing.failAfter(0);
    EXPECT_TRUE(faissThrowsNaming(
            [&] {
                shards.search(
                        2, queries.data(), 5, distances.data(), labels.data());
            },
            "shard 1 of 2",
            "no memory"));
    EXPECT_EQ(distances, std::vector<float>(2 * 5, -7));
    EXPECT_EQ(labels, std::vector<idx_t>(2 * 5, -7));
    failing.failNever();
    shards.search(2, queries.data(), 5, distances.data(), labels.data());
    GpuIndexBitsFlat one(sharedResources(), d, faiss::METRIC_L2);
    one.add(300, vectors.data());
    EXPECT_EQ(labels, searchOnHost(one, queries, 5).labels);
}

TEST_F(ManyHostArrays, SmallInvertedLists) {
    const auto vectors = makeVectors(600, kIvfD, 1);
    for (IvfKind kind : kIvfKinds) {
        for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
            faiss::IndexFlat quantizer(kIvfD, metric);
            const auto cpu = makeCpuIvf(kind, metric, quantizer, vectors);
            cpu->nprobe = 4;
            for (const GpuMultipleClonerOptions& options : dealings()) {
                const IvfPair pair(placesOf(3), *cpu, options, apart());
                expectSameIvf(*pair.many, *pair.one, makeVectors(2, kIvfD, 2));
            }
        }
    }
}

/// Pages of large results, through pinned memory or without, of which the next
/// one is searched as the last is copied.
TEST_F(ManyHostArrays, PagesOfManyResults) {
    const int d = 8;
    const auto vectors = makeVectors(5000, d, 1);
    const auto queries = makeVectors(6100, d, 2); // 3 pages of shards
    GpuIndexBitsFlat one(sharedResources(), d, faiss::METRIC_L2);
    one.add(5000, vectors.data());
    const auto want = searchOnHost(one, queries, 2000);
    for (size_t pinned : {size_t(0), size_t(8) << 20, size_t(256) << 20}) {
        std::vector<std::unique_ptr<faiss::gpu::StandardGpuResources>> all;
        DeviceList places;
        for (int part = 0; part < 2; ++part) {
            all.push_back(std::make_unique<faiss::gpu::StandardGpuResources>());
            all.back()->setPinnedMemory(pinned);
            all.back()->setTempMemory(size_t(512) << 20);
            places.add(all.back().get(), part % numDevices());
        }
        for (bool split : {false, true}) {
            SCOPED_TRACE(
                    ::testing::Message()
                    << "pinned " << pinned << " shards " << split);
            std::unique_ptr<faiss::Index> many;
            if (split) {
                many = std::make_unique<GpuIndexBitsShards>(
                        places, d, faiss::METRIC_L2, apart());
            } else {
                many = std::make_unique<GpuIndexBitsReplicas>(
                        places, d, faiss::METRIC_L2, apart());
            }
            many->add(5000, vectors.data());
            EXPECT_TRUE(sameOutput(searchOnHost(*many, queries, 2000), want));
        }
    }
}

/// Queries alone that fill a page and more.
TEST_F(ManyHostArrays, PagesOfInvertedLists) {
    const auto vectors = makeVectors(600, kIvfD, 1);
    faiss::IndexFlat quantizer(kIvfD);
    const auto cpu =
            makeCpuIvf(IvfKind::Flat, faiss::METRIC_L2, quantizer, vectors);
    cpu->nprobe = 3;
    const auto queries = makeVectors(70000, kIvfD, 2); // k = 30: 30 MB
    const auto few = std::vector<float>(
            queries.begin(), queries.begin() + 20000 * kIvfD);
    for (size_t pinned : {size_t(0), size_t(64) << 20}) {
        faiss::gpu::StandardGpuResources resources;
        resources.setPinnedMemory(pinned);
        DeviceList places;
        places.add(partResources(0), 0);
        places.add(&resources, numDevices() - 1);
        for (const GpuMultipleClonerOptions& options : dealings()) {
            const IvfPair pair(places, *cpu, options, apart());
            for (const auto& some : {queries, few}) {
                const auto want = searchOnDevice(*pair.one, some, 30);
                EXPECT_TRUE(
                        sameOutput(searchOnHost(*pair.many, some, 30), want));
                EXPECT_TRUE(
                        sameOutput(searchOnDevice(*pair.many, some, 30), want));
                EXPECT_TRUE(
                        sameOutput(searchOnHost(*pair.one, some, 30), want));
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
