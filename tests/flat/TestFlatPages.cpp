/// Calls with arrays on the host: pages that overlap, interrupts, and errors
/// in the middle.

#include <cstring>
#include <thread>

#include <faiss/gpu/GpuDistance.h>

#include "faiss_bits/flat/GpuBitsDistance.h"
#include "faiss_bits/select/GpuBitsSelect.h"
#include "tests/flat/PagingHarness.h"

namespace faiss_bits::test {
namespace {

class FlatPages : public GpuTest {};

FlatCase pagedCase() {
    FlatCase c;
    c.n = 300;
    c.d = 64;
    c.q = 50021; // 43 MB with the results
    c.fill = Fill::Integers;
    return c;
}

TEST_F(FlatPages, EveryKindOfHostMemoryAndOfResources) {
    const int k = 50;
    for (const FlatCase& kind : kindsOf(pagedCase())) {
        const FlatData data(kind);
        const auto expected =
                searchOnDevice(*data.makeIndex(), data.queries, k);
        for (size_t pinned : {size_t(0), size_t(1) << 20, size_t(64) << 20}) {
            for (size_t temporary : {size_t(0), size_t(512) << 20}) {
                SizedResources resources(pinned, temporary);
                const auto index = data.makeIndex(&resources);
                for (HostKind host : kHostKinds) {
                    SCOPED_TRACE(
                            ::testing::Message()
                            << kind << " host=" << int(host)
                            << " pinned=" << pinned << " temp=" << temporary);
                    const HostSearch search(host, data.queries, kind.q * k);
                    index->search(
                            kind.q,
                            search.x.data(),
                            k,
                            search.distances.data(),
                            search.labels.data());
                    ASSERT_TRUE(sameOutput(search.output(), expected));
                }
            }
        }
    }
}

/// Queries, distances and labels on either side.
TEST_F(FlatPages, EveryMixOfPlaces) {
    const int k = 50;
    FlatCase c = pagedCase();
    const FlatData data(c);
    SizedResources resources(size_t(64) << 20, size_t(512) << 20);
    const auto index = data.makeIndex(&resources);
    const auto expected = searchOnDevice(*index, data.queries, k);
    for (HostKind kind : {HostKind::Pageable, HostKind::Pinned}) {
        for (int onDevice = 0; onDevice < 8; ++onDevice) {
            const HostSearch host(kind, data.queries, c.q * k);
            const DeviceBuffer<float> x(data.queries);
            const DeviceBuffer<float> distances(c.q * k);
            const DeviceBuffer<int64_t> labels(c.q * k);
            index->search(
                    c.q,
                    onDevice & 1 ? x.data() : host.x.data(),
                    k,
                    onDevice & 2 ? distances.data() : host.distances.data(),
                    onDevice & 4 ? labels.data() : host.labels.data());
            // The queries may be used again.
            std::fill(host.x.data(), host.x.data() + c.q * c.d, 7.f);
            SearchOutput out = host.output();
            if (onDevice & 2) {
                out.distances = distances.download();
            }
            if (onDevice & 4) {
                out.labels = labels.download();
            }
            ASSERT_TRUE(sameOutput(out, expected))
                    << "places " << onDevice << " kind " << int(kind);
        }
    }
}

/// Distances that nobody wants, of so many queries that they take pages.
TEST_F(FlatPages, AssignOnTheDevice) {
    FlatCase c = pagedCase();
    const int k = 400; // 80 MB of distances
    const FlatData data(c);
    const auto index = data.makeIndex();
    const auto expected = searchOnDevice(*index, data.queries, k);
    const DeviceBuffer<float> x(data.queries);
    const DeviceBuffer<int64_t> labels(c.q * k);
    index->assign(c.q, x.data(), labels.data(), k);
    EXPECT_EQ(labels.download(), expected.labels);
}

/// Two calls in a row share the pinned memory.
TEST_F(FlatPages, CallsOneAfterAnother) {
    const int k = 20;
    FlatCase c = pagedCase();
    SizedResources resources(size_t(64) << 20, size_t(512) << 20);
    const FlatData data(c);
    c.seed = 2;
    const FlatData other(c);
    const auto index = data.makeIndex(&resources);
    const auto first = searchOnDevice(*index, data.queries, k);
    const auto second = searchOnDevice(*index, other.queries, k);
    const DeviceBuffer<float> distances(2 * c.q * k);
    const DeviceBuffer<int64_t> labels(2 * c.q * k);
    for (int i = 0; i < 2; ++i) {
        index->search(
                c.q,
                i ? other.queries.data() : data.queries.data(),
                k,
                distances.data() + i * c.q * k,
                labels.data() + i * c.q * k);
    }
    auto a = distances.download();
    auto b = labels.download();
    const SearchOutput last = {
            {a.begin() + c.q * k, a.end()}, {b.begin() + c.q * k, b.end()}};
    a.resize(c.q * k);
    b.resize(c.q * k);
    EXPECT_TRUE(sameOutput({a, b}, first));
    EXPECT_TRUE(sameOutput(last, second));
}

/// Of values that rounding tells apart.
TEST_F(FlatPages, PagesChangeNoBits) {
    FlatCase c;
    c.n = 20000;
    c.d = 64;
    c.q = 5041; // in pages of 1 MiB the last one has few queries
    const int k = 100;
    for (const FlatCase& kind : kindsOf(c)) {
        const FlatData data(kind);
        const auto index = data.makeIndex();
        const auto whole = searchOnDevice(*index, data.queries, k);
        for (size_t bytes : {1, 3 << 20}) {
            index->setMinPagingSize(bytes);
            ASSERT_TRUE(
                    sameOutput(searchOnHost(*index, data.queries, k), whole))
                    << kind << " pages of " << bytes;
        }
    }
}

/// Pages of a column-major matrix of queries are cut out of it.
TEST_F(FlatPages, ColumnsOfQueries) {
    FlatCase c = pagedCase();
    c.d = 40;
    const int k = 30;
    const FlatData data(c);
    const auto expected = searchOnDevice(*data.makeIndex(), data.queries, k);
    std::vector<float> columns(data.queries.size());
    for (int64_t i = 0; i < c.q; ++i) {
        for (int j = 0; j < c.d; ++j) {
            columns[j * c.q + i] = data.queries[i * c.d + j];
        }
    }
    const DeviceBuffer<float> onDevice(columns);
    for (size_t pinned : {size_t(0), size_t(64) << 20}) {
        SizedResources resources(pinned, size_t(512) << 20);
        for (const float* queries : {columns.data(), onDevice.data()}) {
            const HostSearch search(HostKind::Pageable, {}, c.q * k);
            faiss::gpu::GpuDistanceParams args;
            args.k = k;
            args.dims = c.d;
            args.vectors = data.vectors.data();
            args.numVectors = c.n;
            args.queries = queries;
            args.queriesRowMajor = false;
            args.numQueries = c.q;
            args.outDistances = search.distances.data();
            args.outIndices = search.labels.data();
            gpu::bfKnnBits(&resources, args);
            ASSERT_TRUE(sameOutput(search.output(), expected)) << pinned;
        }
    }
}

/// Asked at every page; the index stays usable.
TEST_F(FlatPages, InterruptedBetweenPages) {
    FlatCase c = pagedCase();
    const int k = 50;
    const FlatData data(c);
    SizedResources resources(size_t(64) << 20, size_t(512) << 20);
    const auto index = data.makeIndex(&resources);
    index->setMinPagingSize(1); // 43 pages
    {
        InterruptScope never(1 << 30);
        const auto out = searchOnHost(*index, data.queries, k);
        EXPECT_GE(never.asked(), 40);
        data.expectExact(out, k);
    }
    for (int times : {1, 2, 7}) {
        InterruptScope scope(times);
        EXPECT_TRUE(
                isInterrupted([&] { searchOnHost(*index, data.queries, k); }));
        EXPECT_EQ(scope.asked(), times);
        EXPECT_EQ(
                cudaStreamQuery(resources.getResources()->getDefaultStream(0)),
                cudaSuccess);
    }
    data.expectExact(searchOnHost(*index, data.queries, k), k);
}

/// Long work ends within a second of the interrupt: a search of an index, one
/// without an index, and a selection.
TEST_F(FlatPages, InterruptedWithinASecond) {
    const int64_t n = int64_t(1) << 20;
    const int d = 128;
    // 0.2 s of an H200 at the limit of its arithmetic, and others take longer.
    const int64_t q = 600000;
    constexpr double kAfter = 0.1; // seconds
    const int k = 10;
    if (!hasFreeMemory(size_t(4) << 30)) {
        GTEST_SKIP() << "needs 5 GiB of device memory";
    }
    const auto vectors = makeVectors(n, d, 1);
    std::vector<float> queries(q * d, 0.25f);
    HostSearch search(HostKind::Pageable, {}, q * k);
    SizedResources resources(size_t(256) << 20, size_t(1) << 30);
    GpuIndexBitsFlatL2 index(&resources, d);
    index.add(n, vectors.data());
    const auto run = [&] {
        index.search(
                q,
                queries.data(),
                k,
                search.distances.data(),
                search.labels.data());
    };
    {
        InterruptScope scope(1 << 30, kAfter);
        EXPECT_TRUE(isInterrupted(run));
        EXPECT_LT(scope.secondsSince(), 1.0);
    }
    faiss::gpu::GpuDistanceParams args;
    args.k = k;
    args.dims = d;
    args.vectors = vectors.data();
    args.numVectors = n;
    args.queries = queries.data();
    args.numQueries = q;
    args.outDistances = search.distances.data();
    args.outIndices = search.labels.data();
    {
        InterruptScope scope(1 << 30, kAfter);
        EXPECT_TRUE(isInterrupted([&] { gpu::bfKnnBits(&resources, args); }));
        EXPECT_LT(scope.secondsSince(), 1.0);
    }
    gpu::GpuSelectParams select;
    select.rows = 600; // 300 MB of keys, 20 pages
    select.cols = n / 8;
    select.k = k;
    select.keys = vectors.data();
    select.outKeys = search.distances.data();
    select.outIds = search.labels.data();
    {
        InterruptScope scope(5);
        EXPECT_TRUE(isInterrupted([&] { gpu::selectK(&resources, select); }));
        EXPECT_EQ(scope.asked(), 5);
    }
}

/// Resources with pinned memory whose allocations can be made to fail.
struct FailingPinned : FailingResources {
    explicit FailingPinned(size_t pinnedBytes) {
        setPinnedMemory(pinnedBytes);
    }
};

/// Runs `call` with its first allocation failing, then with the second, and so
/// on, behind work that keeps the stream busy. What the caller's memory holds
/// when the exception arrives must be what it holds from then on.
template <class Call>
void expectNoCopyAfterAnError(
        FailingResources& resources,
        HostSearch& search,
        int64_t places,
        Call call) {
    const cudaStream_t stream = resources.getDefaultStream(0);
    int begun = 0;
    for (int i = 0; i < 12; ++i) {
        std::fill(
                search.distances.data(),
                search.distances.data() + places,
                -123.f);
        ASSERT_EQ(
                cudaLaunchHostFunc(
                        stream,
                        [](void*) {
                            std::this_thread::sleep_for(
                                    std::chrono::milliseconds(200));
                        },
                        nullptr),
                cudaSuccess);
        resources.failAfter(i);
        bool failed = false;
        try {
            call();
        } catch (const faiss::FaissException&) {
            failed = true;
        }
        const auto then = search.distances.values();
        resources.failNever();
        ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
        ASSERT_EQ(search.distances.values(), then)
                << "results arrived after the exception, allocation " << i;
        begun += failed && then[0] != -123.f;
        if (!failed) {
            break;
        }
    }
    EXPECT_GT(begun, 0) << "no call failed after its first page";
}

TEST_F(FlatPages, NoCopyIsLeftBehindByAnError) {
    FlatCase c;
    c.n = 2000;
    c.d = 64;
    c.q = 3000;
    c.fill = Fill::Integers;
    const int k = 100;
    const FlatData data(c);
    for (HostKind kind : {HostKind::Pageable, HostKind::Pinned}) {
        const auto resources =
                std::make_shared<FailingPinned>(size_t(64) << 20);
        GpuIndexBitsFlatL2 index(resources, c.d);
        index.add(c.n, data.vectors.data());
        index.setMinPagingSize(1);
        HostSearch search(kind, data.queries, c.q * k);
        // Kernels are loaded by the first call.
        const auto run = [&] {
            index.search(
                    c.q,
                    search.x.data(),
                    k,
                    search.distances.data(),
                    search.labels.data());
        };
        run();
        expectNoCopyAfterAnError(*resources, search, c.q * k, run);
        run();
        data.expectExact(search.output(), k);
    }
}

} // namespace
} // namespace faiss_bits::test
