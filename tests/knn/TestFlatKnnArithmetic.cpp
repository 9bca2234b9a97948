/// The stated arithmetic: fp32 and nothing less, distances never below zero,
/// norms and whole distance matrices.

#include "kernels/knn/Norms.h"
#include "tests/knn/KnnHarness.h"

namespace faiss_bits::test {
namespace {

class FlatKnnArithmetic : public FlatKnnTest {};

/// The largest error of the returned distances, over |x|^2 + |q|^2.
double worstRelativeError(
        const KnnData& data,
        const KnnCase& c,
        const KnnResult& result) {
    double worst = 0;
    for (int64_t i = 0; i < c.q * c.k; ++i) {
        const float* q = data.queries().data() + i / c.k * c.d;
        const float* x = data.vectors().data() + result.ids[i] * c.d;
        const double truth = c.metric == Metric::L2 ? squaredL2(q, x, c.d)
                                                    : innerProduct(q, x, c.d);
        const double size = innerProduct(q, q, c.d) + innerProduct(x, x, c.d);
        worst = std::max(
                worst, std::abs(double(result.distances[i]) - truth) / size);
    }
    return worst;
}

/// TF32 keeps 11 bits of a component: on this data its errors are about 1e-5
/// of the norms, and those of fp32 about 1e-7.
TEST_F(FlatKnnArithmetic, NeverTF32) {
    for (cublasMath_t mode :
         {CUBLAS_DEFAULT_MATH, CUBLAS_TF32_TENSOR_OP_MATH}) {
        BITS_CUBLAS_CHECK(cublasSetMathMode(handle(), mode));
        for (Metric metric : kMetrics) {
            for (int64_t q : {1, 16, 17, 128, 1024}) {
                KnnCase c;
                c.mode = SearchMode::Plain;
                c.metric = metric;
                c.n = 4000;
                c.q = q;
                c.d = 128;
                c.k = 20;
                SCOPED_TRACE(c.describe() + " mode=" + std::to_string(mode));
                const KnnData data(c);
                const KnnResult result = data.run(handle(), nullptr, 0xFF);
                ASSERT_TRUE(data.check(result));
                EXPECT_LT(worstRelativeError(data, c, result), 1e-6);
                // Components of twelve bits, which TF32 cannot hold.
                c.data = Vectors::Integers;
                expectNearest(c);
            }
        }
    }
}

/// Vectors far from the origin that equal a query: the expanded square would
/// come out below zero here and there.
TEST_F(FlatKnnArithmetic, L2IsNeverBelowZero) {
    for (int64_t q : {1, 8, 64, 500}) {
        KnnCase c;
        c.q = q;
        c.n = q;
        c.d = 33;
        c.k = int(std::min<int64_t>(q, 20));
        // The same draws make the same vectors and queries.
        KnnData data(c);
        std::vector<float> far = data.vectors();
        for (float& value : far) {
            value += 1000.f;
        }
        DeviceBuffer<float> both(far);
        DeviceBuffer<float> outDistances(q * c.k);
        DeviceBuffer<int64_t> outIds(q * c.k);
        FlatKnnProblem p = data.problem();
        p.vectors = p.queries = both.data();
        p.outDistances = outDistances.data();
        p.outIds = outIds.data();
        DeviceBuffer<uint8_t> scratch(flatKnnWorkspaceBytes(p, kRoomyScratch));
        runFlatKnn(p, {scratch.data(), scratch.size()}, handle(), nullptr);
        for (float distance : outDistances.download()) {
            ASSERT_GE(distance, 0.f) << "q=" << q;
        }
    }
}

/// An all-NaN query has no numbers to offer: every place stays empty.
TEST_F(FlatKnnArithmetic, NanQuery) {
    for (Metric metric : kMetrics) {
        for (int64_t q : {1, 40}) {
            for (int k : {1, 10, 2500}) {
                KnnCase c;
                c.metric = metric;
                c.q = q;
                c.k = k;
                c.n = 40000;
                const KnnData data(c);
                DeviceBuffer<float> queries(
                        std::vector<float>(q * c.d, std::nanf("")));
                DeviceBuffer<float> outDistances(q * c.k, 0x00);
                DeviceBuffer<int64_t> outIds(q * c.k);
                FlatKnnProblem p = data.problem();
                p.queries = queries.data();
                p.outDistances = outDistances.data();
                p.outIds = outIds.data();
                DeviceBuffer<uint8_t> scratch(
                        flatKnnWorkspaceBytes(p, kLeastScratch));
                runFlatKnn(
                        p, {scratch.data(), scratch.size()}, handle(), nullptr);
                const auto distances = outDistances.download();
                const auto ids = outIds.download();
                const float empty = metric == Metric::L2
                        ? std::numeric_limits<float>::max()
                        : -std::numeric_limits<float>::max();
                for (int64_t i = 0; i < q * c.k; ++i) {
                    ASSERT_EQ(distances[i], empty) << i << ", q=" << q;
                    ASSERT_EQ(ids[i], -1) << i << ", q=" << q;
                }
            }
        }
    }
}

TEST_F(FlatKnnArithmetic, SquaredNorms) {
    for (DataType type : kDataTypes) {
        for (bool rowMajor : {false, true}) {
            for (int d : kDims) {
                KnnCase c;
                c.dataType = type;
                c.d = d;
                c.n = 531;
                std::mt19937 random(d);
                const auto vectors = makeVectors(c, c.n, false, random);
                DeviceBuffer<uint8_t> device(packAs(
                        type,
                        rowMajor ? vectors : transposed(vectors, c.n, d)));
                DeviceBuffer<float> norms(c.n);
                runSquaredNorms(
                        device.data(),
                        type,
                        rowMajor,
                        c.n,
                        d,
                        norms.data(),
                        nullptr);
                const auto got = norms.download();
                for (int64_t i = 0; i < c.n; ++i) {
                    const float* x = vectors.data() + i * d;
                    ASSERT_NEAR(
                            got[i],
                            innerProduct(x, x, d),
                            fp32DistanceError(x, x, d, true))
                            << "vector " << i << ", d=" << d << " "
                            << nameOf(type) << " rowMajor=" << rowMajor;
                }
            }
        }
    }
}

TEST_F(FlatKnnArithmetic, NoVectorsNoNorms) {
    EXPECT_NO_THROW(runSquaredNorms(
            nullptr, DataType::Float32, true, 0, 8, nullptr, nullptr));
}

TEST_F(FlatKnnArithmetic, AllDistances) {
    for (Metric metric : kMetrics) {
        for (DataType type : kDataTypes) {
            for (bool giveNorms : {false, true}) {
                for (int64_t q : {1, 37}) {
                    KnnCase c;
                    c.metric = metric;
                    c.dataType = type;
                    c.giveNorms = giveNorms;
                    c.q = q;
                    c.d = 19;
                    c.n = 1009;
                    SCOPED_TRACE(c.describe());
                    const KnnData data(c);
                    FlatKnnProblem p = data.problem();
                    DeviceBuffer<float> out(q * c.n, 0xA5);
                    p.outDistances = out.data();
                    DeviceBuffer<uint8_t> scratch(
                            allDistancesWorkspaceBytes(p));
                    runAllDistances(
                            p,
                            {scratch.data(), scratch.size()},
                            handle(),
                            nullptr);
                    const auto got = out.download();
                    const bool isProduct = metric == Metric::InnerProduct;
                    for (int64_t i = 0; i < q * c.n; ++i) {
                        const float* x = data.vectors().data() + i % c.n * c.d;
                        const float* y = data.queries().data() + i / c.n * c.d;
                        const double want = isProduct ? innerProduct(x, y, c.d)
                                                      : squaredL2(x, y, c.d);
                        ASSERT_NEAR(
                                got[i],
                                want,
                                fp32DistanceError(x, y, c.d, isProduct))
                                << "query " << i / c.n << ", vector "
                                << i % c.n;
                    }
                }
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
