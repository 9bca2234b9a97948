/// bfKnnBits: every field of GpuDistanceParams.

#include <cmath>

#include <faiss/gpu/GpuDistance.h>

#include "faiss_bits/common/FaissCompat.h"
#include "faiss_bits/flat/GpuBitsDistance.h"
#include "tests/flat/IndexHarness.h"

namespace faiss_bits::test {
namespace {

using faiss::gpu::DistanceDataType;
using faiss::gpu::GpuDistanceParams;
using faiss::gpu::IndicesDataType;

/// FAISS's name of a type; BF16 only where FAISS has it.
template <class Faiss>
std::vector<std::pair<DataType, Faiss>> dataTypes() {
    std::vector<std::pair<DataType, Faiss>> types = {
            {DataType::Float32, Faiss::F32}, {DataType::Float16, Faiss::F16}};
    if constexpr (requires { Faiss::BF16; }) {
        types.emplace_back(DataType::BFloat16, Faiss::BF16);
    }
    return types;
}

std::vector<float> transposed(
        const std::vector<float>& matrix,
        int64_t rows,
        int64_t cols) {
    std::vector<float> out(matrix.size());
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < cols; ++c) {
            out[c * rows + r] = matrix[r * cols + c];
        }
    }
    return out;
}

/// Bytes on the host or on the device.
struct Operand {
    Operand(std::vector<uint8_t> bytes, bool onDevice)
            : host(std::move(bytes)) {
        if (onDevice) {
            device = DeviceBuffer<uint8_t>(host);
        }
    }
    void* data() {
        return device.size() ? static_cast<void*>(device.data()) : host.data();
    }
    const std::vector<uint8_t>& result() {
        if (device.size()) {
            host = device.download();
        }
        return host;
    }
    std::vector<uint8_t> host;
    DeviceBuffer<uint8_t> device;
};

struct KnnCase {
    FlatCase flat;
    DataType type = DataType::Float32;
    DistanceDataType faissType = DistanceDataType::F32;
    bool vectorsRowMajor = true;
    bool queriesRowMajor = true;
    bool withNorms = false;
    IdType idType = IdType::Int64;
    int pointers = 0; ///< bits: vectors, queries, distances, ids on the device
    int k = 10;
};

class BfKnnBits : public GpuTest {
   protected:
    static void expectKnn(const KnnCase& c) {
        SCOPED_TRACE(
                ::testing::Message()
                << c.flat << " k=" << c.k << " type=" << int(c.type)
                << " rows=" << c.vectorsRowMajor << c.queriesRowMajor
                << " norms=" << c.withNorms << " ids=" << int(c.idType)
                << " pointers=" << c.pointers);
        FlatData data(c.flat);
        // The oracle's own rounding knows float16 and float32.
        roundAllTo(c.type, data.vectors);
        roundAllTo(c.type, data.queries);
        const int64_t n = c.flat.n;
        const int64_t q = c.flat.q;
        const int d = c.flat.d;
        Operand vectors(
                packAs(c.type,
                       c.vectorsRowMajor ? data.vectors
                                         : transposed(data.vectors, n, d)),
                c.pointers & 1);
        Operand queries(
                packAs(c.type,
                       c.queriesRowMajor ? data.queries
                                         : transposed(data.queries, q, d)),
                c.pointers & 2);
        std::vector<float> norms(n);
        for (int64_t i = 0; i < n; ++i) {
            const float* x = data.vectors.data() + i * d;
            norms[i] = float(innerProduct(x, x, d));
        }
        const int64_t perQuery = c.k == -1 ? n : c.k;
        Operand distances(
                std::vector<uint8_t>(q * perQuery * sizeof(float), 0xEE),
                c.pointers & 4);
        Operand ids(
                std::vector<uint8_t>(q * perQuery * sizeOf(c.idType), 0xEE),
                c.pointers & 8);

        GpuDistanceParams args;
        args.metric = c.flat.metric;
        args.k = c.k;
        args.dims = d;
        args.vectors = vectors.data();
        args.vectorType = c.faissType;
        args.vectorsRowMajor = c.vectorsRowMajor;
        args.numVectors = n;
        args.vectorNorms = c.withNorms ? norms.data() : nullptr;
        args.queries = queries.data();
        args.queryType = c.faissType;
        args.queriesRowMajor = c.queriesRowMajor;
        args.numQueries = q;
        args.outDistances = static_cast<float*>(distances.data());
        args.outIndicesType = c.idType == IdType::Int32 ? IndicesDataType::I32
                                                        : IndicesDataType::I64;
        args.outIndices = c.k == -1 ? nullptr : ids.data();
        gpu::bfKnnBits(sharedResources(), args);

        SearchOutput out;
        out.distances = unpackFrom(DataType::Float32, distances.result());
        if (c.k == -1) {
            expectAll(data, out.distances);
            return;
        }
        out.labels = unpackIds(c.idType, ids.result());
        data.expectNearest(out, c.k);
        if (c.flat.fill == Fill::Integers) {
            data.expectExact(out, c.k);
        }
    }

