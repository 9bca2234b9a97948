/// The bits of a result do not depend on how a batch is cut: not on pages, not
/// on the scratch that decides the tiles, not on the stream.

#include "tests/knn/KnnHarness.h"

namespace faiss_bits::test {
namespace {

class FlatKnnCuts : public FlatKnnTest {
   protected:
    void expectSameBits(const KnnCase& c, const std::vector<int64_t>& pages) {
        SCOPED_TRACE(c.describe());
        KnnData data(c);
        for (SearchMode mode : {SearchMode::Plain, SearchMode::Certified}) {
            data.options().mode = mode;
            const KnnResult whole = data.run(handle(), nullptr, 0xFF);
            ASSERT_TRUE(data.check(whole, 4));
            for (size_t scratch :
                 {size_t(0), size_t(5) << 20, size_t(40) << 20}) {
                for (int64_t page : pages) {
                    const int64_t rows = std::min(page, c.q);
                    ASSERT_TRUE(data.runPaged(handle(), rows, scratch) == whole)
                            << "pages of " << page << " queries, scratch of "
                            << scratch << ", "
                            << (mode == SearchMode::Plain ? "plain"
                                                          : "certified");
                }
            }
        }
    }
};

/// The last page, or a tile, has so few queries that a search of their own
/// would go another way.
TEST_F(FlatKnnCuts, PagesAndScratch) {
    for (Metric metric : kMetrics) {
        for (DataType type : kDataTypes) {
            for (int d : {1, 3, 33, 64, 100, 128}) {
                for (int64_t n : {20000, 20003}) {
                    KnnCase c;
                    c.metric = metric;
                    c.dataType = type;
                    c.n = n;
                    c.d = d;
                    c.q = 321;
                    c.k = 37;
                    expectSameBits(c, {7, 64, 305, 320, 321});
                }
            }
        }
    }
}

TEST_F(FlatKnnCuts, BatchesOnBothSidesOfTheFew) {
    for (int64_t q : {1, 2, 15, 16, 17, 31, 33, 64, 65, 129}) {
        for (int d : {16, 96, 777}) {
            KnnCase c;
            c.n = 30001;
            c.d = d;
            c.q = q;
            expectSameBits(c, {1, 3, 16, 17, q});
        }
    }
}

/// Many tiles of vectors, merged, and a k beyond one block's list.
TEST_F(FlatKnnCuts, TilesOfVectors) {
    for (int k : {5, 2500}) {
        KnnCase c;
        c.n = 300007;
        c.d = 48;
        c.q = 50;
        c.k = k;
        expectSameBits(c, {1, 20, 50});
    }
}

TEST_F(FlatKnnCuts, ColumnMajorVectors) {
    for (DataType type : kDataTypes) {
        KnnCase c;
        c.dataType = type;
        c.vectorsRowMajor = false;
        c.n = 30003;
        c.d = 24;
        c.q = 70;
        expectSameBits(c, {1, 33, 70});
    }
}

/// What kernels/knn/gemm/Product.h says of float32: one fused multiply-add a
/// component, in their order. Seen on this GPU; others may order otherwise.
TEST_F(FlatKnnCuts, Float32ProductsAddUpInOrder) {
    if (deviceTraits().computeCapability != 90) {
        GTEST_SKIP() << "the order was looked at on compute capability 9.0";
    }
    for (int d : {1, 3, 33, 128, 768}) {
        for (int64_t q : {17, 40, 100, 300}) {
            KnnCase c;
            c.metric = Metric::InnerProduct;
            c.n = 2003;
            c.d = d;
            c.q = q;
            SCOPED_TRACE(c.describe());
            const KnnData data(c);
            FlatKnnProblem p = data.problem();
            DeviceBuffer<float> out(c.q * c.n, 0xA5);
            p.outDistances = out.data();
            runAllDistances(p, {}, handle(), nullptr);
            const auto got = out.download();
            for (int64_t i = 0; i < c.q * c.n; i += 7) {
                const float* a = data.queries().data() + i / c.n * d;
                const float* x = data.vectors().data() + i % c.n * d;
                float sum = 0;
                for (int j = 0; j < d; ++j) {
                    sum = std::fma(x[j], a[j], sum);
                }
                ASSERT_TRUE(sameBits(got[i], sum)) << "product " << i;
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
