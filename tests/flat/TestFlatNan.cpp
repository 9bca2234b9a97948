/// Distances that are NaN are never returned, as in FAISS: GpuIndexBitsFlat,
/// bfKnnBits, and FAISS's IVF, which rests on it.

#include <cmath>
#include <limits>

#include <faiss/gpu/GpuDistance.h>
#include <faiss/gpu/GpuIndexIVFFlat.h>

#include "faiss_bits/flat/GpuBitsDistance.h"
#include "tests/flat/IndexHarness.h"

namespace faiss_bits::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class FlatNan : public GpuTest {};

/// Few and many queries take different paths.
const std::vector<int64_t> kBatches = {1, 2, 16, 17, 60};

/// Every `step`th vector becomes NaN, of either sign.
void spoil(FlatData& data, int64_t step) {
    for (int64_t i = 0; i < data.c.n; i += step) {
        data.vectors[i * data.c.d + i % data.c.d] = i % 2 ? kNan : -kNan;
    }
}

/// By an index, and without one.
SearchOutput bfKnnOnHost(const FlatData& data, int k) {
    const int64_t places = data.c.q * k;
    SearchOutput out;
    out.distances.assign(places, -123.f);
    out.labels.assign(places, -123);
    auto vectors = packAs(data.type(), data.vectors);
    auto queries = packAs(data.type(), data.queries);
    faiss::gpu::GpuDistanceParams args;
    args.metric = data.c.metric;
    args.k = k;
    args.dims = data.c.d;
    args.vectors = vectors.data();
    args.numVectors = data.c.n;
    args.queries = queries.data();
    args.numQueries = data.c.q;
    if (data.c.useFloat16) {
        args.vectorType = args.queryType = faiss::gpu::DistanceDataType::F16;
    }
    args.outDistances = out.distances.data();
    args.outIndices = out.labels.data();
    gpu::bfKnnBits(sharedResources(), args);
    return out;
}

TEST_F(FlatNan, SmallVectors) {
    FlatCase c;
    c.n = 700;
    c.d = 12;
    c.fill = Fill::Integers;
    for (int64_t q : kBatches) {
        c.q = q;
        for (const FlatCase& kind : kindsOf(c)) {
            FlatData data(kind);
            spoil(data, 7); // 600 numbers are left
            const auto index = data.makeIndex();
            for (int k : {1, 599, 600, 601, 700, 1000}) {
                const auto out = searchOnHost(*index, data.queries, k);
                data.expectExact(out, k);
                ASSERT_TRUE(sameOutput(
                        searchOnDevice(*index, data.queries, k), out));
                data.expectExact(bfKnnOnHost(data, k), k);
            }
        }
    }
}

TEST_F(FlatNan, SmallVectorsAndALargeK) {
    FlatCase c;
    c.n = 7000;
    c.d = 4;
    c.fill = Fill::Integers;
    for (int64_t q : {1, 40}) {
        c.q = q;
        for (const FlatCase& kind : kindsOf(c)) {
            FlatData data(kind);
            spoil(data, 7); // 6000 numbers are left
            const auto index = data.makeIndex();
            for (int k : {5999, 6000, 6001, 7000, 8000}) {
                data.expectExact(searchOnHost(*index, data.queries, k), k);
                data.expectExact(bfKnnOnHost(data, k), k);
            }
        }
    }
}

TEST_F(FlatNan, SmallQueries) {
    FlatCase c;
    c.n = 500;
    c.d = 6;
    c.fill = Fill::Integers;
    for (int64_t q : {1, 9, 40}) {
        c.q = q;
        for (const FlatCase& kind : kindsOf(c)) {
            FlatData data(kind);
            data.queries[(q / 2) * c.d + 3] = kNan;
            const auto index = data.makeIndex();
            for (int k : {1, 20, 600, 3000}) {
                const auto out = searchOnHost(*index, data.queries, k);
                data.expectExact(out, k); // the others' results are theirs
                for (int j = 0; j < k; ++j) {
                    ASSERT_EQ(out.labels[(q / 2) * k + j], -1);
                }
                data.expectExact(bfKnnOnHost(data, k), k);
            }
        }
    }
}

