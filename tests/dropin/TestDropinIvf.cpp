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

// Lists grow, and are emptied; nothing is remembered of them.
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

} // namespace
} // namespace faiss_bits::test
