/// Vectors of inverted lists of codes by their ids, removed ones, and what
/// becomes of an index when that fails.

#include <stdexcept>

#include "tests/ivf/ListModel.h"

namespace faiss_bits::test {
namespace {

class IvfCodedVectors : public GpuTest {};

IvfCase someCase() {
    IvfCase c;
    c.n = 700;
    c.d = 12;
    c.nlist = 9;
    c.q = 8;
    return c;
}

std::vector<int64_t> someOf(std::vector<int64_t> ids, double part) {
    std::shuffle(ids.begin(), ids.end(), std::mt19937(3));
    ids.resize(size_t(part * double(ids.size())));
    return ids;
}

TEST_F(IvfCodedVectors, SmallReconstruct) {
    forEveryKind(someCase(), true, [](ListModel& model) {
        auto keys = someOf(model.selectorIds(), 1);
        model.expectBatch(keys, false);
        model.expectBatch(keys, true);
        keys.resize(40);
        keys[3] = keys[9];
        keys[5] = -1;
        model.expectBatch(keys, false);
        std::vector<float> one(model.oracle.c.d);
        model.index->reconstruct(keys[7], one.data());
        EXPECT_EQ(one, model.vectors().at(keys[7]));
        const int64_t nowhere = 888888888888;
        const int64_t some[] = {keys[0], nowhere};
        std::vector<float> two(2 * one.size());
        EXPECT_TRUE(faissThrowsNaming(
                [&] { model.index->reconstruct_batch(2, some, two.data()); },
                "keys",
                "888888888888"));
    });
}

/// Where FAISS decodes on the CPU by the same operations its vectors are ours.
template <class Data>
void expectAsFaissOnTheCpu(const Data& data) {
    const auto index = data.makeIndex();
    std::vector<float> ours(data.c.d), theirs(data.c.d);
    for (int l = 0; l < data.c.nlist; ++l) {
        for (size_t i = 0; i < data.coded->invlists->list_size(l); ++i) {
            const int64_t id = data.coded->invlists->get_ids(l)[i];
            data.coded->reconstruct_from_offset(l, i, theirs.data());
            index->reconstruct(id, ours.data());
            ASSERT_EQ(
                    std::memcmp(
                            ours.data(),
                            theirs.data(),
                            ours.size() * sizeof(float)),
                    0)
                    << "list " << l << " place " << i << " of " << data.c;
        }
    }
}

TEST_F(IvfCodedVectors, SmallAsFaissOnTheCpu) {
    IvfCase c = someCase();
    c.n = 200;
    for (bool interleaved : {true, false}) {
        c.interleaved = interleaved;
        for (bool byResidual : {false, true}) {
            expectAsFaissOnTheCpu(
                    makeScalar(c, ScalarQuantizer::QT_fp16, byResidual));
            expectAsFaissOnTheCpu(
                    makeScalar(c, ScalarQuantizer::QT_8bit_direct, byResidual));
        }
        expectAsFaissOnTheCpu(makeProduct(c, {12, 4, 8}));
        expectAsFaissOnTheCpu(makeProduct(c, {24, 3, 8}));
    }
    c.interleaved = true;
    for (int bits : {4, 5, 6}) {
        expectAsFaissOnTheCpu(makeProduct(c, {12, 4, bits}));
    }
}

TEST_F(IvfCodedVectors, SmallDistancesAreThoseOfTheVectors) {
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        IvfCase c = someCase();
        c.metric = metric;
        forEveryKind(c, false, [&](ListModel& model) {
            if (model.oracle.c.indices == faiss::gpu::INDICES_IVF) {
                return; // labels are ids there too, but of this test alone
            }
            const IvfData& oracle = model.oracle;
            const int64_t q = oracle.c.q;
            const int d = oracle.c.d;
            const int64_t k = 200; // some lists have fewer
            model.index->nprobe = 2;
            const SearchOutput want =
                    searchOnHost(*model.index, oracle.queries, k);
            SearchOutput found = want;
            std::vector<float> vectors(q * k * d, -1.0f);
            model.index->search_and_reconstruct(
                    q,
                    oracle.queries.data(),
                    k,
                    found.distances.data(),
                    found.labels.data(),
                    vectors.data());
            EXPECT_TRUE(sameOutput(found, want));
            int64_t missing = 0;
            for (int64_t i = 0; i < q * k; ++i) {
                const float* x = vectors.data() + i * d;
                if (found.labels[i] == -1) {
                    ++missing;
                    EXPECT_EQ(std::count(x, x + d, 0.0f), d);
                    continue;
                }
                ASSERT_EQ(
                        found.distances[i],
                        canonicalDistance(
                                oracle.metric(),
                                0,
                                oracle.queries.data() + i / k * d,
                                x,
                                d));
            }
            EXPECT_GT(missing, 0);
        });
    }
}

TEST_F(IvfCodedVectors, SmallRemove) {
    forEveryKind(someCase(), true, [](ListModel& model) {
        const int64_t count = 300;
        for (double part : {0.0, 0.003, 0.4, 1.0}) {
            SCOPED_TRACE(testing::Message() << "part " << part);
            const auto ids = someOf(model.selectorIds(), part);
            const faiss::IDSelectorBatch batch(ids.size(), ids.data());
            model.remove(batch);
            model.expectSameLists();
            // Lists take vectors again.
            const auto more =
                    makeVectors(count, model.oracle.c.d, uint32_t(77 + part));
            std::vector<int64_t> moreIds(count);
            std::iota(
                    moreIds.begin(),
                    moreIds.end(),
                    int64_t(5000000 + 10000 * part));
            model.add(moreIds, more);
            model.expectSameLists();
            if (testing::Test::HasFatalFailure()) {
                return;
            }
        }
        model.toOracle();
        model.index->nprobe = 4;
        model.oracle.expectExact(
                searchOnHost(*model.index, model.oracle.queries, 20), 4, 20);
    });
}

struct Throwing : faiss::IDSelector {
    bool is_member(int64_t) const override {
        throw std::runtime_error("no member, says the test");
    }
};

/// Of every class one that shares bytes, if it can.
template <class Body>
void forFailing(const Body& body) {
    for (auto indices : {faiss::gpu::INDICES_64_BIT, faiss::gpu::INDICES_CPU}) {
        IvfCase c = someCase();
        c.indices = indices;
        const auto resources = std::make_shared<FailingResources>();
        faiss::gpu::GpuResourcesProviderFromInstance provider(resources);
        const auto run = [&](auto data) {
            using Data = std::decay_t<decltype(data)>;
            ListModel model(std::make_shared<Data>(std::move(data)), &provider);
            body(model, *resources);
        };
        run(IvfData(c));
        run(makeScalar(c, ScalarQuantizer::QT_4bit, true));
        run(makeScalar(c, ScalarQuantizer::QT_6bit, false));
        run(makeProduct(c, {12, 4, 5}));
        run(makeProduct(c, {12, 4, 8}));
    }
}

/// call() until it has all the memory that it asks for; all is as it was before
/// that. Returns how often it failed.
template <class Call>
int refusals(
        const ListModel& model,
        FailingResources& resources,
        const Call& call) {
    for (int count = 0; count < 500; ++count) {
        resources.failAfter(count);
        try {
            call();
            resources.failNever();
            return count;
        } catch (const faiss::FaissException&) {
            resources.failNever();
            model.expectSameLists();
            if (testing::Test::HasFatalFailure()) {
                return -1;
            }
        }
    }
    return -1;
}

TEST_F(IvfCodedVectors, SmallRemoveFails) {
    forFailing([](ListModel& model, FailingResources& resources) {
        EXPECT_THROW(model.index->remove_ids(Throwing()), std::runtime_error);
        model.expectSameLists();
        const auto ids = someOf(model.selectorIds(), 0.5);
        const faiss::IDSelectorBatch batch(ids.size(), ids.data());
        EXPECT_GT(refusals(model, resources, [&] { model.remove(batch); }), 2);
        model.expectSameLists();
    });
}

TEST_F(IvfCodedVectors, SmallUpdateFails) {
    forFailing([](ListModel& model, FailingResources& resources) {
        const auto ids = someOf(model.selectorIds(), 0.7);
        const auto x = makeVectors(int64_t(ids.size()), model.oracle.c.d, 99);
        const int count = refusals(model, resources, [&] {
            model.updateIndex(int64_t(ids.size()), ids.data(), x.data());
        });
        EXPECT_GT(count, 15); // lists grow one after another
        model.updateModel(ids, x);
        model.expectSameLists();
        // Nothing of what failed is in the way of others.
        std::vector<int64_t> moreIds(200);
        std::iota(moreIds.begin(), moreIds.end(), int64_t(6000000));
        model.add(moreIds, makeVectors(200, model.oracle.c.d, 98));
        model.expectSameLists();
    });
}

TEST_F(IvfCodedVectors, SmallAddAfterAFailedUpdate) {
    forFailing([](ListModel& model, FailingResources& resources) {
        const auto ids = someOf(model.selectorIds(), 0.7);
        const auto x = makeVectors(int64_t(ids.size()), model.oracle.c.d, 99);
        std::vector<int64_t> moreIds(60);
        int refused = 0;
        for (int count = 8; count < 100; count += 5) {
            resources.failAfter(count);
            bool isDone = true;
            try {
                model.updateIndex(int64_t(ids.size()), ids.data(), x.data());
            } catch (const faiss::FaissException&) {
                isDone = false;
            }
            resources.failNever();
            if (isDone) {
                break;
            }
            ++refused;
            std::iota(
                    moreIds.begin(),
                    moreIds.end(),
                    int64_t(7000000 + 1000 * count));
            model.add(moreIds, makeVectors(60, model.oracle.c.d, count));
            model.expectSameLists();
            if (testing::Test::HasFatalFailure()) {
                return;
            }
        }
        EXPECT_GT(refused, 2);
    });
}

} // namespace
} // namespace faiss_bits::test