    static void expectAll(
            const FlatData& data,
            const std::vector<float>& distances) {
        for (int64_t i = 0; i < data.c.q; ++i) {
            const float* query = data.queries.data() + i * data.c.d;
            for (int64_t j = 0; j < data.c.n; ++j) {
                const float* vector = data.vectors.data() + j * data.c.d;
                ASSERT_NEAR(
                        distances[i * data.c.n + j],
                        data.truth()[i][j],
                        fp32DistanceError(query, vector, data.c.d, data.isIP()))
                        << "query " << i << " vector " << j;
            }
        }
    }
};

TEST_F(BfKnnBits, SmallEveryLayoutTypeAndIdType) {
    KnnCase c;
    c.flat.n = 700;
    c.flat.d = 11;
    for (int64_t q : {1, 3, 33}) {
        c.flat.q = q;
        for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
            c.flat.metric = metric;
            for (const auto& [type, faissType] :
                 dataTypes<DistanceDataType>()) {
                c.type = type;
                c.faissType = faissType;
                for (int bits = 0; bits < 16; ++bits) {
                    c.vectorsRowMajor = bits & 1;
                    c.queriesRowMajor = bits & 2;
                    c.withNorms = bits & 4;
                    c.idType = bits & 8 ? IdType::Int32 : IdType::Int64;
                    for (int k : {10, -1}) {
                        c.k = k;
                        expectKnn(c);
                    }
                }
            }
        }
    }
}

TEST_F(BfKnnBits, SmallEveryMixOfPointers) {
    KnnCase c;
    c.flat.n = 500;
    c.flat.d = 8;
    c.flat.q = 20;
    c.flat.fill = Fill::Integers;
    for (int pointers = 0; pointers < 16; ++pointers) {
        c.pointers = pointers;
        for (int k : {1, 20, -1}) {
            c.k = k;
            c.queriesRowMajor = pointers % 3 != 0;
            expectKnn(c);
        }
    }
}

TEST_F(BfKnnBits, KAndFewVectors) {
    KnnCase c;
    c.flat.d = 16;
    c.flat.fill = Fill::Integers;
    for (int64_t n : {1, 100, 3000}) {
        c.flat.n = n;
        for (int64_t q : {1, 40}) {
            c.flat.q = q;
            for (auto metric :
                 {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
                c.flat.metric = metric;
                for (int k :
                     {1, 2, 32, 33, 1024, 2047, 2048, 2049, 3000, 3001}) {
                    c.k = k;
                    expectKnn(c);
                }
            }
        }
    }
}

TEST_F(BfKnnBits, LargeKOfEveryTypeAndPlace) {
    KnnCase c;
    c.flat.n = 5000;
    c.flat.d = 7;
    c.flat.fill = Fill::Integers;
    for (int64_t q : {2, 40}) {
        c.flat.q = q;
        for (const auto& [type, faissType] : dataTypes<DistanceDataType>()) {
            c.type = type;
            c.faissType = faissType;
            for (int pointers : {0, 5, 10, 15}) {
                c.pointers = pointers;
                c.idType = pointers % 2 ? IdType::Int32 : IdType::Int64;
                c.vectorsRowMajor = pointers < 8;
                c.queriesRowMajor = pointers != 5;
                c.withNorms = pointers == 10;
                for (int k : {2049, 4999, 5000, 6000}) {
                    c.k = k;
                    expectKnn(c);
                }
            }
        }
    }
}

GpuDistanceParams goodArguments() {
    static const float vectors[8] = {0, 0, 1, 1, 2, 2, 3, 3};
    static const float queries[4] = {0, 1, 3, 3};
    static float distances[4];
    static idx_t ids[4];
    GpuDistanceParams args;
    args.k = 2;
    args.dims = 2;
    args.vectors = vectors;
    args.numVectors = 4;
    args.queries = queries;
    args.numQueries = 2;
    args.outDistances = distances;
    args.outIndices = ids;
    return args;
}

TEST_F(BfKnnBits, SmallIgnoredDistances) {
    auto args = goodArguments();
    args.ignoreOutDistances = true;
    auto* ids = static_cast<idx_t*>(args.outIndices);
    for (bool given : {true, false}) {
        float untouched[4] = {-5, -5, -5, -5};
        std::fill(ids, ids + 4, -9);
        args.outDistances = given ? untouched : nullptr;
        gpu::bfKnnBits(sharedResources(), args);
        EXPECT_EQ(
                std::vector<idx_t>(ids, ids + 4),
                (std::vector<idx_t>{0, 1, 3, 2}));
        EXPECT_EQ(untouched[0], -5);
        EXPECT_EQ(untouched[3], -5);
    }
}

TEST_F(BfKnnBits, SmallNothingToDo) {
    auto args = goodArguments();
    args.numQueries = 0;
    args.queries = nullptr;
    args.outDistances = nullptr;
    args.outIndices = nullptr;
    gpu::bfKnnBits(sharedResources(), args);

    args = goodArguments();
    args.numVectors = 0;
    args.vectors = nullptr;
    gpu::bfKnnBits(sharedResources(), args);
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(static_cast<idx_t*>(args.outIndices)[i], -1);
        EXPECT_EQ(args.outDistances[i], std::numeric_limits<float>::max());
    }
}

