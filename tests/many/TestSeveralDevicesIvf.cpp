/// Inverted lists on two, three and four devices, as many as there are: the
/// bits of one index. Skipped by name where there is one device.

#include "tests/many/ManyIvfHarness.h"

namespace faiss_bits::test {
namespace {

class SeveralDevicesIvf : public SeveralDevicesTest {};

TEST_F(SeveralDevicesIvf, SmallEveryKindIsOneIndex) {
    for (IvfKind kind : kIvfKinds) {
        const auto vectors = makeVectors(600, kIvfD, 1);
        faiss::IndexFlat quantizer(kIvfD);
        const auto cpu = makeCpuIvf(kind, faiss::METRIC_L2, quantizer, vectors);
        for (const WayOver& way : waysOver()) {
            for (const auto& options : dealings()) {
                SCOPED_TRACE(
                        ::testing::Message()
                        << "kind " << int(kind) << " shards " << options.shard
                        << " of type " << options.shard_type << " on " << way);
                const IvfPair pair(
                        placesOf(way.devices, way.devices),
                        *cpu,
                        options,
                        way.config);
                for (int64_t q : {1, 3, 40}) {
                    expectSameIvf(
                            *pair.many, *pair.one, makeVectors(q, kIvfD, 2));
                }
            }
        }
    }
}

/// Of n vectors in lists of their nearest of the first ones. Every vector
/// `times` times: with more equal distances than a search keeps candidates it
/// proves nothing, and makes the query again.
std::unique_ptr<faiss::IndexIVFFlat> listsOf(
        faiss::IndexFlat& quantizer,
        int64_t n,
        int d,
        int64_t times) {
    auto vectors = makeVectors(n, d, 1);
    for (int64_t i = 0; i < n * d; ++i) {
        vectors[i] = vectors[i / d % (n / times) * d + i % d];
    }
    constexpr int kLists = 64;
    quantizer.add(kLists, vectors.data());
    auto cpu = std::make_unique<faiss::IndexIVFFlat>(&quantizer, d, kLists);
    cpu->is_trained = true;
    cpu->nprobe = 16;
    cpu->add(n, vectors.data());
    return cpu;
}

/// Small enough for tools that watch every access: searches that wait and make
/// queries again, or none, on the most devices.
TEST_F(SeveralDevicesIvf, SmallSearchesThatWait) {
    const int d = 8;
    constexpr int64_t kQueries = 5000;
    const auto queries = makeVectors(kQueries, d, 2);
    for (const int64_t times : {1, 300}) {
        faiss::IndexFlat quantizer(d);
        const auto cpu = listsOf(quantizer, 6000, d, times);
        for (const bool isSharded : {false, true}) {
            GpuMultipleClonerOptions options;
            options.shard = isSharded;
            const WayOver way = waysOver()[waysOver().size() - 2]; // straight
            const IvfPair pair(
                    placesOf(way.devices, way.devices),
                    *cpu,
                    options,
                    way.config);
            EXPECT_TRUE(sameOutput(
                    searchOnDevice(*pair.many, queries, 10),
                    searchOnDevice(*pair.one, queries, 10)))
                    << "every vector " << times << " times, shards "
                    << isSharded;
        }
    }
}

/// Labels that the host turns from places into ids, wherever they lie.
TEST_F(SeveralDevicesIvf, SmallIdsOfTheHost) {
    const auto vectors = makeVectors(600, kIvfD, 1);
    faiss::IndexFlat quantizer(kIvfD);
    const auto cpu =
            makeCpuIvf(IvfKind::Flat, faiss::METRIC_L2, quantizer, vectors);
    cpu->nprobe = 3;
    GpuMultipleClonerOptions options;
    options.indicesOptions = faiss::gpu::INDICES_CPU;
    for (const WayOver& way : waysOver()) {
        const IvfPair pair(
                placesOf(way.devices, way.devices), *cpu, options, way.config);
        for (const int64_t q : {7, 4099}) {
            const auto queries = makeVectors(q, kIvfD, 2);
            EXPECT_TRUE(sameOutput(
                    searchOnDevice(*pair.many, queries, 10),
                    searchOnDevice(*pair.one, queries, 10)))
                    << "q = " << q << " on " << way;
        }
    }
}

/// As many queries as are searched by bounds, with arrays on the first device
/// and on the host, several times in the same memory.
TEST_F(SeveralDevicesIvf, LargerShapesAreOneIndex) {
    const int d = 32;
    for (const int64_t times : {1, 500}) {
        faiss::IndexFlat quantizer(d);
        const auto cpu = listsOf(quantizer, 50000, d, times);
        for (const WayOver& way : waysOver()) {
            for (const auto& options : dealings()) {
                SCOPED_TRACE(
                        ::testing::Message()
                        << "every vector " << times << " times, shards "
                        << options.shard << " of type " << options.shard_type
                        << " on " << way);
                const IvfPair pair(
                        placesOf(way.devices, way.devices),
                        *cpu,
                        options,
                        way.config);
                for (const int64_t q : {2047 * way.devices + 1, 12000}) {
                    const auto queries = makeVectors(q, d, 2);
                    for (const int64_t k : {10, 100}) {
                        const auto want = searchOnDevice(*pair.one, queries, k);
                        for (int run = 0; run < 2; ++run) {
                            EXPECT_TRUE(sameOutput(
                                    searchOnDevice(*pair.many, queries, k),
                                    want))
                                    << "q = " << q << " k = " << k;
                        }
                        EXPECT_TRUE(sameOutput(
                                searchOnHost(*pair.many, queries, k), want))
                                << "on the host, q = " << q << " k = " << k;
                    }
                }
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
