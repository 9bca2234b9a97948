/// What a caller may do with selectors of a GpuIndexBitsIVFFlat.

#include <stdexcept>

#include <cuda_runtime_api.h>

#include <faiss/impl/IDSelector.h>

#include "faiss_bits/flat/DeviceSelector.h"
#include "tests/common/CapturedGraph.h"
#include "tests/ivf/IvfHarness.h"

namespace faiss_bits::test {
namespace {

using gpu::DeviceSelector;

class IvfFilterCalls : public GpuTest {};

IvfCase someCase() {
    IvfCase c;
    c.n = 1200;
    c.d = 10;
    c.nlist = 9;
    c.q = 50;
    return c;
}

struct Throwing : faiss::IDSelector {
    bool is_member(int64_t) const override {
        throw std::runtime_error("no member, says the test");
    }
};

SearchOutput searchWith(
        const GpuIndexBitsIVFFlat& index,
        const IvfData& data,
        faiss::IDSelector* selector,
        int k) {
    SearchOutput found;
    found.distances.resize(data.c.q * k);
    found.labels.resize(data.c.q * k);
    faiss::SearchParameters params;
    params.sel = selector;
    index.search(
            data.c.q,
            data.queries.data(),
            k,
            found.distances.data(),
            found.labels.data(),
            &params);
    return found;
}

TEST_F(IvfFilterCalls, SmallSelectorsThatChange) {
    IvfData data(someCase());
    const auto index = data.makeIndex();
    index->nprobe = 5;
    std::vector<int64_t> ids(data.ids.begin(), data.ids.begin() + 100);
    faiss::IDSelectorArray array(ids.size(), ids.data());
    data.selects = [&](int64_t id) { return array.is_member(id); };
    data.expectExact(searchWith(*index, data, &array, 12), 5, 12);
    std::copy(data.ids.begin() + 300, data.ids.begin() + 400, ids.begin());
    data.expectExact(searchWith(*index, data, &array, 12), 5, 12);
    array.n = 3;
    data.expectExact(searchWith(*index, data, &array, 12), 5, 12);
}

TEST_F(IvfFilterCalls, SmallArraysAnywhere) {
    IvfData data(someCase());
    const auto index = data.makeIndex();
    index->nprobe = 5;
    const std::vector<int64_t> ids(data.ids.begin(), data.ids.begin() + 500);
    data.selects = [&](int64_t id) {
        return std::find(ids.begin(), ids.end(), id) != ids.end();
    };
    const DeviceBuffer<int64_t> onDevice(ids);
    faiss::IDSelectorArray array(ids.size(), onDevice.data());
    data.expectExact(searchWith(*index, data, &array, 9), 5, 9);
    void* pinned = nullptr;
    ASSERT_EQ(cudaMallocHost(&pinned, ids.size() * 8), cudaSuccess);
    std::memcpy(pinned, ids.data(), ids.size() * 8);
    array.ids = static_cast<int64_t*>(pinned);
    const SearchOutput found = searchWith(*index, data, &array, 9);
    std::memset(pinned, 0, ids.size() * 8);
    data.expectExact(found, 5, 9);
    EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST_F(IvfFilterCalls, SmallRefused) {
    IvfData data(someCase());
    const auto index = data.makeIndex();
    const auto search = [&](faiss::IDSelector* selector) {
        searchWith(*index, data, selector, 5);
    };
    faiss::IDSelectorNot null(nullptr);
    EXPECT_TRUE(faissThrowsNaming([&] { search(&null); }, "IDSelectorNot"));
    faiss::IDSelectorArray noIds(3, nullptr);
    EXPECT_TRUE(faissThrowsNaming([&] { search(&noIds); }, "ids"));
    faiss::IDSelectorBitmap noBits(3, nullptr);
    EXPECT_TRUE(faissThrowsNaming([&] { search(&noBits); }, "bitmap"));
    Throwing throwing;
    EXPECT_THROW(search(&throwing), std::runtime_error); // goes through
    data.expectExact(searchOnHost(*index, data.queries, 5), 1, 5);
}

TEST_F(IvfFilterCalls, SmallCaptured) {
    for (int64_t q : {2, 300}) {
        IvfCase c = someCase();
        c.q = q;
        IvfData data(c);
        auto* resources = sharedResources();
        const auto index = data.makeIndex(resources);
        index->nprobe = 6;
        const int k = 12;
        faiss::IDSelectorRange range(0, int64_t(1) << 40);
        faiss::IDSelectorRange below(0, 500);
        const DeviceSelector prepared(&below, 1000);
        faiss::IDSelectorNot no(&prepared);
        faiss::IDSelectorArray array(data.ids.size(), data.ids.data());
        const DeviceBuffer<float> x(data.queries);
        const DeviceBuffer<float> distances(c.q * k);
        const DeviceBuffer<int64_t> labels(c.q * k);
        cudaStream_t stream = resources->getResources()->getDefaultStream(0);
        const auto search = [&](faiss::IDSelector* selector) {
            faiss::SearchParameters params;
            params.sel = selector;
            index->search(
                    c.q, x.data(), k, distances.data(), labels.data(), &params);
        };
        for (faiss::IDSelector* selector :
             {(faiss::IDSelector*)&range, (faiss::IDSelector*)&no}) {
            data.selects = [&](int64_t id) { return selector->is_member(id); };
            CapturedGraph graph(stream, [&] { search(selector); });
            graph.launch();
            data.expectExact({distances.download(), labels.download()}, 6, k);
        }
        Throwing own;
        for (faiss::IDSelector* selector :
             {(faiss::IDSelector*)&array, (faiss::IDSelector*)&own}) {
            const CapturedGraph graph(stream, [&] {
                EXPECT_TRUE(faissThrowsNaming(
                        [&] { search(selector); }, "captured"));
            });
        }
    }
}

TEST_F(IvfFilterCalls, SmallNoMemoryLeavesTheIndexAsItWas) {
    IvfData data(someCase());
    auto resources = std::make_shared<FailingResources>();
    faiss::gpu::GpuResourcesProviderFromInstance provider(resources);
    const auto index = data.makeIndex(&provider);
    index->nprobe = 5;
    faiss::IDSelectorBatch batch(data.ids.size() / 2, data.ids.data());
    data.selects = [&](int64_t id) { return batch.is_member(id); };
    int refused = 0;
    for (int count = 0; count < 8; ++count) {
        resources->failAfter(count);
        try {
            searchWith(*index, data, &batch, 5);
        } catch (const faiss::FaissException&) {
            ++refused;
        }
        resources->failNever();
        data.expectExact(searchWith(*index, data, &batch, 5), 5, 5);
    }
    EXPECT_GE(refused, 6);
}

} // namespace
} // namespace faiss_bits::test