template <class Change>
::testing::AssertionResult refuses(
        Change change,
        const std::string& name,
        const std::string& value = "") {
    auto args = goodArguments();
    change(args);
    return faissThrowsNaming(
            [&] { gpu::bfKnnBits(sharedResources(), args); }, name, value);
}

/// `device` and `use_cuvs` are not in every FAISS.
template <class Params>
void expectExecutionFieldsAreChecked() {
    if constexpr (requires(Params p) { p.device; }) {
        EXPECT_TRUE(refuses([](Params& p) { p.device = 77; }, "device", "77"));
        EXPECT_TRUE(refuses([](Params& p) { p.device = -2; }, "device", "-2"));
        Params args = goodArguments();
        args.device = 0;
        gpu::bfKnnBits(sharedResources(), args);
        EXPECT_EQ(static_cast<idx_t*>(args.outIndices)[2], 3);
    }
#if !defined(USE_NVIDIA_CUVS)
    if constexpr (requires(Params p) { p.use_cuvs; }) {
        EXPECT_TRUE(refuses([](Params& p) { p.use_cuvs = true; }, "use_cuvs"));
    }
#endif
}

TEST_F(BfKnnBits, SmallBadArguments) {
    using P = GpuDistanceParams;
    EXPECT_TRUE(refuses([](P& p) { p.k = 0; }, "k", "0"));
    EXPECT_TRUE(refuses([](P& p) { p.k = -2; }, "k", "-2"));
    EXPECT_TRUE(refuses([](P& p) { p.k = INT32_MIN; }, "k", "-2147483648"));
    EXPECT_TRUE(refuses([](P& p) { p.dims = 0; }, "dims", "0"));
    EXPECT_TRUE(refuses([](P& p) { p.numVectors = -1; }, "numVectors", "-1"));
    EXPECT_TRUE(refuses([](P& p) { p.numQueries = -1; }, "numQueries", "-1"));
    EXPECT_TRUE(refuses([](P& p) { p.vectors = nullptr; }, "vectors"));
    EXPECT_TRUE(refuses([](P& p) { p.queries = nullptr; }, "queries"));
    EXPECT_TRUE(
            refuses([](P& p) { p.outDistances = nullptr; }, "outDistances"));
    EXPECT_TRUE(refuses([](P& p) { p.outIndices = nullptr; }, "outIndices"));
    EXPECT_TRUE(refuses(
            [](P& p) {
                p.k = -1;
                p.ignoreOutDistances = true;
                p.outDistances = nullptr;
            },
            "outDistances"));
    for (auto metric : {faiss::MetricType(18), faiss::MetricType(30)}) {
        EXPECT_TRUE(
                refuses([&](P& p) { p.metric = metric; },
                        "metric",
                        std::to_string(int(metric))));
    }
    for (float arg : {0.f, -1.f, INFINITY, NAN}) {
        EXPECT_TRUE(refuses(
                [&](P& p) {
                    p.metric = faiss::METRIC_Lp;
                    p.metricArg = arg;
                },
                "metricArg"));
    }
    EXPECT_TRUE(faissThrowsNaming(
            [] {
                gpu::bfKnnBits(sharedResources(), goodArguments(), Metric(17));
            },
            "metric",
            "17"));
    EXPECT_TRUE(refuses(
            [](P& p) { p.queryType = DistanceDataType::F16; }, "queryType"));
    EXPECT_TRUE(refuses(
            [](P& p) { p.vectorType = p.queryType = DistanceDataType(99); },
            "vectorType",
            "99"));
    EXPECT_TRUE(
            refuses([](P& p) { p.outIndicesType = IndicesDataType(99); },
                    "outIndicesType",
                    "99"));
    expectExecutionFieldsAreChecked<P>();

    EXPECT_TRUE(faissThrowsNaming(
            [] { gpu::bfKnnBits(nullptr, goodArguments()); }, "provider"));
}

} // namespace
} // namespace faiss_bits::test
