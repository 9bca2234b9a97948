/// Vectors removed from a GpuIndexBitsIVFFlat, copies that fail, and both among
/// adds and searches in any order.

#include <stdexcept>

#include <faiss/impl/IDSelector.h>

#include "tests/ivf/IvfVectorsHarness.h"

namespace faiss_bits::test {
namespace {

/// From both, by the ids that the index's selectors know.
void removeFromBoth(
        IvfData& data,
        GpuIndexBitsIVFFlat& index,
        const faiss::IDSelector& selector) {
    std::vector<int64_t> leaving; // as the CPU knows them
    for (int64_t l = 0; l < data.c.nlist; ++l) {
        for (size_t i = 0; i < data.cpu->invlists->list_size(l); ++i) {
            if (selector.is_member(data.selectorIdOf(l, int64_t(i)))) {
                leaving.push_back(data.cpu->invlists->get_ids(l)[i]);
            }
        }
    }
    const size_t removed = index.remove_ids(selector);
    faiss::IDSelectorBatch batch(leaving.size(), leaving.data());
    EXPECT_EQ(removed, data.cpu->remove_ids(batch)) << data.c;
}

} // namespace

TEST_F(IvfVectors, SmallRemove) {
    for (const IvfCase& c : kindsOf(someCase())) {
        for (double part : {0.0, 0.001, 0.5, 1.0}) {
            IvfData data(c);
            const auto index = data.makeIndex();
            auto ids = data.selectorIds();
            std::shuffle(ids.begin(), ids.end(), std::mt19937(3));
            ids.resize(size_t(part * double(ids.size())));
            faiss::IDSelectorBatch batch(ids.size(), ids.data());
            removeFromBoth(data, *index, batch);
            expectSameLists(data, *index);
            index->nprobe = 4;
            data.expectExact(searchOnHost(*index, data.queries, 20), 4, 20);
            // Lists take vectors again.
            const int64_t count = 300;
            const auto more = makeVectors(count, c.d, 77);
            std::vector<int64_t> moreIds(count);
            std::iota(moreIds.begin(), moreIds.end(), int64_t(5000000));
            index->add_with_ids(count, more.data(), moreIds.data());
            data.cpu->add_with_ids(count, more.data(), moreIds.data());
            expectSameLists(data, *index);
            data.expectExact(searchOnHost(*index, data.queries, 20), 4, 20);
        }
    }
}

TEST_F(IvfVectors, SmallRemoveFails) {
    struct Throwing : faiss::IDSelector {
        bool is_member(int64_t) const override {
            throw std::runtime_error("no member, says the test");
        }
    };
    for (auto indices : {faiss::gpu::INDICES_64_BIT, faiss::gpu::INDICES_CPU}) {
        IvfCase c = someCase();
        c.indices = indices;
        IvfData data(c);
        auto resources = std::make_shared<FailingResources>();
        faiss::gpu::GpuResourcesProviderFromInstance provider(resources);
        const auto index = data.makeIndex(&provider);
        EXPECT_THROW(index->remove_ids(Throwing()), std::runtime_error);
        expectSameLists(data, *index);
        faiss::IDSelectorBatch batch(data.ids.size() / 2, data.ids.data());
        int refused = 0;
        for (int count = 0; count < 4; ++count) {
            resources->failAfter(count);
            try {
                index->remove_ids(batch);
            } catch (const faiss::FaissException&) {
                ++refused;
            }
            resources->failNever();
            expectSameLists(data, *index);
        }
        EXPECT_EQ(refused, 4);
        removeFromBoth(data, *index, batch);
        expectSameLists(data, *index);
    }
}

TEST_F(IvfVectors, SmallCopyThatFails) {
    IvfCase c = someCase();
    const IvfData data(c);
    IvfCase other = c;
    other.n = 700;
    other.d = 5;
    other.nlist = 4;
    other.metric = faiss::METRIC_INNER_PRODUCT;
    const IvfData theirs(other);
    auto resources = std::make_shared<FailingResources>();
    faiss::gpu::GpuResourcesProviderFromInstance provider(resources);
    const auto index = data.makeIndex(&provider);
    index->nprobe = 3;
    int refused = 0;
    for (bool isDone = false; !isDone; ++refused) {
        ASSERT_LT(refused, 200);
        resources->failAfter(refused);
        try {
            index->copyFrom(theirs.cpu.get());
            isDone = true;
        } catch (const faiss::FaissException&) {
            resources->failNever();
            ASSERT_EQ(index->d, c.d);
            expectSameLists(data, *index);
            data.expectExact(searchOnHost(*index, data.queries, 7), 3, 7);
        }
    }
    resources->failNever();
    EXPECT_GT(refused, 5);
    EXPECT_EQ(index->nprobe, 1); // theirs
    expectSameLists(theirs, *index);
    theirs.expectExact(searchOnHost(*index, theirs.queries, 7), 1, 7);
    faiss::IndexIVFFlat untrained(
            theirs.quantizer.get(), other.d, 9, other.metric);
    untrained.is_trained = true;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->copyFrom(&untrained); }, "quantizer", "9"));
    expectSameLists(theirs, *index);
}

