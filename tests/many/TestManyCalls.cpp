/// Filters, other calls and bad arguments of shards and replicas.

#include <cmath>

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/IDSelector.h>

#include "faiss_bits/flat/DeviceSelector.h"
#include "tests/common/CapturedGraph.h"
#include "tests/many/ManyHarness.h"

namespace faiss_bits::test {
namespace {

TYPED_TEST_SUITE(ManyTest, ManyKinds);

constexpr int kD = 6;

struct Thirds : faiss::IDSelector {
    bool is_member(idx_t id) const override {
        return id % 3 == 1;
    }
};

TYPED_TEST(ManyTest, SmallFilters) {
    const std::vector<idx_t> ids = {0, 3, 64, 65, 99, 150, 151, 299, 5000};
    const std::vector<uint8_t> bitmap = {0x5A, 0xFF, 0, 1, 2, 3, 0x80};
    const faiss::IDSelectorRange range(40, 220);
    const faiss::IDSelectorBatch batch(ids.size(), ids.data());
    const faiss::IDSelectorBitmap bits(bitmap.size(), bitmap.data());
    const faiss::IDSelectorNot none(&range);
    const Thirds thirds;
    for (const auto& config : waysOf()) {
        ManyCase<TypeParam> c(
                placesOf(3),
                kD,
                faiss::METRIC_L2,
                makeVectors(200, kD, 1),
                config);
        c.add(makeVectors(100, kD, 2));
        const gpu::DeviceSelector prepared(&thirds, 300);
        for (const faiss::IDSelector* selector :
             std::initializer_list<const faiss::IDSelector*>{
                     &range, &batch, &bits, &none, &thirds, &prepared}) {
            faiss::SearchParameters params;
            params.sel = const_cast<faiss::IDSelector*>(selector);
            for (int64_t q : {1, 30}) {
                c.expectSame(makeVectors(q, kD, 3), 20, &params);
                c.expectSame(makeVectors(q, kD, 3), 200, &params);
            }
        }
    }
}

TYPED_TEST(ManyTest, SmallAssign) {
    ManyCase<TypeParam> c(
            placesOf(3), kD, faiss::METRIC_L2, makeVectors(100, kD, 1));
    const auto queries = makeVectors(20, kD, 2);
    for (idx_t k : {1, 5}) {
        std::vector<idx_t> got(20 * k), want(20 * k);
        c.many.assign(20, queries.data(), got.data(), k);
        c.one.assign(20, queries.data(), want.data(), k);
        EXPECT_EQ(got, want);
    }
}

std::unique_ptr<faiss::RangeSearchResult> rangeOf(
        const faiss::Index& index,
        const std::vector<float>& queries,
        float radius) {
    const idx_t n = idx_t(queries.size()) / index.d;
    auto result = std::make_unique<faiss::RangeSearchResult>(n);
    index.range_search(n, queries.data(), radius, result.get());
    return result;
}

TYPED_TEST(ManyTest, SmallRangeSearch) {
    for (int additions : {1, 3}) {
        ManyCase<TypeParam> c(
                placesOf(3), kD, faiss::METRIC_L2, makeVectors(100, kD, 1));
        for (int i = 1; i < additions; ++i) {
            c.add(makeVectors(30, kD, 10 + i));
        }
        const auto queries = makeVectors(20, kD, 2);
        const auto want = rangeOf(c.one, queries, 2.5f);
        const auto got = rangeOf(c.many, queries, 2.5f);
        ASSERT_GT(want->lims[20], 20u);
        ASSERT_EQ(
                std::vector<size_t>(got->lims, got->lims + 21),
                std::vector<size_t>(want->lims, want->lims + 21));
        for (size_t i = 0; i < want->lims[20]; ++i) {
            ASSERT_EQ(got->labels[i], want->labels[i]) << i;
            ASSERT_TRUE(sameBits(got->distances[i], want->distances[i])) << i;
        }
    }
}

TYPED_TEST(ManyTest, SmallMixedPlacesOfArrays) {
    for (const auto& config : waysOf()) {
        ManyCase<TypeParam> c(
                placesOf(3),
                kD,
                faiss::METRIC_L2,
                makeVectors(200, kD, 1),
                config);
        const auto queries = makeVectors(25, kD, 2);
        const auto want = searchOnHost(c.one, queries, 7);
        const DeviceBuffer<float> x(queries);
        const DeviceBuffer<float> distances(25 * 7);
        const DeviceBuffer<idx_t> labels(25 * 7);
        for (int onDevice = 0; onDevice < 8; ++onDevice) {
            SearchOutput out;
            out.distances.assign(25 * 7, -1.f);
            out.labels.assign(25 * 7, -5);
            c.many.search(
                    25,
                    onDevice & 1 ? x.data() : queries.data(),
                    7,
                    onDevice & 2 ? distances.data() : out.distances.data(),
                    onDevice & 4 ? labels.data() : out.labels.data());
            if (onDevice & 2) {
                out.distances = distances.download();
            }
            if (onDevice & 4) {
                out.labels = labels.download();
            }
            EXPECT_TRUE(sameOutput(out, want)) << onDevice;
        }
    }
}

TYPED_TEST(ManyTest, SmallResourcesSharedByParts) {
    DeviceList places;
    for (int i = 0; i < 3; ++i) {
        places.add(partResources(0), 0);
    }
    for (const auto& config : waysOf()) {
        const ManyCase<TypeParam> c(
                places, kD, faiss::METRIC_L2, makeVectors(200, kD, 1), config);
        c.expectSame(makeVectors(30, kD, 2), 80);
    }
}

/// Three places, of which the first works on a stream of the test's.
struct PlacesOnStream {
    PlacesOnStream() {
        first.setDefaultStream(0, stream);
        list.add(&first, 0);
        list.add(partResources(1), 0);
        list.add(partResources(2), 0);
    }

