/// Distances that are NaN are never returned, as in FAISS: GpuIndexBitsFlat,
/// bfKnnBits, and FAISS's IVF, which rests on it.

#include <cmath>
#include <limits>

#include <faiss/gpu/GpuDistance.h>
#include <faiss/gpu/GpuIndexIVFFlat.h>

#include "faiss_bits/flat/GpuBitsDistance.h"
#include "tests/flat/suite/FlatNan.h"
#include "tests/flat/suite/GpuFlatKind.h"

namespace faiss_bits::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

INSTANTIATE_TYPED_TEST_SUITE_P(GpuFlatNan, FlatNan, GpuFlatKind);

class GpuFlatNan : public GpuTest {};

/// FAISS's name of a type that it has.
template <class Faiss>
Faiss faissType(DataType type) {
    if constexpr (requires { Faiss::BF16; }) {
        if (type == DataType::BFloat16) {
            return Faiss::BF16;
        }
    }
    return type == DataType::Float16 ? Faiss::F16 : Faiss::F32;
}

/// Every metric, and every type that bfKnnBits can be asked for.
template <class Faiss = faiss::gpu::DistanceDataType>
std::vector<FlatCase> bfKnnKindsOf(const FlatCase& c) {
    auto kinds = kindsOf(c);
    if constexpr (!requires { Faiss::BF16; }) {
        std::erase_if(kinds, [](const FlatCase& kind) {
            return kind.storage == DataType::BFloat16;
        });
    }
    return kinds;
}

/// Without an index.
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
    args.vectorType = args.queryType =
            faissType<faiss::gpu::DistanceDataType>(data.type());
    args.outDistances = out.distances.data();
    args.outIndices = out.labels.data();
    gpu::bfKnnBits(sharedResources(), args);
    return out;
}

TEST_F(GpuFlatNan, SmallVectorsOfBfKnn) {
    FlatCase c;
    c.n = 700;
    c.d = 12;
    c.fill = Fill::Integers;
    for (int64_t q : {1, 2, 16, 17, 60}) {
        c.q = q;
        for (const FlatCase& kind : bfKnnKindsOf(c)) {
            FlatData data(kind);
            spoil(data, 7); // 600 numbers are left
            for (int k : {1, 599, 600, 601, 700, 1000}) {
                data.expectExact(bfKnnOnHost(data, k), k);
            }
        }
    }
}

TEST_F(GpuFlatNan, SmallVectorsAndALargeKOfBfKnn) {
    FlatCase c;
    c.n = 7000;
    c.d = 4;
    c.fill = Fill::Integers;
    for (int64_t q : {1, 40}) {
        c.q = q;
        for (const FlatCase& kind : bfKnnKindsOf(c)) {
            FlatData data(kind);
            spoil(data, 7); // 6000 numbers are left
            for (int k : {5999, 6000, 6001, 7000, 8000}) {
                data.expectExact(bfKnnOnHost(data, k), k);
            }
        }
    }
}

TEST_F(GpuFlatNan, SmallQueriesOfBfKnn) {
    FlatCase c;
    c.n = 500;
    c.d = 6;
    c.fill = Fill::Integers;
    for (int64_t q : {1, 9, 40}) {
        c.q = q;
        for (const FlatCase& kind : bfKnnKindsOf(c)) {
            FlatData data(kind);
            data.queries[(q / 2) * c.d + 3] = kNan;
            for (int k : {1, 20, 600, 3000}) {
                const auto out = bfKnnOnHost(data, k);
                data.expectExact(out, k); // the others' results are theirs
                for (int j = 0; j < k; ++j) {
                    ASSERT_EQ(out.labels[(q / 2) * k + j], -1);
                }
            }
        }
    }
}

/// Several tiles of vectors, of which one has hardly a number: its empty places
/// must not come before what another tile has, be it an infinity.
TEST_F(GpuFlatNan, TilesWithoutNumbers) {
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
TEST_F(GpuFlatNan, SmallAllDistances) {
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
TEST_F(GpuFlatNan, IVFStoresWhatHasANearestCentroid) {
    FlatCase c;
    c.n = 5000;
    c.d = 16;
    const int nlist = 32;
    for (const FlatCase& kind : kindsOf(c)) {
        FlatData data(kind);
        GpuIndexBitsFlat quantizer(
                sharedResources(), c.d, kind.metric, configOf(kind.storage));
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