TEST_F(FlatNan, SmallNothingButNan) {
    FlatCase c;
    c.n = 300;
    c.d = 3;
    c.fill = Fill::Integers;
    for (int64_t q : {1, 40}) {
        c.q = q;
        for (const FlatCase& kind : kindsOf(c)) {
            FlatData data(kind);
            spoil(data, 1);
            const auto index = data.makeIndex();
            for (int k : {1, 300, 2500}) {
                data.expectExact(searchOnHost(*index, data.queries, k), k);
            }
            std::vector<int64_t> labels(q * 5, 7);
            index->assign(q, data.queries.data(), labels.data(), 5);
            ASSERT_EQ(labels, std::vector<int64_t>(q * 5, -1));
        }
    }
}

/// Several tiles of vectors, of which one has hardly a number: its empty places
/// must not come before what another tile has, be it an infinity.
TEST_F(FlatNan, TilesWithoutNumbers) {
    faiss::gpu::StandardGpuResources resources;
    resources.setPinnedMemory(0);
    resources.setTempMemory(0);
    FlatCase c;
    c.n = 1200001;
    c.d = 4;
    c.fill = Fill::Integers;
    for (int64_t q : {1, 20}) {
        c.q = q;
        for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
            c.metric = metric;
            FlatData data(c);
            const int64_t numbers = 40;
            for (int64_t i = 0; i < c.n - numbers; ++i) {
                data.vectors[i * c.d + i % c.d] = kNan;
            }
            // Without norms and products an infinity stays one.
            if (q == 1 || data.isIP()) {
                data.vectors[(c.n - 3) * c.d] = kInf;
                data.vectors[(c.n - 2) * c.d] = -kInf;
            }
            const auto index = data.makeIndex(&resources);
            for (int k : {1, 39, 41, 2048, 2049, 30000}) {
                data.expectExact(searchOnHost(*index, data.queries, k), k);
            }
        }
    }
}

/// All distances are not a selection: NaN stays.
TEST_F(FlatNan, SmallAllDistances) {
    FlatCase c;
    c.n = 50;
    c.q = 20;
    FlatData data(c);
    spoil(data, 5);
    std::vector<float> distances(c.q * c.n);
    faiss::gpu::GpuDistanceParams args;
    args.k = -1;
    args.dims = c.d;
    args.vectors = data.vectors.data();
    args.numVectors = c.n;
    args.queries = data.queries.data();
    args.numQueries = c.q;
    args.outDistances = distances.data();
    gpu::bfKnnBits(sharedResources(), args);
    for (int64_t i = 0; i < c.q * c.n; ++i) {
        ASSERT_EQ(std::isnan(distances[i]), i % c.n % 5 == 0) << i;
    }
}

/// A vector without a nearest centroid is not stored.
TEST_F(FlatNan, IVFStoresWhatHasANearestCentroid) {
    FlatCase c;
    c.n = 5000;
    c.d = 16;
    const int nlist = 32;
    for (const FlatCase& kind : kindsOf(c)) {
        FlatData data(kind);
        GpuIndexBitsFlatConfig config;
        config.useFloat16 = kind.useFloat16;
        GpuIndexBitsFlat quantizer(sharedResources(), c.d, kind.metric, config);
        faiss::gpu::GpuIndexIVFFlat ivf(
                sharedResources(), &quantizer, c.d, nlist, kind.metric);
        ivf.train(c.n, data.vectors.data());
        data.vectors[1234 * c.d + 5] = kNan;
        ivf.add(c.n, data.vectors.data());
        int64_t stored = 0;
        for (int list = 0; list < nlist; ++list) {
            stored += ivf.getListLength(list);
        }
        EXPECT_EQ(stored, c.n - 1) << kind;

        // One at a time goes another way through the quantizer.
        ivf.add(1, data.vectors.data() + 1234 * c.d);
        ivf.add(1, data.vectors.data());
        stored = 0;
        for (int list = 0; list < nlist; ++list) {
            stored += ivf.getListLength(list);
        }
        EXPECT_EQ(stored, c.n) << kind;
    }
}

} // namespace
} // namespace faiss_bits::test
