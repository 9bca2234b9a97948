/// A subset small enough for compute-sanitizer (--gtest_filter=*Small*).

#include "tests/knn/KnnHarness.h"

namespace faiss_bits::test {
namespace {

class FlatKnnSmall : public FlatKnnTest {};

TEST_F(FlatKnnSmall, FewQueries) {
    for (Metric metric : kMetrics) {
        for (DataType type : kDataTypes) {
            for (int d : {3, 8, 33, 130}) {
                KnnCase c;
                c.metric = metric;
                c.dataType = type;
                c.d = d;
                c.n = 301;
                c.q = 3;
                expectNearest(c);
            }
        }
    }
}

TEST_F(FlatKnnSmall, ManyQueries) {
    for (Metric metric : kMetrics) {
        for (DataType type : kDataTypes) {
            for (bool rowMajor : {false, true}) {
                KnnCase c;
                c.metric = metric;
                c.dataType = type;
                c.d = 17;
                c.n = 301;
                c.q = 40;
                c.vectorsRowMajor = rowMajor;
                c.queriesRowMajor = rowMajor;
                expectNearest(c);
            }
        }
    }
}

TEST_F(FlatKnnSmall, TilesOfVectors) {
    for (int64_t q : {1, 33}) {
        KnnCase c;
        c.n = 33001;
        c.q = q;
        c.d = 2;
        c.k = 5;
        c.data = Vectors::Integers;
        c.maxScratch = kLeastScratch;
        expectNearest(c);
    }
}

TEST_F(FlatKnnSmall, TilesOfVectorsForALargeK) {
    for (int64_t q : {1, 17}) {
        KnnCase c;
        c.n = 35001;
        c.q = q;
        c.d = 2;
        c.k = 2100;
        c.idType = q == 1 ? IdType::Int32 : IdType::Int64;
        c.data = Vectors::Integers;
        c.maxScratch = kLeastScratch;
        expectNearest(c);
    }
}

TEST_F(FlatKnnSmall, FewerVectorsThanK) {
    for (int64_t n : {0, 3}) {
        KnnCase c;
        c.n = n;
        c.q = 2;
        expectNearest(c);
    }
}

} // namespace
} // namespace faiss_bits::test
