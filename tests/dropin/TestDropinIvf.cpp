// FAISS 1.7.3 uses its types without it, which GCC 13 refuses.
#include <cstdint>

#include <faiss/gpu/GpuIndexIVFFlat.h>

#include "tests/dropin/IvfProbes.h"
#include "tests/ivf/IvfHarness.h"

/// FAISS's own GpuIndexIVFFlat in a program that is linked with the drop-in
/// library first, against the canonical results in the lists that it probes.
/// FAISS's float32 distances have other bits.
namespace faiss_bits::test {
namespace {

using faiss::gpu::GpuIndexIVFFlat;

class DropinIvf : public GpuTest {};

void expectCanonical(
        GpuIndexIVFFlat& index,
        const IvfData& data,
        int nprobe,
        int k) {
    SCOPED_TRACE(testing::Message() << "nprobe=" << nprobe << " k=" << k);
    index.nprobe = nprobe;
    const auto lists = probesOf(index, data, nprobe);
    data.expectResults(searchOnHost(index, data.queries, k), k, lists);
    data.expectResults(searchOnDevice(index, data.queries, k), k, lists);
}

TEST_F(DropinIvf, SmallEveryKind) {
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        for (bool interleaved : {true, false}) {
            for (auto indices :
                 {faiss::gpu::INDICES_CPU,
                  faiss::gpu::INDICES_IVF,
                  faiss::gpu::INDICES_32_BIT,
                  faiss::gpu::INDICES_64_BIT}) {
                IvfCase c;
                c.metric = metric;
                c.interleaved = interleaved;
                c.indices = indices;
                c.d = 40;
                const IvfData data(c);
                GpuIndexIVFFlat index(
                        sharedResources(), data.cpu.get(), data.config());
                for (int nprobe : {1, 4, 10}) {
                    expectCanonical(index, data, nprobe, 17);
                }
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(DropinIvf, ManyQueriesAndManyNeighbours) {
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        IvfCase c;
        c.metric = metric;
        c.n = 30000;
        c.d = 64;
        c.nlist = 40;
        c.q = 200;
        const IvfData data(c);
        GpuIndexIVFFlat index(sharedResources(), data.cpu.get(), data.config());
        for (int k : {1, 10, 300, 2047}) { // the most of 1.7.3
            expectCanonical(index, data, 12, k);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

// Lists grow, and are emptied.
TEST_F(DropinIvf, AfterEveryChange) {
    IvfCase c;
    c.n = 5000;
    c.d = 20;
    c.q = 60;
    const IvfData data(c);
    GpuIndexIVFFlat index(sharedResources(), data.cpu.get(), data.config());
    expectCanonical(index, data, 6, 30);
    index.reset();
    const SearchOutput none = searchOnHost(index, data.queries, 3);
    EXPECT_EQ(none.labels, std::vector<int64_t>(size_t(c.q) * 3, -1));
    int64_t added = 0;
    for (int64_t until : {int64_t(10), int64_t(700), c.n}) {
        index.add_with_ids(
                until - added,
                data.vectors.data() + added * c.d,
                data.ids.data() + added);
        added = until;
    }
    expectCanonical(index, data, 6, 30);
    index.reclaimMemory();
    expectCanonical(index, data, 10, 30);
}

/// Some rows of many.
void expectSomeCanonical(GpuIndexIVFFlat& index, const IvfData& data, int k) {
    constexpr int64_t kStep = 61;
    const auto lists = probesOf(index, data, int(index.nprobe));
    const SearchOutput found = searchOnHost(index, data.queries, k);
    for (int64_t i = 0; i < data.c.q; i += kStep) {
        ASSERT_TRUE(isCanonical(
                data.resultOf(i, lists[i], k),
                data.c.metric == faiss::METRIC_INNER_PRODUCT,
                found.distances.data() + i * k,
                found.labels.data() + i * k,
                k))
                << "query " << i;
    }
}

// Searches of lists that were searched before are enqueued before anybody knows
// that they are as they were: so many queries that estimates are made.
TEST_F(DropinIvf, ListsThatAreNotWhatTheyWere) {
    constexpr int kNeighbours = 10;
    constexpr int kOften = 5; // so that lists are known
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        SCOPED_TRACE(int(metric));
        IvfCase c;
        c.metric = metric;
        c.n = 60000;
        c.d = 40;
        c.nlist = 20;
        c.q = 2000;
        const IvfData data(c);
        GpuIndexIVFFlat index(sharedResources(), data.cpu.get(), data.config());
        index.nprobe = 6;
        const auto searchOften = [&](const std::vector<float>& queries) {
            for (int i = 0; i < kOften; ++i) {
                searchOnDevice(index, queries, kNeighbours);
            }
        };
        // One query over and over; then others, some with more vectors.
        std::vector<float> ones;
        for (int64_t i = 0; i < c.q; ++i) {
            ones.insert(
                    ones.end(),
                    data.queries.begin(),
                    data.queries.begin() + c.d);
        }
        searchOften(ones);
        for (int i = 0; i < kOften; ++i) {
            expectSomeCanonical(index, data, kNeighbours);
        }
        // Lists are empty after many searches, and grow after more.
        index.reset();
        const SearchOutput none =
                searchOnHost(index, data.queries, kNeighbours);
        EXPECT_EQ(
                none.labels,
                std::vector<int64_t>(size_t(c.q) * kNeighbours, -1));
        const int64_t half = c.n / 2;
        index.add_with_ids(half, data.vectors.data(), data.ids.data());
        searchOften(data.queries);
        index.add_with_ids(
                c.n - half,
                data.vectors.data() + half * c.d,
                data.ids.data() + half);
        for (int i = 0; i < kOften; ++i) {
            expectSomeCanonical(index, data, kNeighbours);
        }
        // Other lists, maybe at the same place.
        for (int i = 0; i < 2; ++i) {
            GpuIndexIVFFlat other(
                    sharedResources(), data.cpu.get(), data.config());
            other.nprobe = 6;
            expectSomeCanonical(other, data, kNeighbours);
        }
        if (HasFatalFailure()) {
            return;
        }
    }
}

} // namespace
} // namespace faiss_bits::test