    const TestStream stream; // outlives the memory that was used on it
    OwnResources first;
    DeviceList list;
};

TYPED_TEST(ManyTest, SmallOnOtherStreams) {
    const PlacesOnStream places;
    const TestStream& stream = places.stream;
    ManyCase<TypeParam> c(
            places.list, kD, faiss::METRIC_L2, makeVectors(300, kD, 1));
    const auto queries = makeVectors(40, kD, 2);
    const auto want = searchOnHost(c.one, queries, 9);
    const DeviceBuffer<float> x(queries);
    const DeviceBuffer<float> later(queries.size());
    const DeviceBuffer<float> distances(40 * 9);
    const DeviceBuffer<idx_t> labels(40 * 9);
    // The queries arrive on the stream, and leave it.
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            later.data(),
            x.data(),
            queries.size() * sizeof(float),
            cudaMemcpyDeviceToDevice,
            stream));
    c.many.search(40, later.data(), 9, distances.data(), labels.data());
    BITS_CUDA_CHECK(cudaMemsetAsync(
            later.data(), 0xFF, queries.size() * sizeof(float), stream));
    EXPECT_TRUE(sameOutput({distances.download(), labels.download()}, want));
}

TYPED_TEST(ManyTest, SmallCapturesAreRefused) {
    const PlacesOnStream places;
    const TestStream& stream = places.stream;
    ManyCase<TypeParam> c(
            places.list, kD, faiss::METRIC_L2, makeVectors(30, kD, 1));
    const DeviceBuffer<float> x(makeVectors(2, kD, 2));
    const DeviceBuffer<float> distances(4);
    const DeviceBuffer<idx_t> labels(4);
    const auto expectRefused = [](const auto& call) {
        EXPECT_TRUE(faissThrowsNaming(call, "captured"));
    };
    const CapturedGraph graph(stream, [&] {
        expectRefused([&] {
            c.many.search(2, x.data(), 2, distances.data(), labels.data());
        });
        faiss::RangeSearchResult range(2);
        expectRefused([&] { c.many.range_search(2, x.data(), 1, &range); });
        expectRefused([&] { c.many.add(2, x.data()); });
        expectRefused([&] { c.many.reset(); });
    });
    c.expectSame(makeVectors(2, kD, 3), 5); // nothing has changed
}

