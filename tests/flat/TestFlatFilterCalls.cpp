/// Filtered searches of GpuIndexBitsFlat as calls: pages, memory, lifetimes,
/// bad arguments.

#include <cstring>

#include <faiss/IndexIVF.h>

#include "tests/flat/GpuFilterHarness.h"

namespace faiss_bits::test {
namespace {

class GpuFlatFilterCalls : public GpuTest {};

/// A page has the filter of the whole call.
TEST_F(GpuFlatFilterCalls, Pages) {
    FlatCase c;
    c.n = 20011;
    c.q = 700;
    const FlatData data(c);
    const auto index = data.makeIndex();
    EveryFifth selector;
    const SearchOutput whole = searchWith(*index, data.queries, 10, &selector);
    index->setMinPagingSize(4096);
    EXPECT_TRUE(
            sameOutput(whole, searchWith(*index, data.queries, 10, &selector)));
    DeviceSelector prepared(&selector, c.n);
    EXPECT_TRUE(
            sameOutput(whole, searchWith(*index, data.queries, 10, &prepared)));
}

/// Never cached by its address.
TEST_F(GpuFlatFilterCalls, SmallSelectorsThatChange) {
    FlatCase c;
    c.n = 300;
    c.q = 3;
    const FlatData data(c);
    const auto index = data.makeIndex();
    faiss::IDSelectorRange range(0, 10);
    DeviceSelector prepared(&range, c.n);
    const auto labelsOf = [&](faiss::IDSelector* selector) {
        const auto out = searchWith(*index, data.queries, 300, selector);
        std::set<int64_t> labels(out.labels.begin(), out.labels.end());
        labels.erase(-1);
        return labels;
    };
    EXPECT_EQ(*labelsOf(&range).rbegin(), 9);
    range.imin = 200;
    range.imax = 300;
    EXPECT_EQ(*labelsOf(&range).begin(), 200);
    EXPECT_EQ(labelsOf(&range).size(), 100u);
    EXPECT_EQ(labelsOf(&prepared).size(), 10u);
    EXPECT_EQ(*labelsOf(&prepared).rbegin(), 9);
}

/// Ids on the device, in pinned and in managed memory.
TEST_F(GpuFlatFilterCalls, SmallIdsAnywhere) {
    FlatCase c;
    c.n = 300;
    c.q = 3;
    const FlatData data(c);
    const auto index = data.makeIndex();
    const std::vector<idx_t> ids = {3, 5, 299, 3};
    faiss::IDSelectorArray onHost(ids.size(), ids.data());
    const auto want = searchWith(*index, data.queries, 4, &onHost);
    const DeviceBuffer<int64_t> deviceIds(ids);
    faiss::IDSelectorArray onDevice(ids.size(), deviceIds.data());
    EXPECT_TRUE(
            sameOutput(want, searchWith(*index, data.queries, 4, &onDevice)));
    for (bool managed : {false, true}) {
        void* memory = nullptr;
        const size_t bytes = ids.size() * sizeof(idx_t);
        ASSERT_EQ(
                managed ? cudaMallocManaged(&memory, bytes)
                        : cudaMallocHost(&memory, bytes),
                cudaSuccess);
        std::memcpy(memory, ids.data(), bytes);
        faiss::IDSelectorArray one(ids.size(), static_cast<idx_t*>(memory));
        EXPECT_TRUE(
                sameOutput(want, searchWith(*index, data.queries, 4, &one)));
        EXPECT_EQ(
                managed ? cudaFree(memory) : cudaFreeHost(memory), cudaSuccess);
    }
}

TEST_F(GpuFlatFilterCalls, SmallEmptyIndex) {
    GpuIndexBitsFlatL2 index(sharedResources(), 4);
    EveryFifth own;
    DeviceSelector prepared(&own, 0);
    EXPECT_EQ(prepared.numSelected(), 0);
    const std::vector<float> queries(4 * 20, 1.f);
    for (faiss::IDSelector* selector :
         {(faiss::IDSelector*)&own, (faiss::IDSelector*)&prepared}) {
        const auto out = searchWith(index, queries, 2, selector);
        for (int64_t label : out.labels) {
            EXPECT_EQ(label, -1);
        }
    }
}

TEST_F(GpuFlatFilterCalls, SmallBadArguments) {
    FlatCase c;
    c.n = 300;
    c.q = 3;
    const FlatData data(c);
    const auto index = data.makeIndex();
    const auto before = searchOnHost(*index, data.queries, 5);
    const auto search = [&](faiss::IDSelector* selector) {
        searchWith(*index, data.queries, 5, selector);
    };
    faiss::IDSelectorRange range(0, 10);
    DeviceSelector shorter(&range, 299);
    EXPECT_TRUE(faissThrowsNaming(
            [&] { search(&shorter); }, "DeviceSelector", "299"));
    faiss::IDSelectorNot no(&shorter);
    EXPECT_TRUE(
            faissThrowsNaming([&] { search(&no); }, "DeviceSelector", "300"));
    faiss::IDSelectorNot null(nullptr);
    EXPECT_TRUE(faissThrowsNaming([&] { search(&null); }, "sel"));
    EXPECT_TRUE(faissThrowsNaming([&] { DeviceSelector(&null, 300); }, "sel"));
    faiss::IDSelectorArray noIds(3, nullptr);
    EXPECT_TRUE(faissThrowsNaming([&] { search(&noIds); }, "ids"));
    faiss::IDSelectorBitmap noBits(3, nullptr);
    EXPECT_TRUE(faissThrowsNaming([&] { search(&noBits); }, "bitmap"));
    Failing failing;
    EXPECT_TRUE(faissThrowsNaming([&] { search(&failing); }, "test"));
    EXPECT_TRUE(
            faissThrowsNaming([&] { DeviceSelector(&failing, 300); }, "test"));
    EXPECT_TRUE(
            faissThrowsNaming([&] { DeviceSelector(nullptr, 300); }, "sel"));
    EXPECT_TRUE(
            faissThrowsNaming([&] { DeviceSelector(&range, -1); }, "n", "-1"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { DeviceSelector(&range, (idx_t(1) << 37) - 2047); },
            "n",
            "137438951425"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { DeviceSelector(&range, 300, 1000); }, "device", "1000"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { DeviceSelector(&range, 300, -2); }, "device", "-2"));
    faiss::IVFSearchParameters other;
    std::vector<float> distances(5);
    std::vector<int64_t> labels(5);
    EXPECT_TRUE(faissThrowsNaming(
            [&] {
                index->search(
                        1,
                        data.queries.data(),
                        5,
                        distances.data(),
                        labels.data(),
                        &other);
            },
            "params"));
    EXPECT_TRUE(sameOutput(before, searchOnHost(*index, data.queries, 5)));
}

TEST_F(GpuFlatFilterCalls, SelectorsOfAnotherDevice) {
    int count = 0;
    ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
    if (count < 2) {
        GTEST_SKIP() << "needs two CUDA devices";
    }
    FlatCase c;
    c.n = 300;
    const FlatData data(c);
    const auto index = data.makeIndex();
    faiss::IDSelectorRange range(0, 10);
    DeviceSelector elsewhere(&range, 300, 1);
    EXPECT_EQ(elsewhere.device(), 1);
    EXPECT_TRUE(faissThrowsNaming(
            [&] { searchWith(*index, data.queries, 5, &elsewhere); },
            "DeviceSelector",
            "1"));
}

/// Goes before the search that it was for has ended.
TEST_F(GpuFlatFilterCalls, SmallSelectorsGoWhileTheSearchRuns) {
    FlatCase c;
    c.n = 5000;
    c.q = 3;
    const FlatData data(c);
    const auto index = data.makeIndex();
    EveryFifth own;
    const auto want = searchWith(*index, data.queries, 10, &own);
    const DeviceBuffer<float> x(data.queries);
    const DeviceBuffer<float> distances(c.q * 10);
    const DeviceBuffer<int64_t> labels(c.q * 10);
    {
        DeviceSelector prepared(&own, c.n);
        faiss::SearchParameters params;
        params.sel = &prepared;
        index->search(
                c.q, x.data(), 10, distances.data(), labels.data(), &params);
    }
    EXPECT_TRUE(sameOutput(want, {distances.download(), labels.download()}));
}

/// An allocation that fails leaves the index as it was.
TEST_F(GpuFlatFilterCalls, OutOfMemory) {
    auto resources = std::make_shared<FailingResources>();
    GpuIndexBitsFlatL2 index(resources, 12);
    const auto vectors = makeVectors(20011, 12, 1);
    index.add(20011, vectors.data());
    const auto queries = makeVectors(20, 12, 2);
    EveryFifth own;
    const auto want = searchWith(index, queries, 10, &own);
    int failures = 0;
    for (int after = 0; after < 20; ++after) {
        resources->failAfter(after);
        try {
            EXPECT_TRUE(sameOutput(want, searchWith(index, queries, 10, &own)));
        } catch (const faiss::FaissException&) {
            ++failures;
        }
        resources->failNever();
        EXPECT_TRUE(sameOutput(want, searchWith(index, queries, 10, &own)));
    }
    EXPECT_GT(failures, 2);
}

} // namespace
} // namespace faiss_bits::test
