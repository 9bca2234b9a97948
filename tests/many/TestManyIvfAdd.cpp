/// Inverted lists over several devices that are trained and filled there.

#include <numeric>

#include <faiss/IndexPreTransform.h>
#include <faiss/VectorTransform.h>
#include <faiss/gpu/GpuIndexIVFFlat.h>
#include <faiss/impl/AuxIndexStructures.h>

#include "tests/many/ManyIvfHarness.h"

namespace faiss_bits::test {
namespace {

class ManyIvfAdd : public GpuTest {};

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
std::vector<GpuMultipleClonerOptions> dealings() {
    std::vector<GpuMultipleClonerOptions> all(1);
    for (int type : shardTypes()) {
        GpuMultipleClonerOptions options;
        options.shard = true;
        options.shard_type = type;
        all.push_back(options);
    }
    return all;
}

std::vector<idx_t> idsFrom(idx_t first, idx_t step, idx_t n) {
    std::vector<idx_t> ids(n);
    for (idx_t i = 0; i < n; ++i) {
        ids[i] = first + step * i;
    }
    return ids;
}

TEST_F(ManyIvfAdd, SmallAdditionsAreThoseOfOneIndex) {
    const auto vectors = makeVectors(600, kIvfD, 1, Fill::Integers);
    const auto queries = makeVectors(25, kIvfD, 2, Fill::Integers);
    for (IvfKind kind : kIvfKinds) {
        for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
            for (bool isEmpty : {false, true}) {
                faiss::IndexFlat quantizer(kIvfD, metric);
                const auto cpu = isEmpty
                        ? makeTrainedIvf(kind, metric, quantizer, vectors)
                        : makeCpuIvf(kind, metric, quantizer, vectors);
                cpu->nprobe = 4;
                for (const auto& options : dealings()) {
                    for (const auto& config : waysOf()) {
                        SCOPED_TRACE(
                                ::testing::Message()
                                << "kind " << int(kind) << " metric "
                                << int(metric) << " empty " << isEmpty
                                << " shards " << options.shard << " type "
                                << options.shard_type << " "
                                << nameOfWay(config));
                        IvfPair pair(placesOf(3), *cpu, options, config);
                        int step = 0;
                        for (idx_t n : {250, 1, 2, 100}) {
                            // The ids of one are those of others, too.
                            const auto ids = step % 2 == 0
                                    ? std::vector<idx_t>()
                                    : idsFrom(5000000000, -7, n);
                            pair.add(
                                    makeVectors(
                                            n,
                                            kIvfD,
                                            10 + step,
                                            Fill::Integers),
                                    ids,
                                    step >= 2);
                            ++step;
                        }
                        expectSameIvf(*pair.many, *pair.one, queries);
                        pair.expectSameRanges(
                                queries,
                                metric == faiss::METRIC_L2 ? 300.f : 5.f);
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

/// Every allocation of one part fails, one after the other: all parts are what
/// they were, and the next call works.
TEST_F(ManyIvfAdd, SmallMemoryShortInOnePart) {
    const auto vectors = makeVectors(600, kIvfD, 1);
    const auto more = makeVectors(200, kIvfD, 3);
    const auto queries = makeVectors(20, kIvfD, 2);
    for (IvfKind kind : kIvfKinds) {
        faiss::IndexFlat quantizer(kIvfD);
        const auto cpu = makeCpuIvf(kind, faiss::METRIC_L2, quantizer, vectors);
        for (const auto& options : dealings()) {
            SCOPED_TRACE(
                    ::testing::Message()
                    << "kind " << int(kind) << " shards " << options.shard
                    << " type " << options.shard_type);
            const auto resources = std::make_shared<FailingResources>();
            faiss::gpu::GpuResourcesProviderFromInstance failing(resources);
            DeviceList places;
            places.add(partResources(0), 0);
            places.add(&failing, 0);
            places.add(partResources(2), 0);
            IvfPair pair(places, *cpu, options, smallConfig());
            int failures = 0;
            for (bool failed = true; failed; failures += failed) {
                ASSERT_LT(failures, 200);
                resources->failAfter(failures);
                failed = false;
                try {
                    pair.many->add(200, more.data());
                } catch (const faiss::FaissException& error) {
                    failed = true;
                    const std::string text = error.what();
                    EXPECT_NE(text.find(" 1 of 3"), std::string::npos) << text;
                }
                resources->failNever();
                if (failed) {
                    expectSameIvf(*pair.many, *pair.one, queries);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
            EXPECT_GT(failures, 0) << "the addition allocates nothing";
            pair.one->add(200, more.data());
            expectSameIvf(*pair.many, *pair.one, queries);
            pair.add(makeVectors(50, kIvfD, 5), {}, false);
            expectSameIvf(*pair.many, *pair.one, queries);
        }
    }
}

/// The same of searches. Of replicas together on a device the first searches.
TEST_F(ManyIvfAdd, SmallSearchWithMemoryShortInOnePart) {
    const auto vectors = makeVectors(600, kIvfD, 1);
    const auto queries = makeVectors(40, kIvfD, 2);
    faiss::IndexFlat quantizer(kIvfD);
    const auto cpu =
            makeCpuIvf(IvfKind::Flat, faiss::METRIC_L2, quantizer, vectors);
    for (const auto& options : dealings()) {
        for (const auto& config : waysOf()) {
            const bool isFirst = !options.shard && config.joinSameDevice;
            const auto resources = std::make_shared<FailingResources>();
            faiss::gpu::GpuResourcesProviderFromInstance failing(resources);
            DeviceList places;
            for (int part = 0; part < 3; ++part) {
                if (part == (isFirst ? 0 : 1)) {
                    places.add(&failing, 0);
                } else {
                    places.add(partResources(part), 0);
                }
            }
            const IvfPair pair(places, *cpu, options, config);
            const auto want = searchOnHost(*pair.one, queries, 20);
            int failures = 0;
            for (bool failed = true; failed; failures += failed) {
                ASSERT_LT(failures, 200);
                resources->failAfter(failures);
                failed = false;
                try {
                    searchOnHost(*pair.many, queries, 20);
                } catch (const faiss::FaissException& error) {
                    failed = true;
                    const std::string named = isFirst ? " 0 of 3" : " 1 of 3";
                    const std::string text = error.what();
                    EXPECT_NE(text.find(named), std::string::npos) << text;
                }
                resources->failNever();
                EXPECT_TRUE(sameOutput(
                        searchOnHost(*pair.many, queries, 20), want));
            }
            EXPECT_GT(failures, 0) << "the search allocates nothing";
        }
    }
}

TEST_F(ManyIvfAdd, SmallTrainingWithMemoryShortInOnePart) {
    const auto vectors = makeVectors(600, kIvfD, 1);
    for (IvfKind kind : kIvfKinds) {
        faiss::IndexFlat quantizer(kIvfD);
        const auto cpu = makeUntrainedIvf(kind, faiss::METRIC_L2, quantizer);
        const auto resources = std::make_shared<FailingResources>();
        faiss::gpu::GpuResourcesProviderFromInstance failing(resources);
        DeviceList places;
        places.add(partResources(0), 0);
        places.add(&failing, 0);
        GpuMultipleClonerOptions options;
        options.shard = true;
        IvfPair pair(places, *cpu, options, smallConfig());
        const auto other = makeVectors(600, kIvfD, 9);
        int failures = 0;
        for (bool failed = true; failed && failures < 4; failures += failed) {
            resources->failAfter(failures);
            failed = false;
            try { // with other vectors, of which nothing may be left
                pair.many->train(600, other.data());
            } catch (const faiss::FaissException&) {
                failed = true;
                EXPECT_FALSE(pair.many->is_trained);
            }
            resources->failNever();
        }
        ASSERT_GT(failures, 0);
        if (pair.many->is_trained) {
            pair.one->train(600, other.data());
        } else {
            pair.many->train(600, vectors.data());
            pair.one->train(600, vectors.data());
        }
        pair.add(vectors, {}, false);
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
TEST_F(ManyIvfAdd, SmallOnTwoDevices) {
    if (numDevices() < 2) {
        GTEST_SKIP() << "one CUDA device";
    }
    const auto vectors = makeVectors(600, kIvfD, 1, Fill::Integers);
    for (IvfKind kind : kIvfKinds) {
        faiss::IndexFlat quantizer(kIvfD);
        const auto cpu = makeCpuIvf(kind, faiss::METRIC_L2, quantizer, vectors);
        faiss::IndexFlat other(kIvfD);
        const auto untrained = makeUntrainedIvf(kind, faiss::METRIC_L2, other);
        for (const auto& options : dealings()) {
            for (bool peers : {true, false}) {
                GpuIndexBitsManyConfig config = smallConfig();
                config.usePeerAccess = peers;
                IvfPair pair(placesOf(3, 2), *cpu, options, config);
                IvfPair fresh(placesOf(3, 2), *untrained, options, config);
                const DeviceBuffer<float> x(vectors);
                fresh.many->train(600, x.data());
                fresh.one->train(600, vectors.data());
                for (bool onDevice : {true, false, true}) {
                    for (IvfPair* one : {&pair, &fresh}) {
                        one->add(
                                makeVectors(200, kIvfD, 3, Fill::Integers),
                                onDevice ? idsFrom(1000, 3, 200)
                                         : std::vector<idx_t>(),
                                onDevice);
                        expectSameIvf(
                                *one->many,
                                *one->one,
                                makeVectors(20, kIvfD, 2, Fill::Integers));
                    }
                }
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