TYPED_TEST(ManyTest, SmallBadArguments) {
    ManyCase<TypeParam> c(
            placesOf(2), kD, faiss::METRIC_L2, makeVectors(30, kD, 1));
    auto& index = c.many;
    std::vector<float> x(2 * kD), distances(20), vectors(30 * kD);
    std::vector<idx_t> labels(20);
    const auto search =
            [&](idx_t n, const float* q, idx_t k, float* d, idx_t* i) {
                return [&, n, q, k, d, i] { index.search(n, q, k, d, i); };
            };
    float* const q = x.data();
    float* const d = distances.data();
    idx_t* const i = labels.data();
    EXPECT_TRUE(faissThrowsNaming(search(-1, q, 2, d, i), "n", "-1"));
    EXPECT_TRUE(faissThrowsNaming(search(2, q, 0, d, i), "k", "0"));
    EXPECT_TRUE(faissThrowsNaming(
            search(2, q, idx_t(1) << 31, d, i), "k", "2147483648"));
    EXPECT_TRUE(faissThrowsNaming(search(2, nullptr, 2, d, i), "x"));
    EXPECT_TRUE(faissThrowsNaming(search(2, q, 2, nullptr, i), "distances"));
    EXPECT_TRUE(faissThrowsNaming(search(2, q, 2, d, nullptr), "labels"));
    index.search(0, nullptr, 2, nullptr, nullptr);

    EXPECT_TRUE(faissThrowsNaming([&] { index.add(-1, q); }, "n", "-1"));
    EXPECT_TRUE(faissThrowsNaming([&] { index.add(1, nullptr); }, "x"));
    EXPECT_TRUE(faissThrowsNaming([&] { index.add_with_ids(1, q, i); }, "ids"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index.reconstruct(30, vectors.data()); }, "key", "30"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index.reconstruct_n(20, 11, vectors.data()); }, "n", "11"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index.reconstruct_n(0, 1, nullptr); }, "out"));
    EXPECT_TRUE(faissThrowsNaming([&] { index.copyTo(nullptr); }, "index"));
    EXPECT_ANY_THROW(index.at(2));
    EXPECT_ANY_THROW(index.at(-1));
    faiss::RangeSearchResult range(3);
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index.range_search(2, q, 1, &range); }, "result->nq"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index.range_search(2, q, 1, nullptr); }, "result"));
    faiss::RangeSearchResult two(2);
    const TypeParam empty(placesOf(2), kD, faiss::METRIC_L2);
    EXPECT_TRUE(faissThrowsNaming(
            [&] { empty.range_search(2, q, std::nanf(""), &two); }, "radius"));
    index.range_search(2, q, 1, &two);
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index.range_search(2, q, 1, &two); }, "result"));
    const gpu::SearchParametersBitsFlat others(partResources(1));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index.search(2, q, 2, d, i, &others); }, "params"));
    EXPECT_EQ(index.ntotal, 30);
    c.expectSame(makeVectors(3, kD, 4), 5);

    EXPECT_TRUE(faissThrowsNaming(
            [&] { TypeParam(DeviceList(), kD, faiss::METRIC_L2); }, "devices"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { TypeParam(placesOf(1), 0, faiss::METRIC_L2); }, "dims", "0"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { TypeParam(placesOf(1), 2, faiss::MetricType(18)); },
            "metric",
            "18"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] {
                TypeParam(
                        placesOf(1),
                        static_cast<const faiss::IndexFlat*>(nullptr));
            },
            "index"));
    GpuIndexBitsManyConfig config;
    config.leastPiece = 0;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { TypeParam(placesOf(1), 2, faiss::METRIC_L2, config); },
            "leastPiece",
            "0"));
    config = GpuIndexBitsManyConfig();
    config.useFloat16 = config.useBFloat16 = true;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { TypeParam(placesOf(1), 2, faiss::METRIC_L2, config); },
            "useBFloat16"));
    DeviceList places;
    EXPECT_TRUE(faissThrowsNaming([&] { places.add(nullptr, 0); }, "provider"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { places.add(partResources(0), 99); }, "device", "99"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] {
                DeviceList({partResources(0)}, {0, 0});
            },
            "devices"));
    for (int part = 0; part < 65; ++part) {
        places.add(partResources(0), 0);
    }
    EXPECT_TRUE(faissThrowsNaming(
            [&] { TypeParam(places, 2, faiss::METRIC_L2); }, "devices", "65"));
}

} // namespace
} // namespace faiss_bits::test
