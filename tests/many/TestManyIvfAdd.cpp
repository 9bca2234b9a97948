/// Inverted lists over several devices that are trained and filled there.

#include <numeric>

#include <faiss/IndexPreTransform.h>
#include <faiss/VectorTransform.h>
#include <faiss/gpu/GpuIndexIVFFlat.h>

#include "tests/many/ManyIvfHarness.h"

namespace faiss_bits::test {
namespace {

class ManyIvfAdd : public GpuTest {};

std::vector<idx_t> idsFrom(idx_t first, idx_t step, idx_t n) {
    std::vector<idx_t> ids(n);
    for (idx_t i = 0; i < n; ++i) {
        ids[i] = first + step * i;
    }
    return ids;
}

/// Vectors with ties. Not for product codes: FAISS finds them by matrix
/// products, so that of two as near it may take another in a larger addition.
Fill fillOf(IvfKind kind) {
    return kind == IvfKind::Product ? Fill::Uniform : Fill::Integers;
}

/// Four additions, of other numbers, ids and places.
void addSome(IvfPair& pair, Fill fill) {
    int step = 0;
    for (idx_t n : {250, 1, 2, 100}) {
        // The id of one is that of another, too.
        const auto ids = step % 2 == 0 ? std::vector<idx_t>()
                                       : idsFrom(5000000000, -7, n);
        pair.add(makeVectors(n, kIvfD, 10 + step, fill), ids, step >= 2);
        ++step;
    }
}

TEST_F(ManyIvfAdd, SmallAdditionsAreThoseOfOneIndex) {
    const auto ways = waysOf();
    int number = 0;
    for (IvfKind kind : kIvfKinds) {
        const auto vectors = makeVectors(600, kIvfD, 1, fillOf(kind));
        const auto queries = makeVectors(25, kIvfD, 2, fillOf(kind));
        for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
            for (bool isEmpty : {false, true}) {
                faiss::IndexFlat quantizer(kIvfD, metric);
                const auto cpu = isEmpty
                        ? makeTrainedIvf(kind, metric, quantizer, vectors)
                        : makeCpuIvf(kind, metric, quantizer, vectors);
                cpu->nprobe = 4;
                for (const auto& options : dealings()) {
                    // All ways of the simplest kind, of others in turn.
                    const bool isSimple = kind == IvfKind::Flat && !isEmpty;
                    for (int i = 0; i < (isSimple ? 3 : 1); ++i) {
                        const auto& config = ways[number++ % 3];
                        SCOPED_TRACE(
                                ::testing::Message()
                                << "kind " << int(kind) << " metric "
                                << int(metric) << " empty " << isEmpty
                                << " shards " << options.shard << " type "
                                << options.shard_type << " "
                                << nameOfWay(config));
                        IvfPair pair(placesOf(3), *cpu, options, config);
                        addSome(pair, fillOf(kind));
                        expectSameIvf(*pair.many, *pair.one, queries);
                        const auto near = searchOnHost(*pair.one, queries, 40);
                        pair.expectSameRanges(queries, near.distances[30]);
                    }
                }
            }
        }
    }
}

TEST_F(ManyIvfAdd, SmallShardsStayEven) {
    const auto vectors = makeVectors(600, kIvfD, 1);
    faiss::IndexFlat quantizer(kIvfD);
    const auto cpu =
            makeTrainedIvf(IvfKind::Flat, faiss::METRIC_L2, quantizer, vectors);
    GpuMultipleClonerOptions options;
    options.shard = true;
    IvfPair pair(placesOf(4), *cpu, options, smallConfig());
    const auto& shards = dynamic_cast<GpuIndexBitsShards&>(*pair.many);
    idx_t total = 0;
    for (idx_t n : {1, 1, 1, 1, 5, 80, 3, 1}) {
        pair.add(makeVectors(n, kIvfD, 3), {}, false);
        total += n;
        for (int shard = 0; shard < 4; ++shard) {
            EXPECT_LE(std::abs(shards.shardSize(shard) - total / 4), 1);
        }
    }
    pair.many->reset();
    pair.one->reset();
    EXPECT_EQ(pair.many->ntotal, 0);
    EXPECT_EQ(
            searchOnHost(*pair.many, makeVectors(3, kIvfD, 4), 2).labels,
            std::vector<idx_t>(6, -1));
    pair.add(vectors, {}, false);
    expectSameIvf(*pair.many, *pair.one, makeVectors(20, kIvfD, 4));
    // Pieces of 1,024 by default: few vectors go to one shard.
    IvfPair coarse(placesOf(4), *cpu, options, GpuIndexBitsManyConfig());
    coarse.add(vectors, {}, true);
    EXPECT_EQ(
            dynamic_cast<GpuIndexBitsShards&>(*coarse.many).shardSize(0), 600);
    coarse.add(vectors, {}, false);
    expectSameIvf(*coarse.many, *coarse.one, makeVectors(20, kIvfD, 4));
}

TEST_F(ManyIvfAdd, SmallTrainingIsThatOfOneIndex) {
    const auto vectors = makeVectors(600, kIvfD, 1);
    const auto queries = makeVectors(25, kIvfD, 2);
    for (IvfKind kind : kIvfKinds) {
        for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
            faiss::IndexFlat quantizer(kIvfD, metric);
            const auto cpu = makeUntrainedIvf(kind, metric, quantizer);
            for (const auto& options : dealings()) {
                SCOPED_TRACE(
                        ::testing::Message()
                        << "kind " << int(kind) << " metric " << int(metric)
                        << " shards " << options.shard << " type "
                        << options.shard_type);
                IvfPair pair(placesOf(3), *cpu, options, smallConfig());
                EXPECT_FALSE(pair.many->is_trained);
                EXPECT_TRUE(faissThrowsNaming(
                        [&] { pair.many->add(1, vectors.data()); },
                        "not trained"));
                EXPECT_TRUE(faissThrowsNaming(
                        [&] { searchOnHost(*pair.many, queries, 1); },
                        "not trained"));
                const DeviceBuffer<float> x(vectors);
                pair.many->train(
                        600, options.shard ? x.data() : vectors.data());
                pair.one->train(600, vectors.data());
                EXPECT_TRUE(pair.many->is_trained);
                pair.many->train(0, nullptr); // once is enough
                pair.add(vectors, {}, false);
                expectSameIvf(*pair.many, *pair.one, queries);
            }
        }
    }
}

