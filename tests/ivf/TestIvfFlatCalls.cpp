/// What a caller may do with a GpuIndexBitsIVFFlat, and what is refused.

#include <algorithm>

#include <cuda_runtime_api.h>
#include <faiss/IndexIVFPQ.h>

#include "tests/common/CapturedGraph.h"
#include "tests/ivf/IvfHarness.h"

namespace faiss_bits::test {
namespace {

class IvfFlatCalls : public GpuTest {};

IvfCase someCase() {
    IvfCase c;
    c.n = 1200;
    c.d = 10;
    c.nlist = 9;
    c.q = 50;
    return c;
}

TEST_F(IvfFlatCalls, SmallHostAndDeviceArrays) {
    const IvfData data(someCase());
    const auto index = data.makeIndex();
    index->nprobe = 4;
    const int k = 15;
    const SearchOutput onDevice = searchOnDevice(*index, data.queries, k);
    data.expectExact(onDevice, 4, k);
    EXPECT_TRUE(sameOutput(searchOnHost(*index, data.queries, k), onDevice));
    std::vector<int64_t> labels(data.c.q * k);
    index->assign(data.c.q, data.queries.data(), labels.data(), k);
    EXPECT_EQ(labels, onDevice.labels);
    index->search(0, nullptr, k, nullptr, nullptr);
}

TEST_F(IvfFlatCalls, SmallParameters) {
    const IvfData data(someCase());
    const auto index = data.makeIndex();
    index->nprobe = 1;
    const int k = 8;
    SearchOutput found;
    found.distances.resize(data.c.q * k);
    found.labels.resize(data.c.q * k);
    const auto search = [&](const faiss::SearchParameters& params) {
        index->search(
                data.c.q,
                data.queries.data(),
                k,
                found.distances.data(),
                found.labels.data(),
                &params);
    };
    faiss::SearchParametersIVF params;
    params.nprobe = 5;
    search(params);
    data.expectExact(found, 5, k);
    search(faiss::SearchParameters());
    data.expectExact(found, 1, k);

    params.nprobe = 0;
    EXPECT_TRUE(faissThrowsNaming([&] { search(params); }, "nprobe", "0"));
    params.nprobe = 2;
    params.max_codes = 7;
    EXPECT_TRUE(faissThrowsNaming([&] { search(params); }, "max_codes", "7"));
    params.max_codes = 0;
    faiss::IVFPQSearchParameters product;
    product.nprobe = 5;
    search(product);
    data.expectExact(found, 5, k);
    product.polysemous_ht = 3;
    EXPECT_TRUE(
            faissThrowsNaming([&] { search(product); }, "polysemous_ht", "3"));
    struct Unknown : faiss::SearchParametersIVF {};
    EXPECT_TRUE(
            faissThrowsNaming([&] { search(Unknown()); }, "params", "Unknown"));
    faiss::IDSelectorRange range(0, 10);
    faiss::SearchParameters forQuantizer;
    forQuantizer.sel = &range;
    params.quantizer_params = &forQuantizer; // lists 0 to 9: all of them
    search(params);
    data.expectExact(found, 2, k);

    index->setNumProbes(3000);
    EXPECT_EQ(index->nprobe, 3000);
    EXPECT_TRUE(
            faissThrowsNaming([&] { index->setNumProbes(0); }, "nprobe", "0"));
}

TEST_F(IvfFlatCalls, SmallGivenLists) {
    for (int64_t q : {5, 120}) {
        IvfCase c = someCase();
        c.q = q;
        const IvfData data(c);
        const auto index = data.makeIndex();
        const int nprobe = 4;
        const int k = 25;
        index->nprobe = nprobe;
        std::vector<std::vector<int64_t>> lists(c.q);
        std::vector<int64_t> assign;
        std::mt19937 random(3);
        for (auto& ofQuery : lists) {
            for (int p = 0; p < nprobe; ++p) {
                // Also none, and the same again.
                ofQuery.push_back(int64_t(random() % (c.nlist + 3)) - 2);
            }
            assign.insert(assign.end(), ofQuery.begin(), ofQuery.end());
        }
        SearchOutput found;
        found.distances.resize(c.q * k);
        found.labels.resize(c.q * k);
        for (bool pairs : {false, true}) {
            index->search_preassigned(
                    c.q,
                    data.queries.data(),
                    k,
                    assign.data(),
                    nullptr,
                    found.distances.data(),
                    found.labels.data(),
                    pairs);
            for (int64_t i = 0; i < c.q; ++i) {
                EXPECT_TRUE(isCanonical(
                        data.bestOf(i, lists[i], k, pairs),
                        false,
                        found.distances.data() + i * k,
                        found.labels.data() + i * k,
                        k))
                        << "query " << i;
            }
        }
        EXPECT_TRUE(faissThrowsNaming(
                [&] {
                    index->search_preassigned(
                            c.q,
                            data.queries.data(),
                            k,
                            nullptr,
                            nullptr,
                            found.distances.data(),
                            found.labels.data(),
                            false);
                },
                "assign"));
    }
}

TEST_F(IvfFlatCalls, SmallFarListsFirst) {
    // The limits that the first lists set are no help: more is found than there
    // is room for, by some queries or by all.
    IvfCase c;
    c.n = 20000;
    c.d = 6;
    c.nlist = 50;
    c.q = 300;
    const IvfData data(c);
    const auto index = data.makeIndex();
    const int nprobe = 40;
    index->nprobe = nprobe;
    for (int reversed : {300, 5, 1}) {
        std::vector<std::vector<int64_t>> lists;
        std::vector<int64_t> assign;
        for (int64_t i = 0; i < c.q; ++i) {
            lists.push_back(data.probesOf(i, nprobe));
            if (i % c.q < reversed) {
                std::reverse(lists[i].begin(), lists[i].end());
            }
            assign.insert(assign.end(), lists[i].begin(), lists[i].end());
        }
        for (int k : {1, 10, 30}) {
            SearchOutput found;
            found.distances.resize(c.q * k);
            found.labels.resize(c.q * k);
            index->search_preassigned(
                    c.q,
                    data.queries.data(),
                    k,
                    assign.data(),
                    nullptr,
                    found.distances.data(),
                    found.labels.data(),
                    false);
            data.expectResults(found, k, lists);
        }
    }
}

TEST_F(IvfFlatCalls, SmallCaptured) {
    // A graph cannot wait, so its searches go another way; the bits are the
    // same.
    for (int64_t q : {2, 300}) {
        IvfCase c = someCase();
        c.q = q;
        const IvfData data(c);
        auto* resources = sharedResources();
        const auto index = data.makeIndex(resources);
        index->nprobe = 6;
        const int k = 12;
        const SearchOutput want = searchOnDevice(*index, data.queries, k);
        const DeviceBuffer<float> x(data.queries);
        const DeviceBuffer<float> distances(c.q * k);
        const DeviceBuffer<int64_t> labels(c.q * k);
        CapturedGraph graph(
                resources->getResources()->getDefaultStream(0), [&] {
                    index->search(
                            c.q, x.data(), k, distances.data(), labels.data());
                });
        graph.launch();
        EXPECT_TRUE(
                sameOutput({distances.download(), labels.download()}, want));
    }
}

TEST_F(IvfFlatCalls, SmallBadArguments) {
    const IvfData data(someCase());
    const auto index = data.makeIndex();
    std::vector<float> distances(1000);
    std::vector<int64_t> labels(1000);
    const float* x = data.queries.data();
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->search(1, x, 0, distances.data(), labels.data()); },
            "k",
            "0"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->search(-1, x, 1, distances.data(), labels.data()); },
            "n",
            "-1"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] {
                index->search(1, nullptr, 1, distances.data(), labels.data());
            },
            "x"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->search(1, x, 1, nullptr, labels.data()); },
            "distances"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->search(1, x, 1, distances.data(), nullptr); },
            "labels"));

    auto* resources = sharedResources();
    EXPECT_TRUE(faissThrowsNaming(
            [&] { GpuIndexBitsIVFFlat(resources, 0, 5); }, "dims", "0"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { GpuIndexBitsIVFFlat(resources, 4, 0); }, "nlist", "0"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { GpuIndexBitsIVFFlat(resources, 4, 5, faiss::METRIC_L1); },
            "metric"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { GpuIndexBitsIVFFlat(nullptr, 4, 5); }, "provider"));
    faiss::Index* noQuantizer = nullptr;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { GpuIndexBitsIVFFlat(resources, noQuantizer, 4, 5); },
            "coarseQuantizer"));
    GpuIndexBitsIVFFlat untrained(resources, 4, 5);
    EXPECT_THROW(
            untrained.search(1, x, 1, distances.data(), labels.data()),
            faiss::FaissException);
}

TEST_F(IvfFlatCalls, SmallNoMemoryLeavesTheIndexAsItWas) {
    const IvfData data(someCase());
    auto resources = std::make_shared<FailingResources>();
    faiss::gpu::GpuResourcesProviderFromInstance provider(resources);
    const auto index = data.makeIndex(&provider);
    index->nprobe = 3;
    for (int count = 0; count < 4; ++count) {
        resources->failAfter(count);
        EXPECT_THROW(
                searchOnHost(*index, data.queries, 5), faiss::FaissException)
                << count;
        resources->failNever();
        data.expectExact(searchOnHost(*index, data.queries, 5), 3, 5);
    }
}

} // namespace
} // namespace faiss_bits::test
