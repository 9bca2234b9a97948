/// GpuIndexBitsFlat when memory is short, and large arrays on the host.

#include "tests/flat/IndexHarness.h"

namespace faiss_bits::test {
namespace {

class FlatMemory : public GpuTest {};

/// An index whose allocations can be made to fail.
struct FailingIndex {
    explicit FailingIndex(const FlatCase& c)
            : data(c), resources(std::make_shared<FailingResources>()) {
        index = std::make_unique<GpuIndexBitsFlat>(
                resources, c.d, c.metric, configOf(c.storage));
        index->add(c.n, data.vectors.data());
    }

    void expectIntact() const {
        ASSERT_EQ(index->ntotal, data.c.n);
        ASSERT_EQ(index->d, data.c.d);
        ASSERT_EQ(index->metric_type, data.c.metric);
        data.expectExact(searchOnHost(*index, data.queries, 10), 10);
        std::vector<float> last(data.c.d);
        index->reconstruct(data.c.n - 1, last.data());
        EXPECT_EQ(
                last,
                std::vector<float>(
                        data.vectors.end() - data.c.d, data.vectors.end()));
    }

    FlatData data;
    std::shared_ptr<FailingResources> resources;
    std::unique_ptr<GpuIndexBitsFlat> index;
};

/// Runs `call` on a fresh index with its first allocation failing, then on
/// another with the second, and so on, until it gets through. After a failure
/// the index must be what it was. Returns the one that got through.
template <class Call>
std::unique_ptr<FailingIndex> failEveryAllocation(
        const FlatCase& c,
        Call call) {
    for (int i = 0; i < 100; ++i) {
        auto failing = std::make_unique<FailingIndex>(c);
        failing->resources->failAfter(i);
        bool failed = false;
        try {
            call(*failing->index);
        } catch (const faiss::FaissException& error) {
            failed = true;
            EXPECT_NE(
                    std::string(error.what()).find("says the test"),
                    std::string::npos)
                    << error.what();
        }
        failing->resources->failNever();
        if (!failed) {
            EXPECT_GT(i, 0) << c << ": the call allocates nothing";
            return failing;
        }
        failing->expectIntact();
    }
    ADD_FAILURE() << c << ": the call does not get through";
    return std::make_unique<FailingIndex>(c);
}

FlatCase smallCase(int64_t q) {
    FlatCase c;
    c.n = 600;
    c.d = 9;
    c.q = q;
    c.fill = Fill::Integers;
    return c;
}

TEST_F(FlatMemory, SmallFailedSearch) {
    for (int64_t q : {1, 40}) {
        for (const FlatCase& kind : kindsOf(smallCase(q))) {
            const FlatData data(kind);
            const auto index = failEveryAllocation(kind, [&](auto& index) {
                searchOnHost(index, data.queries, 20);
            });
            index->expectIntact();
        }
    }
}

TEST_F(FlatMemory, SmallFailedAdd) {
    for (const FlatCase& kind : kindsOf(smallCase(40))) {
        const auto more = makeVectors(700, kind.d, 5, Fill::Integers);
        const auto grown = failEveryAllocation(
                kind, [&](auto& index) { index.add(700, more.data()); });
        // The addition that got through is there, once.
        FlatCase both = kind;
        both.n += 700;
        FlatData data(both);
        data.vectors = grown->data.vectors;
        data.vectors.insert(data.vectors.end(), more.begin(), more.end());
        ASSERT_EQ(grown->index->ntotal, both.n);
        data.expectExact(searchOnHost(*grown->index, data.queries, 10), 10);
    }
}

TEST_F(FlatMemory, SmallFailedCopyFrom) {
    for (const FlatCase& kind : kindsOf(smallCase(40))) {
        FlatCase other = kind;
        other.d = 5;
        other.metric = faiss::METRIC_INNER_PRODUCT;
        other.seed = 3;
        const FlatData data(other);
        faiss::IndexFlat cpu(other.d, other.metric);
        cpu.add(other.n, data.vectors.data());
        const auto replaced = failEveryAllocation(
                kind, [&](auto& index) { index.copyFrom(&cpu); });
        data.expectExact(searchOnHost(*replaced->index, data.queries, 10), 10);
    }
}

TEST_F(FlatMemory, SmallFailedReserve) {
    for (const FlatCase& kind : kindsOf(smallCase(40))) {
        const auto index = failEveryAllocation(
                kind, [](auto& index) { index.reserve(5000); });
        index->expectIntact();
    }
}

TEST_F(FlatMemory, SmallFailedConstruction) {
    const FlatCase c = smallCase(1);
    faiss::IndexFlatL2 cpu(c.d);
    cpu.add(c.n, FlatData(c).vectors.data());
    const auto resources = std::make_shared<FailingResources>();
    resources->initializeForDevice(0);
    resources->failAfter(0);
    EXPECT_THROW(GpuIndexBitsFlatL2(resources, &cpu), faiss::FaissException);
    resources->failAfter(1);
    EXPECT_THROW(GpuIndexBitsFlatL2(resources, &cpu), faiss::FaissException);
    resources->failNever();
    const GpuIndexBitsFlatL2 index(resources, &cpu);
    EXPECT_EQ(index.ntotal, c.n);
}

/// No more memory than the GPU has.
TEST_F(FlatMemory, MoreThanTheDeviceHolds) {
    FlatCase c = smallCase(10);
    c.d = 4096;
    c.n = 100;
    for (const FlatCase& kind : kindsOf(c)) {
        const FlatData data(kind);
        const auto index = data.makeIndex();
        // 2^31 - 1 vectors of 8 or 16 KiB.
        EXPECT_THROW(
                index->reserve((idx_t(1) << 31) - 1), faiss::FaissException);
        ASSERT_EQ(index->ntotal, c.n);
        data.expectExact(searchOnHost(*index, data.queries, 10), 10);
    }
}

/// With next to no temporary memory, searches go through tiles of the
/// distance matrix, also along the vectors.
TEST_F(FlatMemory, LittleTemporaryMemory) {
    for (size_t bytes : {size_t(0), size_t(1) << 16, size_t(40) << 20}) {
        faiss::gpu::StandardGpuResources resources;
        resources.setPinnedMemory(0);
        resources.setTempMemory(bytes);
        FlatCase c;
        c.n = 1200001;
        c.d = 4;
        c.fill = Fill::Integers;
        for (int64_t q : {1, 20}) {
            c.q = q;
            for (auto metric :
                 {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
                c.metric = metric;
                const FlatData data(c);
                const auto index = data.makeIndex(&resources);
                for (int k : {10, 2048, 2049, 30000}) {
                    data.expectExact(searchOnHost(*index, data.queries, k), k);
                }
            }
        }
        c.n = 20000;
        c.q = 1000;
        for (DataType storage : {DataType::Float16, DataType::BFloat16}) {
            c.storage = storage;
            const FlatData data(c);
            const auto index = data.makeIndex(&resources);
            data.expectExact(searchOnHost(*index, data.queries, 100), 100);
        }
    }
}

/// Host arrays in pages: the same results, whatever the page.
TEST_F(FlatMemory, PagedHostQueries) {
    FlatCase c;
    c.n = 2000;
    c.d = 64;
    c.q = 5003;
    c.fill = Fill::Integers;
    const int k = 100;
    for (const FlatCase& kind : kindsOf(c)) {
        const FlatData data(kind);
        const auto index = data.makeIndex();
        const auto expected = searchOnDevice(*index, data.queries, k);
        for (size_t pageBytes : {0, 1, 1 << 20, 3 << 20}) {
            index->setMinPagingSize(pageBytes);
            ASSERT_TRUE(
                    sameOutput(searchOnHost(*index, data.queries, k), expected))
                    << kind << " page " << pageBytes;
            std::vector<int64_t> labels(c.q * k, -123);
            index->assign(c.q, data.queries.data(), labels.data(), k);
            ASSERT_EQ(labels, expected.labels);
        }
        // Only the results are on the host.
        const DeviceBuffer<float> x(data.queries);
        SearchOutput out;
        out.distances.resize(c.q * k);
        out.labels.resize(c.q * k);
        index->search(
                c.q, x.data(), k, out.distances.data(), out.labels.data());
        ASSERT_TRUE(sameOutput(out, expected)) << kind;
    }
}

/// Results of which a page holds a few rows, and less than one.
TEST_F(FlatMemory, PagedResultsOfALargeK) {
    FlatCase c;
    c.n = 150001;
    c.d = 4;
    c.fill = Fill::Integers;
    for (int64_t q : {3, 20}) {
        c.q = q;
        for (const FlatCase& kind : kindsOf(c)) {
            const FlatData data(kind);
            const auto index = data.makeIndex();
            for (int k : {3000, 20000, int(c.n)}) {
                const auto expected = searchOnDevice(*index, data.queries, k);
                data.expectExact(expected, k);
                for (size_t pageBytes : {1, 3 << 20}) {
                    index->setMinPagingSize(pageBytes);
                    ASSERT_TRUE(sameOutput(
                            searchOnHost(*index, data.queries, k), expected))
                            << kind << " k=" << k << " page " << pageBytes;
                }
            }
        }
    }
}

/// One query is more than a page.
TEST_F(FlatMemory, QueriesLargerThanAPage) {
    FlatCase c;
    c.n = 30;
    c.d = 300000;
    c.q = 3;
    for (const FlatCase& kind : kindsOf(c)) {
        const FlatData data(kind);
        const auto index = data.makeIndex();
        index->setMinPagingSize(1);
        data.expectNearest(searchOnHost(*index, data.queries, 5), 5);
    }
}

/// Gathers in pages.
TEST_F(FlatMemory, PagedReconstruction) {
    FlatCase c;
    c.n = 4000;
    c.d = 128;
    for (const FlatCase& kind : kindsOf(c)) {
        const FlatData data(kind);
        auto stored = data.vectors;
        roundAllTo(data.type(), stored);
        const auto index = data.makeIndex();
        index->setMinPagingSize(1); // pages of 1 MiB: 2048 vectors
        std::vector<float> all(c.n * c.d);
        index->reconstruct_n(0, c.n, all.data());
        ASSERT_EQ(all, stored) << kind;
        std::vector<int64_t> keys(c.n);
        for (int64_t i = 0; i < c.n; ++i) {
            keys[i] = c.n - 1 - i;
        }
        std::vector<float> reversed(c.n * c.d);
        index->reconstruct_batch(c.n, keys.data(), reversed.data());
        for (int64_t i = 0; i < c.n; ++i) {
            for (int j = 0; j < c.d; ++j) {
                ASSERT_EQ(reversed[i * c.d + j], stored[keys[i] * c.d + j]);
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
