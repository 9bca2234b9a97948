/// GpuIndexBitsIVFFlat::range_search against the oracle.

#include <limits>

#include <faiss/impl/IDSelector.h>

#include "tests/ivf/RangeHarness.h"

namespace faiss_bits::test {
namespace {

class IvfRangeSearch : public GpuTest {};

IvfCase someCase() {
    IvfCase c;
    c.n = 1500;
    c.d = 12;
    c.nlist = 11;
    c.q = 6;
    return c;
}

TEST_F(IvfRangeSearch, SmallEveryKindOfIndex) {
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        for (auto indices :
             {faiss::gpu::INDICES_64_BIT,
              faiss::gpu::INDICES_32_BIT,
              faiss::gpu::INDICES_CPU,
              faiss::gpu::INDICES_IVF}) {
            for (int64_t q : {1, 5, 150}) {
                IvfCase c = someCase();
                c.metric = metric;
                c.indices = indices;
                c.q = q;
                c.interleaved = q != 5;
                c.fill = q == 1 ? Fill::Integers : Fill::Uniform;
                const IvfData data(c);
                const auto index = data.makeIndex();
                for (double part : {0.0, 0.02, 0.5}) {
                    expectRange(data, *index, someRadius(data, part), 4);
                }
                EXPECT_GT(
                        expectRange(data, *index, someRadius(data, 0.5), 11),
                        0u);
            }
        }
    }
}

TEST_F(IvfRangeSearch, SmallAllAndNone) {
    const float inf = std::numeric_limits<float>::infinity();
    for (int64_t q : {2, 100}) {
        IvfCase c = someCase();
        c.q = q;
        const IvfData data(c);
        const auto index = data.makeIndex();
        EXPECT_EQ(expectRange(data, *index, inf, c.nlist), size_t(c.q * c.n));
        EXPECT_EQ(expectRange(data, *index, 0, c.nlist), 0u);
        EXPECT_EQ(expectRange(data, *index, -inf, c.nlist), 0u);
    }
    IvfCase none = someCase();
    none.n = 0;
    const IvfData empty(none);
    EXPECT_EQ(expectRange(empty, *empty.makeIndex(), inf, 5), 0u);
}

TEST_F(IvfRangeSearch, SmallFiltered) {
    for (auto indices : {faiss::gpu::INDICES_64_BIT, faiss::gpu::INDICES_CPU}) {
        for (int64_t q : {3, 150}) {
            IvfCase c = someCase();
            c.q = q;
            c.indices = indices;
            IvfData data(c);
            const auto index = data.makeIndex();
            faiss::IDSelectorBatch batch(400, data.ids.data());
            data.selects = [&](int64_t id) { return batch.is_member(id); };
            for (double part : {0.1, 0.9}) {
                expectRange(data, *index, someRadius(data, part), 6, &batch);
            }
        }
    }
}

/// Few rows are cut into parts of 1,024 columns and more, one for each of 512
/// blocks.
TEST_F(IvfRangeSearch, PartsOfRows) {
    const float inf = std::numeric_limits<float>::infinity();
    for (int64_t n : {1023, 1024, 1025, 2048, 4097}) {
        for (int64_t q : {1, 3}) {
            IvfCase c = someCase();
            c.n = n;
            c.nlist = 1;
            c.q = q;
            const IvfData data(c);
            const auto index = data.makeIndex();
            EXPECT_EQ(expectRange(data, *index, inf, 1), size_t(q * n));
            expectRange(data, *index, someRadius(data, 0.01), 1);
            expectRange(data, *index, someRadius(data, 0.5), 1);
        }
    }
    for (int64_t q : {1, 2, 60, 511, 512, 513}) {
        IvfCase c = someCase();
        c.n = 20000;
        c.nlist = 40;
        c.q = q;
        const IvfData data(c);
        const auto index = data.makeIndex();
        for (double part : {0.001, 0.3}) {
            EXPECT_GT(
                    expectRange(data, *index, someRadius(data, part), 20), 0u);
        }
    }
}

TEST_F(IvfRangeSearch, ManyResultsInParts) {
    // More than the scratch holds at a time, and a copy of what is selected.
    IvfCase c;
    c.n = 50000;
    c.d = 32;
    c.nlist = 20;
    c.q = 1200;
    const IvfData data(c);
    const auto index = data.makeIndex();
    const float radius = someRadius(data, 0.2);
    const int nprobe = 15;
    faiss::SearchParametersIVF params;
    params.nprobe = nprobe;
    faiss::RangeSearchResult all(c.q);
    index->range_search(c.q, data.queries.data(), radius, &all, &params);
    faiss::IDSelectorRange range(0, int64_t(1) << 47);
    params.sel = &range;
    faiss::RangeSearchResult some(c.q);
    index->range_search(c.q, data.queries.data(), radius, &some, &params);
    size_t at = 0;
    for (int64_t i = 0; i < c.q; ++i) {
        if (i % 100 == 0) {
            const auto want = inRange(data, i, nprobe, radius);
            ASSERT_EQ(all.lims[i + 1] - all.lims[i], want.size());
            for (size_t j = 0; j < want.size(); ++j) {
                ASSERT_EQ(all.labels[all.lims[i] + j], want[j].id);
            }
        }
        ASSERT_EQ(some.lims[i], at);
        for (size_t j = all.lims[i]; j < all.lims[i + 1]; ++j) {
            if (range.is_member(all.labels[j])) {
                ASSERT_EQ(some.labels[at], all.labels[j]);
                ASSERT_EQ(some.distances[at], all.distances[j]);
                ++at;
            }
        }
    }
    EXPECT_EQ(at, some.lims[c.q]);
    EXPECT_GT(at, 1000000u);
}

TEST_F(IvfRangeSearch, SmallOnTheDeviceAndRefused) {
    const IvfData data(someCase());
    const auto index = data.makeIndex();
    index->nprobe = 3;
    const float radius = someRadius(data, 0.3);
    faiss::RangeSearchResult onHost(data.c.q);
    index->range_search(data.c.q, data.queries.data(), radius, &onHost);
    const DeviceBuffer<float> x(data.queries);
    faiss::RangeSearchResult onDevice(data.c.q);
    index->range_search(data.c.q, x.data(), radius, &onDevice);
    ASSERT_EQ(onHost.lims[data.c.q], onDevice.lims[data.c.q]);
    for (size_t i = 0; i < onHost.lims[data.c.q]; ++i) {
        EXPECT_EQ(onHost.labels[i], onDevice.labels[i]);
    }
    faiss::RangeSearchResult none(0);
    index->range_search(0, nullptr, radius, &none);
    EXPECT_EQ(none.lims[0], 0u);

    const auto search = [&](int64_t n,
                            const float* queries,
                            faiss::RangeSearchResult* result) {
        index->range_search(n, queries, radius, result);
    };
    const float* queries = data.queries.data();
    faiss::RangeSearchResult other(3);
    EXPECT_TRUE(faissThrowsNaming([&] { search(6, queries, &other); }, "nq"));
    EXPECT_TRUE(faissThrowsNaming([&] { search(3, nullptr, &other); }, "x"));
    EXPECT_TRUE(
            faissThrowsNaming([&] { search(3, queries, nullptr); }, "result"));
    search(3, queries, &other);
    EXPECT_TRUE(
            faissThrowsNaming([&] { search(3, queries, &other); }, "result"));
}

} // namespace
} // namespace faiss_bits::test
