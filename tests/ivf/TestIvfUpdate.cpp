/// update_vectors of our indexes of inverted lists.

#include <limits>

#include "tests/ivf/ListModel.h"

namespace faiss_bits::test {
namespace {

class IvfUpdate : public GpuTest {};

IvfCase someCase() {
    IvfCase c;
    c.n = 900;
    c.d = 12;
    c.nlist = 9;
    c.q = 8;
    return c;
}

std::vector<int64_t> someOf(std::vector<int64_t> ids, size_t count) {
    std::shuffle(ids.begin(), ids.end(), std::mt19937(5));
    ids.resize(std::min(count, ids.size()));
    return ids;
}

/// Half of them near what they were, and so in their lists.
std::vector<float> newVectors(
        const ListModel& model,
        const std::vector<int64_t>& ids) {
    const int d = model.oracle.c.d;
    auto x = makeVectors(int64_t(ids.size()), d, 55);
    const auto old = model.vectors();
    for (size_t i = 0; i < ids.size(); i += 2) {
        for (int c = 0; c < d; ++c) {
            x[i * d + c] = old.at(ids[i])[c] + 0.01f * x[i * d + c];
        }
    }
    return x;
}

TEST_F(IvfUpdate, SmallEveryKindOfIndex) {
    forEveryKind(someCase(), true, [](ListModel& model) {
        const int64_t id = model.selectorIds()[0];
        if (model.oracle.c.indices == faiss::gpu::INDICES_IVF) {
            const std::vector<float> x(model.oracle.c.d);
            EXPECT_TRUE(faissThrowsNaming(
                    [&] { model.updateIndex(1, &id, x.data()); },
                    "INDICES_IVF"));
            model.expectSameLists();
            return;
        }
        for (size_t count : {1, 33, 500, 900}) {
            SCOPED_TRACE(testing::Message() << count << " vectors");
            const auto ids = someOf(model.selectorIds(), count);
            model.update(ids, newVectors(model, ids));
            model.expectSameLists();
            model.expectBatch(ids, false);
            if (testing::Test::HasFatalFailure()) {
                return;
            }
        }
        model.updateIndex(0, nullptr, nullptr);
        model.expectSameLists();
        model.toOracle();
        model.index->nprobe = 4;
        model.oracle.expectExact(
                searchOnHost(*model.index, model.oracle.queries, 20), 4, 20);
    });
}

TEST_F(IvfUpdate, LongLists) {
    // Many warps in each, where vectors share bytes too.
    IvfCase c;
    c.n = 60000;
    c.d = 12;
    c.nlist = 7;
    c.q = 4;
    const auto run = [](auto data) {
        using Data = std::decay_t<decltype(data)>;
        ListModel model(std::make_shared<Data>(std::move(data)));
        SCOPED_TRACE(testing::Message() << model.oracle.c);
        const auto gone = someOf(model.selectorIds(), 25000);
        const faiss::IDSelectorBatch batch(gone.size(), gone.data());
        model.remove(batch);
        model.expectSameLists();
        const auto ids = someOf(model.selectorIds(), 12000);
        model.update(ids, newVectors(model, ids));
        model.expectSameLists();
        model.expectBatch(ids, true);
        model.toOracle();
        model.index->nprobe = 3;
        model.oracle.expectExact(
                searchOnHost(*model.index, model.oracle.queries, 50), 3, 50);
    };
    for (auto indices : {faiss::gpu::INDICES_64_BIT, faiss::gpu::INDICES_CPU}) {
        c.indices = indices;
        c.interleaved = true;
        run(IvfData(c));
        run(makeScalar(c, ScalarQuantizer::QT_4bit, true));
        run(makeScalar(c, ScalarQuantizer::QT_6bit, false));
        run(makeProduct(c, {12, 4, 5}));
        run(makeProduct(c, {12, 6, 8}));
        c.interleaved = false;
        run(makeScalar(c, ScalarQuantizer::QT_4bit_uniform, true));
        run(makeScalar(c, ScalarQuantizer::QT_fp16, false));
        run(makeProduct(c, {12, 3, 8}));
    }
}

TEST_F(IvfUpdate, SmallFromTheDevice) {
    forEveryKind(someCase(), false, [](ListModel& model) {
        if (model.oracle.c.indices == faiss::gpu::INDICES_IVF) {
            return; // refused, as above
        }
        for (bool idsToo : {true, false}) {
            const auto ids = someOf(model.selectorIds(), 300);
            const auto x = newVectors(model, ids);
            const DeviceBuffer<int64_t> deviceIds(ids);
            const DeviceBuffer<float> deviceX(x);
            model.updateIndex(
                    int64_t(ids.size()),
                    idsToo ? deviceIds.data() : ids.data(),
                    deviceX.data());
            model.updateModel(ids, x);
            model.expectSameLists();
        }
    });
}

TEST_F(IvfUpdate, SmallAsFaissOnTheCpu) {
    // The same vectors under the same ids in the same lists, in any order.
    IvfCase c = someCase();
    const auto data = std::make_shared<IvfData>(c);
    ListModel model(data);
    data->cpu->set_direct_map_type(faiss::DirectMap::Hashtable);
    const auto ids = someOf(model.selectorIds(), 400);
    const auto x = newVectors(model, ids);
    data->cpu->update_vectors(int(ids.size()), ids.data(), x.data());
    model.updateIndex(int64_t(ids.size()), ids.data(), x.data());
    ASSERT_EQ(model.index->ntotal, data->cpu->ntotal);
    for (int l = 0; l < c.nlist; ++l) {
        std::map<int64_t, std::vector<uint8_t>> ours, theirs;
        const auto codes = model.index->getListVectorData(l);
        const auto listIds = model.index->getListIndices(l);
        const size_t bytes = c.d * sizeof(float);
        for (size_t i = 0; i < listIds.size(); ++i) {
            ours[listIds[i]].assign(
                    codes.begin() + i * bytes, codes.begin() + (i + 1) * bytes);
        }
        for (size_t i = 0; i < data->cpu->invlists->list_size(l); ++i) {
            const uint8_t* code = data->cpu->invlists->get_codes(l) + i * bytes;
            theirs[data->cpu->invlists->get_ids(l)[i]].assign(
                    code, code + bytes);
        }
        EXPECT_EQ(ours, theirs) << "list " << l;
    }
}

TEST_F(IvfUpdate, SmallRefused) {
    forEveryKind(someCase(), false, [](ListModel& model) {
        if (model.oracle.c.indices == faiss::gpu::INDICES_IVF) {
            return; // refused, as above
        }
        const int d = model.oracle.c.d;
        const auto known = someOf(model.selectorIds(), 5);
        auto x = makeVectors(5, d, 9);
        const auto refuse = [&](std::vector<int64_t> ids,
                                const char* name,
                                const std::string& value) {
            EXPECT_TRUE(faissThrowsNaming(
                    [&] { model.updateIndex(5, ids.data(), x.data()); },
                    name,
                    value));
            model.expectSameLists();
        };
        auto ids = known;
        ids[3] = 777777777;
        refuse(ids, "ids", "777777777");
        ids = known;
        ids[4] = ids[1];
        refuse(ids, "ids", std::to_string(ids[1]));
        ids = known;
        ids[2] = -1;
        refuse(ids, "ids", "-1");
        EXPECT_TRUE(faissThrowsNaming(
                [&] { model.updateIndex(5, nullptr, x.data()); }, "ids"));
        EXPECT_TRUE(faissThrowsNaming(
                [&] { model.updateIndex(5, known.data(), nullptr); }, "x"));
        EXPECT_TRUE(faissThrowsNaming(
                [&] { model.updateIndex(-3, known.data(), x.data()); },
                "n",
                "-3"));
        // Nearest to no list.
        x[3 * d + 1] = std::numeric_limits<float>::quiet_NaN();
        refuse(known, "x", "3");
        x[3 * d + 1] = 0;
        // An id of two vectors.
        model.add({known[2]}, makeVectors(1, d, 10));
        refuse(known, "ids", std::to_string(known[2]));
        // All others can be updated still.
        const std::vector<int64_t> two = {known[0], known[4]};
        model.update(two, makeVectors(2, d, 11));
        model.expectSameLists();
    });
}

TEST_F(IvfUpdate, SmallUntrained) {
    GpuIndexBitsIVFPQ index(sharedResources(), 8, 4, 2, 8);
    const int64_t id = 0;
    const float x[8] = {};
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index.update_vectors(1, &id, x); }, "trained"));
    std::vector<float> out(8);
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index.reconstruct(0, out.data()); }, "trained"));
    const faiss::IDSelectorAll all;
    EXPECT_EQ(index.remove_ids(all), 0u);
}

} // namespace
} // namespace faiss_bits::test
