/// Inverted lists over several devices when the memory of one part is short.

#include "tests/many/ManyIvfHarness.h"

namespace faiss_bits::test {
namespace {

class ManyIvfMemory : public GpuTest {};

/// Parts on the first device, of which one has these resources.
DeviceList placesWith(
        const std::shared_ptr<FailingResources>& resources,
        int parts,
        int failing) {
    faiss::gpu::GpuResourcesProviderFromInstance provider(resources);
    DeviceList places;
    for (int part = 0; part < parts; ++part) {
        if (part == failing) {
            places.add(&provider, 0);
        } else {
            places.add(partResources(part), 0);
        }
    }
    return places;
}

/// All vectors, by a search of all lists.
::testing::AssertionResult hasSameVectors(
        const IvfPair& pair,
        const std::vector<float>& queries) {
    faiss::SearchParametersIVF params;
    params.nprobe = kIvfLists;
    return sameOutput(
            searchOnHost(*pair.many, queries, 900, &params),
            searchOnHost(*pair.one, queries, 900, &params));
}

/// Every allocation of one part fails, one after the other: all parts are what
/// they were, and the next call works.
TEST_F(ManyIvfMemory, SmallMemoryShortInOnePart) {
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
            IvfPair pair(
                    placesWith(resources, 3, 1), *cpu, options, smallConfig());
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
                ASSERT_TRUE(!failed || hasSameVectors(pair, queries));
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
TEST_F(ManyIvfMemory, SmallSearchWithMemoryShortInOnePart) {
    const auto vectors = makeVectors(600, kIvfD, 1);
    const auto queries = makeVectors(40, kIvfD, 2);
    faiss::IndexFlat quantizer(kIvfD);
    const auto cpu =
            makeCpuIvf(IvfKind::Flat, faiss::METRIC_L2, quantizer, vectors);
    for (const auto& options : dealings()) {
        for (const auto& config : waysOf()) {
            const bool isFirst = !options.shard && config.joinSameDevice;
            const auto resources = std::make_shared<FailingResources>();
            const IvfPair pair(
                    placesWith(resources, 3, isFirst ? 0 : 1),
                    *cpu,
                    options,
                    config);
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

TEST_F(ManyIvfMemory, SmallTrainingWithMemoryShortInOnePart) {
    const auto vectors = makeVectors(600, kIvfD, 1);
    for (IvfKind kind : kIvfKinds) {
        faiss::IndexFlat quantizer(kIvfD);
        const auto cpu = makeUntrainedIvf(kind, faiss::METRIC_L2, quantizer);
        const auto resources = std::make_shared<FailingResources>();
        GpuMultipleClonerOptions options;
        options.shard = true;
        IvfPair pair(placesWith(resources, 2, 1), *cpu, options, smallConfig());
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

/// The vectors are gone, and nothing reads what is left of the part.
TEST_F(ManyIvfMemory, SmallResetWithMemoryShortInOnePart) {
    const auto vectors = makeVectors(600, kIvfD, 1);
    const auto queries = makeVectors(20, kIvfD, 2);
    for (IvfKind kind : kIvfKinds) {
        faiss::IndexFlat quantizer(kIvfD);
        const auto cpu = makeCpuIvf(kind, faiss::METRIC_L2, quantizer, vectors);
        for (const auto& options : dealings()) {
            const auto resources = std::make_shared<FailingResources>();
            IvfPair pair(
                    placesWith(resources, 3, 1), *cpu, options, smallConfig());
            int failures = 0;
            for (bool failed = true; failed; failures += failed) {
                ASSERT_LT(failures, 200);
                resources->failAfter(failures);
                failed = false;
                try {
                    pair.many->reset();
                } catch (const faiss::FaissException& error) {
                    failed = true;
                    const std::string text = error.what();
                    EXPECT_NE(text.find(" 1 of 3"), std::string::npos) << text;
                    EXPECT_TRUE(faissThrowsNaming(
                            [&] { searchOnHost(*pair.many, queries, 5); },
                            "reset()"));
                    EXPECT_TRUE(faissThrowsNaming(
                            [&] { pair.many->add(1, vectors.data()); },
                            "reset()"));
                    const auto& many =
                            dynamic_cast<gpu::GpuIndexBitsMany&>(*pair.many);
                    EXPECT_TRUE(
                            faissThrowsNaming([&] { many.at(0); }, "reset()"));
                    if (!options.shard) {
                        std::vector<float> one(kIvfD);
                        EXPECT_TRUE(faissThrowsNaming(
                                [&] { pair.many->reconstruct(0, one.data()); },
                                "reset()"));
                    }
                }
                resources->failNever();
                EXPECT_EQ(pair.many->ntotal, 0);
            }
            EXPECT_GT(failures, 0) << "reset() allocates nothing";
            pair.one->reset();
            EXPECT_TRUE(hasSameVectors(pair, queries));
            pair.add(vectors, {}, false);
            expectSameIvf(*pair.many, *pair.one, queries);
        }
    }
}

} // namespace
} // namespace faiss_bits::test