TEST_F(ManyIvfAdd, SmallInsideAPreTransform) {
    const int d = 24;
    const auto vectors = makeVectors(600, d, 1);
    auto* rotation = new faiss::RandomRotationMatrix(d, kIvfD);
    rotation->init(5);
    faiss::IndexFlat quantizer(kIvfD);
    faiss::IndexIVFFlat inner(&quantizer, kIvfD, kIvfLists);
    faiss::IndexPreTransform cpu(rotation, &inner);
    const std::unique_ptr<faiss::VectorTransform> owner(rotation);
    for (const auto& options : dealings()) {
        const IvfPair pair(placesOf(3), cpu, options, smallConfig());
        for (faiss::Index* index : {pair.many.get(), pair.one.get()}) {
            index->train(600, vectors.data());
            index->add(600, vectors.data());
        }
        const auto queries = makeVectors(10, d, 2);
        EXPECT_TRUE(sameOutput(
                searchOnHost(*pair.many, queries, 20),
                searchOnHost(*pair.one, queries, 20)));
    }
}

/// Vectors that are nearest to no list count, as in one index.
TEST_F(ManyIvfAdd, SmallValuesThatAreNoNumbers) {
    const auto vectors = makeVectors(600, kIvfD, 1);
    faiss::IndexFlat quantizer(kIvfD);
    const auto cpu =
            makeCpuIvf(IvfKind::Flat, faiss::METRIC_L2, quantizer, vectors);
    for (const auto& options : dealings()) {
        IvfPair pair(placesOf(2), *cpu, options, smallConfig());
        auto hard = makeVectors(90, kIvfD, 3);
        for (size_t i = 0; i < hard.size(); i += 37) {
            hard[i] = i % 2 ? std::nanf("")
                            : std::numeric_limits<float>::infinity();
        }
        pair.add(hard, {}, false);
        EXPECT_EQ(pair.many->ntotal, 690);
        pair.add(makeVectors(10, kIvfD, 4), {}, false);
        expectSameIvf(*pair.many, *pair.one, makeVectors(20, kIvfD, 2));
    }
}

