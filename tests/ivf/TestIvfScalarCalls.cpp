/// What a caller may do with a GpuIndexBitsIVFScalarQuantizer, and what is
/// refused.

#include <cuda_runtime_api.h>

#include "tests/ivf/ScalarHarness.h"

namespace faiss_bits::test {
namespace {

class IvfScalarCalls : public GpuTest {};

IvfCase someCase() {
    IvfCase c;
    c.n = 900;
    c.d = 12;
    c.nlist = 11;
    c.q = 60;
    return c;
}

TEST_F(IvfScalarCalls, SmallParametersAndGivenLists) {
    for (int64_t q : {5, 120}) {
        IvfCase c = someCase();
        c.q = q;
        const ScalarData data = makeScalar(c, ScalarQuantizer::QT_4bit, true);
        const auto index = data.makeIndex();
        const int nprobe = 4;
        const int k = 25;
        SearchOutput found;
        found.distances.resize(c.q * k);
        found.labels.resize(c.q * k);
        faiss::SearchParametersIVF params;
        params.nprobe = 3;
        const float* x = data.oracle.queries.data();
        index->search(
                c.q,
                x,
                k,
                found.distances.data(),
                found.labels.data(),
                &params);
        data.oracle.expectExact(found, 3, k);
        params.max_codes = 7;
        EXPECT_TRUE(faissThrowsNaming(
                [&] {
                    index->search(
                            c.q,
                            x,
                            k,
                            found.distances.data(),
                            found.labels.data(),
                            &params);
                },
                "max_codes",
                "7"));
        std::vector<int64_t> labels(c.q * k);
        index->nprobe = 3;
        index->assign(c.q, x, labels.data(), k);
        EXPECT_EQ(labels, found.labels);

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
        for (bool pairs : {false, true}) {
            index->search_preassigned(
                    c.q,
                    x,
                    k,
                    assign.data(),
                    nullptr,
                    found.distances.data(),
                    found.labels.data(),
                    pairs);
            for (int64_t i = 0; i < c.q; ++i) {
                EXPECT_TRUE(isCanonical(
                        data.oracle.bestOf(i, lists[i], k, pairs),
                        false,
                        found.distances.data() + i * k,
                        found.labels.data() + i * k,
                        k))
                        << "query " << i;
            }
        }
    }
}

TEST_F(IvfScalarCalls, SmallCaptured) {
    for (int64_t q : {2, 300}) {
        IvfCase c = someCase();
        c.q = q;
        const ScalarData data = makeScalar(c, ScalarQuantizer::QT_8bit, true);
        // The first search of the index is the one in the graph; its kernels
        // are loaded before.
        const auto other = data.makeIndex();
        other->nprobe = 6;
        searchOnDevice(*other, data.oracle.queries, 12);
        const auto index = data.makeIndex();
        index->nprobe = 6;
        const int k = 12;
        const DeviceBuffer<float> x(data.oracle.queries);
        const DeviceBuffer<float> distances(c.q * k);
        const DeviceBuffer<int64_t> labels(c.q * k);
        cudaStream_t stream =
                sharedResources()->getResources()->getDefaultStream(0);
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t executable = nullptr;
        ASSERT_EQ(
                cudaStreamBeginCapture(
                        stream, cudaStreamCaptureModeThreadLocal),
                cudaSuccess);
        index->search(c.q, x.data(), k, distances.data(), labels.data());
        ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
        ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
        ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
        ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
        data.oracle.expectExact(
                {distances.download(), labels.download()}, 6, k);
        EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
        EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    }
}

TEST_F(IvfScalarCalls, SmallBadArguments) {
    auto* resources = sharedResources();
    const auto type = ScalarQuantizer::QT_8bit;
    using Index = GpuIndexBitsIVFScalarQuantizer;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { Index(resources, 0, 5, type); }, "dims", "0"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { Index(resources, 4, 0, type); }, "nlist", "0"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { Index(resources, 4, 5, type, faiss::METRIC_L1); }, "metric"));
    EXPECT_TRUE(
            faissThrowsNaming([&] { Index(nullptr, 4, 5, type); }, "provider"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { Index(resources, 4, 5, ScalarQuantizer::QuantizerType(99)); },
            "qtype",
            "99"));
    faiss::Index* noQuantizer = nullptr;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { Index(resources, noQuantizer, 4, 5, type); },
            "coarseQuantizer"));
    faiss::gpu::GpuIndexIVFScalarQuantizerConfig rows;
    rows.interleavedLayout = false;
    EXPECT_TRUE(faissThrowsNaming(
            [&] {
                Index(resources,
                      4,
                      5,
                      ScalarQuantizer::QT_6bit,
                      faiss::METRIC_L2,
                      true,
                      rows);
            },
            "interleavedLayout"));
    Index untrained(resources, 4, 5, type);
    float x[4] = {};
    float distance = 0;
    int64_t label = 0;
    EXPECT_THROW(
            untrained.search(1, x, 1, &distance, &label),
            faiss::FaissException);
    EXPECT_TRUE(
            faissThrowsNaming([&] { untrained.setNumProbes(0); }, "nprobe"));
}

} // namespace
} // namespace faiss_bits::test