TEST_F(IvfVectors, SmallAnyOrder) {
    // Adds, removals, filters, searches and reads at random, against a CPU
    // index that is treated likewise.
    for (IvfCase c : kindsOf(someCase())) {
        for (uint32_t seed : {1u, 2u}) {
            c.n = 150 * seed;
            c.seed = seed;
            IvfData data(c);
            const auto index = data.makeIndex();
            index->nprobe = 5;
            std::mt19937 random(seed);
            int64_t nextId = 1000000;
            bool isReclaimed = false;
            const auto someIds = [&](size_t count) {
                auto ids = data.selectorIds();
                std::shuffle(ids.begin(), ids.end(), random);
                ids.resize(std::min(count, ids.size()));
                return ids;
            };
            for (int step = 0; step < 20; ++step) {
                SCOPED_TRACE(
                        testing::Message() << "step " << step << " of " << c);
                const auto ids = someIds(random() % 200);
                const faiss::IDSelectorBatch batch(ids.size(), ids.data());
                const faiss::IDSelectorNot no(&batch);
                const faiss::IDSelectorRange range(
                        ids.empty() ? 0 : ids[0],
                        ids.empty() ? 0
                                    : ids[0] + int64_t(random() % 10000000));
                const faiss::IDSelector* selectors[] = {&batch, &no, &range};
                const auto* selector = selectors[random() % 3];
                const int64_t count = int64_t(random() % 250);
                const auto more = makeVectors(count, c.d, random());
                std::vector<int64_t> moreIds(count);
                std::iota(moreIds.begin(), moreIds.end(), nextId);
                switch (random() % 5) {
                    case 0:
                    case 1:
                        nextId += count;
                        index->add_with_ids(count, more.data(), moreIds.data());
                        data.cpu->add_with_ids(
                                count, more.data(), moreIds.data());
                        break;
                    case 2:
                        removeFromBoth(
                                data, *index, random() % 4 ? batch : *selector);
                        break;
                    case 3: {
                        faiss::SearchParametersIVF params;
                        params.nprobe = 5;
                        params.sel = const_cast<faiss::IDSelector*>(selector);
                        const int64_t k = 1 + int64_t(random() % 40);
                        SearchOutput found;
                        found.distances.resize(c.q * k);
                        found.labels.resize(c.q * k);
                        index->search(
                                c.q,
                                data.queries.data(),
                                k,
                                found.distances.data(),
                                found.labels.data(),
                                &params);
                        data.selects = [&](int64_t id) {
                            return selector->is_member(id);
                        };
                        data.expectExact(found, 5, k);
                        data.selects = nullptr;
                        break;
                    }
                    default:
                        expectBatch(data, *index, ids, random() % 2);
                        if (!isReclaimed) {
                            // FAISS ends the process at a second time, where
                            // a list is empty both times.
                            index->reclaimMemory();
                            isReclaimed = true;
                        }
                }
                expectSameLists(data, *index);
                if (HasFatalFailure()) {
                    return;
                }
            }
            data.expectExact(searchOnHost(*index, data.queries, 30), 5, 30);
        }
    }
}

} // namespace faiss_bits::test