TEST_F(ManyIvfAdd, SmallRefusals) {
    const auto vectors = makeVectors(600, kIvfD, 1);
    faiss::IndexFlat quantizer(kIvfD);
    const auto cpu =
            makeCpuIvf(IvfKind::Flat, faiss::METRIC_L2, quantizer, vectors);
    for (const auto& options : dealings()) {
        const IvfPair pair(placesOf(2), *cpu, options, smallConfig());
        faiss::Index& many = *pair.many;
        EXPECT_TRUE(faissThrowsNaming(
                [&] { many.add(-1, vectors.data()); }, "n = -1"));
        EXPECT_TRUE(faissThrowsNaming([&] { many.add(1, nullptr); }, "x"));
        many.add(0, nullptr);
        EXPECT_EQ(many.ntotal, 600);
    }
    // FAISS's own lists could not take an addition back.
    std::vector<std::unique_ptr<faiss::gpu::GpuIndex>> parts;
    for (int part = 0; part < 2; ++part) {
        faiss::gpu::GpuIndexIVFFlatConfig config;
        parts.push_back(std::make_unique<faiss::gpu::GpuIndexIVFFlat>(
                partResources(part),
                dynamic_cast<faiss::IndexIVFFlat*>(cpu.get()),
                config));
    }
    GpuIndexBitsReplicas replicas(placesOf(2), std::move(parts));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { replicas.add(1, vectors.data()); },
            "parts[0]",
            "GpuIndexIVFFlat"));
    GpuIndexBitsShards flat(placesOf(2), kIvfD, faiss::METRIC_L2);
    const idx_t id = 3;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { flat.add_with_ids(1, vectors.data(), &id); }, "ids"));
}

/// From the first device to the others. Skipped by name where there is one.
TEST_F(ManyIvfAdd, SmallOnSeveralDevices) {
    if (numDevices() < 2) {
        GTEST_SKIP() << "one CUDA device";
    }
    const int devices = severalDevices().back();
    for (IvfKind kind : kIvfKinds) {
        const Fill fill = fillOf(kind);
        const auto vectors = makeVectors(600, kIvfD, 1, fill);
        faiss::IndexFlat quantizer(kIvfD);
        const auto cpu = makeCpuIvf(kind, faiss::METRIC_L2, quantizer, vectors);
        faiss::IndexFlat other(kIvfD);
        const auto untrained = makeUntrainedIvf(kind, faiss::METRIC_L2, other);
        for (const auto& options : dealings()) {
            for (bool peers : {true, false}) {
                GpuIndexBitsManyConfig config = smallConfig();
                config.usePeerAccess = peers;
                const DeviceList places = placesOf(devices + 1, devices);
                IvfPair pair(places, *cpu, options, config);
                IvfPair fresh(places, *untrained, options, config);
                const DeviceBuffer<float> x(vectors);
                fresh.many->train(600, x.data());
                fresh.one->train(600, vectors.data());
                for (bool onDevice : {true, false, true}) {
                    for (IvfPair* one : {&pair, &fresh}) {
                        one->add(
                                makeVectors(200, kIvfD, 3, fill),
                                onDevice ? idsFrom(1000, 3, 200)
                                         : std::vector<idx_t>(),
                                onDevice);
                        expectSameIvf(
                                *one->many,
                                *one->one,
                                makeVectors(20, kIvfD, 2, fill));
                    }
                }
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
