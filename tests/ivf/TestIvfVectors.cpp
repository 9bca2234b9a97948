/// Vectors of a GpuIndexBitsIVFFlat by their ids, removed ones, and both among
/// searches in any order.

#include <limits>
#include <stdexcept>
#include <unordered_map>

#include <faiss/impl/IDSelector.h>

#include "tests/ivf/IvfHarness.h"

namespace faiss_bits::test {
namespace {

class IvfVectors : public GpuTest {};

IvfCase someCase() {
    IvfCase c;
    c.n = 1300;
    c.d = 10;
    c.nlist = 9;
    c.q = 8;
    return c;
}

/// Ids of the selector and their vectors, as the lists have them.
std::unordered_map<int64_t, std::vector<float>> vectorsOf(const IvfData& data) {
    std::unordered_map<int64_t, std::vector<float>> all;
    for (int64_t l = 0; l < data.c.nlist; ++l) {
        const auto* codes = reinterpret_cast<const float*>(
                data.cpu->invlists->get_codes(l));
        for (size_t i = 0; i < data.cpu->invlists->list_size(l); ++i) {
            all.emplace(
                    data.selectorIdOf(l, int64_t(i)),
                    std::vector<float>(
                            codes + i * data.c.d, codes + (i + 1) * data.c.d));
        }
    }
    return all;
}

void expectBatch(
        const IvfData& data,
        const GpuIndexBitsIVFFlat& index,
        const std::vector<int64_t>& keys,
        bool onDevice) {
    const auto all = vectorsOf(data);
    std::vector<float> out(keys.size() * data.c.d, -1.0f);
    if (onDevice) {
        const DeviceBuffer<int64_t> deviceKeys(keys);
        const DeviceBuffer<float> vectors(int64_t(out.size()));
        index.reconstruct_batch(
                int64_t(keys.size()), deviceKeys.data(), vectors.data());
        out = vectors.download();
    } else {
        index.reconstruct_batch(int64_t(keys.size()), keys.data(), out.data());
    }
    for (size_t i = 0; i < keys.size(); ++i) {
        const std::vector<float> want = keys[i] == -1
                ? std::vector<float>(data.c.d, 0.0f)
                : all.at(keys[i]);
        ASSERT_EQ(
                std::vector<float>(
                        out.begin() + i * data.c.d,
                        out.begin() + (i + 1) * data.c.d),
                want)
                << "key " << keys[i] << " of " << data.c;
    }
}

/// The same vectors and ids in the same places.
void expectSameLists(const IvfData& data, const GpuIndexBitsIVFFlat& index) {
    ASSERT_EQ(index.ntotal, data.cpu->ntotal) << data.c;
    for (int64_t l = 0; l < data.c.nlist; ++l) {
        const size_t size = data.cpu->invlists->list_size(l);
        ASSERT_EQ(size_t(index.getListLength(int(l))), size) << data.c;
        const auto codes = index.getListVectorData(int(l));
        ASSERT_EQ(codes.size(), size * data.c.d * sizeof(float));
        ASSERT_EQ(
                std::memcmp(
                        codes.data(),
                        data.cpu->invlists->get_codes(l),
                        codes.size()),
                0)
                << "list " << l << " of " << data.c;
        if (data.c.indices == faiss::gpu::INDICES_IVF) {
            continue;
        }
        const auto ids = index.getListIndices(int(l));
        ASSERT_EQ(ids.size(), size);
        for (size_t i = 0; i < size; ++i) {
            ASSERT_EQ(ids[i], data.cpu->invlists->get_ids(l)[i])
                    << "list " << l << " place " << i << " of " << data.c;
        }
    }
}

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

std::vector<IvfCase> kindsOf(IvfCase c) {
    std::vector<IvfCase> kinds;
    for (bool interleaved : {true, false}) {
        for (auto indices :
             {faiss::gpu::INDICES_64_BIT,
              faiss::gpu::INDICES_32_BIT,
              faiss::gpu::INDICES_CPU,
              faiss::gpu::INDICES_IVF}) {
            c.interleaved = interleaved;
            c.indices = indices;
            kinds.push_back(c);
        }
    }
    return kinds;
}

TEST_F(IvfVectors, SmallReconstruct) {
    for (const IvfCase& c : kindsOf(someCase())) {
        const IvfData data(c);
        const auto index = data.makeIndex();
        auto keys = data.selectorIds();
        std::shuffle(keys.begin(), keys.end(), std::mt19937(3));
        expectBatch(data, *index, keys, false);
        expectBatch(data, *index, keys, true);
        keys.resize(40);
        keys[3] = keys[9];
        keys[5] = -1;
        expectBatch(data, *index, keys, false);
        expectBatch(data, *index, {}, false);
        std::vector<float> one(c.d);
        index->reconstruct(keys[7], one.data());
        EXPECT_EQ(one, vectorsOf(data).at(keys[7]));
        std::vector<float> vectors(2 * c.d);
        const int64_t nowhere = 888888888888;
        const int64_t some[] = {keys[0], nowhere};
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->reconstruct_batch(2, some, vectors.data()); },
                "keys",
                "888888888888"));
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->reconstruct(nowhere, one.data()); },
                "key",
                "888888888888"));
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->reconstruct_batch(1, nullptr, one.data()); },
                "keys"));
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->reconstruct_batch(1, some, nullptr); }, "out"));
    }
}

TEST_F(IvfVectors, SmallReconstructRange) {
    for (auto indices : {faiss::gpu::INDICES_64_BIT, faiss::gpu::INDICES_CPU}) {
        IvfCase c = someCase();
        c.indices = indices;
        std::vector<int64_t> ids(c.n);
        std::iota(ids.begin(), ids.end(), int64_t(50));
        const auto vectors = makeVectors(c.n, c.d, 1);
        IvfData data(c, vectors, makeVectors(c.q, c.d, 2), ids);
        const auto index = data.makeIndex();
        std::vector<float> out(vectors.size());
        index->reconstruct_n(50, c.n, out.data());
        EXPECT_EQ(out, vectors);
        out.resize(size_t(10) * c.d);
        index->reconstruct_n(700, 10, out.data());
        EXPECT_TRUE(std::equal(
                out.begin(), out.end(), vectors.begin() + 650 * c.d));
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->reconstruct_n(45, 10, out.data()); }, "i0", "45"));
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->reconstruct_n(0, -1, out.data()); }, "n", "-1"));
    }
}

TEST_F(IvfVectors, SmallSearchAndReconstruct) {
    const IvfData data(someCase());
    const auto index = data.makeIndex();
    index->nprobe = 1;
    const int64_t k = 400; // some have fewer
    const SearchOutput want = searchOnHost(*index, data.queries, k);
    SearchOutput found = want;
    std::vector<float> vectors(data.c.q * k * data.c.d, -1.0f);
    index->search_and_reconstruct(
            data.c.q,
            data.queries.data(),
            k,
            found.distances.data(),
            found.labels.data(),
            vectors.data());
    EXPECT_TRUE(sameOutput(found, want));
    const auto all = vectorsOf(data);
    for (int64_t i = 0; i < data.c.q * k; ++i) {
        if (found.labels[i] != -1) {
            ASSERT_TRUE(std::equal(
                    vectors.begin() + i * data.c.d,
                    vectors.begin() + (i + 1) * data.c.d,
                    all.at(found.labels[i]).begin()));
        }
    }
}

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

} // namespace
} // namespace faiss_bits::test
