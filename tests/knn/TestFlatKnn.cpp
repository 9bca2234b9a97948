/// What runFlatKnn returns, over every shape, type and layout.

#include "tests/knn/KnnHarness.h"

namespace faiss_bits::test {
namespace {

/// Tests that run once for each metric and data type.
class FlatKnn
        : public FlatKnnTest,
          public ::testing::WithParamInterface<std::tuple<Metric, DataType>> {
   protected:
    KnnCase base() const {
        KnnCase c;
        c.metric = std::get<0>(GetParam());
        c.dataType = std::get<1>(GetParam());
        return c;
    }
};

INSTANTIATE_TEST_SUITE_P(
        All,
        FlatKnn,
        ::testing::Combine(
                ::testing::ValuesIn(kMetrics),
                ::testing::ValuesIn(kDataTypes)),
        [](const auto& info) {
            const bool isL2 = std::get<0>(info.param) == Metric::L2;
            return (isL2 ? "L2_" : "IP_") + nameOf(std::get<1>(info.param));
        });

TEST_P(FlatKnn, EveryDimension) {
    for (int d : kDims) {
        for (int64_t q : {1, 7, 40}) {
            for (Vectors data : {Vectors::Uniform, Vectors::Integers}) {
                KnnCase c = base();
                c.d = d;
                c.q = q;
                c.n = 1501;
                c.data = data;
                expectNearest(c);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_P(FlatKnn, EveryNumberOfQueries) {
    for (int64_t q : {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,  12,  13,
                      14, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 1000}) {
        for (int d : {24, 25}) {
            KnnCase c = base();
            c.q = q;
            c.d = d;
            c.n = 2003;
            c.data = Vectors::Integers;
            expectNearest(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST_P(FlatKnn, EveryNumberOfVectors) {
    for (int64_t n :
         {1,
          2,
          31,
          32,
          33,
          127,
          128,
          129,
          1023,
          1024,
          1025,
          4095,
          4097,
          16383,
          16384,
          16385,
          32769,
          50001}) {
        for (int64_t q : {1, 16, 40}) {
            for (size_t maxScratch : {kLeastScratch, kRoomyScratch}) {
                for (int k : {1, 100}) {
                    KnnCase c = base();
                    c.n = n;
                    c.q = q;
                    c.k = k;
                    c.d = 5;
                    c.data = Vectors::Integers;
                    c.maxScratch = maxScratch;
                    expectNearest(c);
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_P(FlatKnn, EveryK) {
    for (int k : kSelectKs) {
        for (int64_t q : {3, 50}) {
            KnnCase c = base();
            c.k = k;
            c.q = q;
            c.n = 3001;
            expectNearest(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST_P(FlatKnn, KBeyondTheVectors) {
    for (int64_t n : {1, 5, 300}) {
        for (int64_t q : {1, 40}) {
            for (int k : {6, 301, 2048}) {
                KnnCase c = base();
                c.n = n;
                c.q = q;
                c.k = k;
                expectNearest(c);
            }
        }
    }
}

TEST_P(FlatKnn, NoVectors) {
    for (int64_t q : {1, 40}) {
        for (bool giveNorms : {false, true}) {
            KnnCase c = base();
            c.n = 0;
            c.q = q;
            c.giveNorms = giveNorms;
            expectNearest(c);
        }
    }
}

TEST_P(FlatKnn, EveryLayout) {
    for (bool vectorsRowMajor : {false, true}) {
        for (bool queriesRowMajor : {false, true}) {
            for (bool giveNorms : {false, true}) {
                for (int64_t q : {1, 5, 50}) {
                    for (int d : {1, 31, 32}) {
                        KnnCase c = base();
                        c.q = q;
                        c.d = d;
                        c.n = 1203;
                        c.vectorsRowMajor = vectorsRowMajor;
                        c.queriesRowMajor = queriesRowMajor;
                        c.giveNorms = giveNorms;
                        c.data = Vectors::Integers;
                        expectNearest(c);
                        c.data = Vectors::Uniform;
                        expectNearest(c);
                        if (HasFatalFailure()) {
                            return;
                        }
                    }
                }
            }
        }
    }
}

TEST_P(FlatKnn, ColumnMajorInTiles) {
    for (bool queriesRowMajor : {false, true}) {
        KnnCase c = base();
        c.n = 70001;
        c.q = 150;
        c.d = 6;
        c.vectorsRowMajor = false;
        c.queriesRowMajor = queriesRowMajor;
        c.data = Vectors::Integers;
        c.maxScratch = kLeastScratch;
        expectNearest(c);
    }
}

/// Tiles of vectors, tiles of queries, neither: the data is exact, so not one
/// bit may differ.
TEST_P(FlatKnn, ScratchNeverChangesTheResult) {
    for (int64_t q : {1, 16, 70, 1000}) {
        for (int k : {1, 100, 2048}) {
            KnnCase c = base();
            c.n = 100003;
            c.q = q;
            c.k = k;
            c.d = 9;
            c.data = Vectors::Integers;
            SCOPED_TRACE(c.describe());
            KnnData data(c);
            const KnnResult roomy = data.run(handle(), nullptr, 0xFF);
            ASSERT_TRUE(data.check(roomy, 6));
            for (size_t most :
                 {kLeastScratch,
                  size_t(1) << 20,
                  size_t(1) << 24,
                  size_t(1) << 26}) {
                data.options().maxScratch = most;
                ASSERT_TRUE(roomy == data.run(handle(), nullptr, 0xFF))
                        << "maxScratch=" << most;
            }
        }
    }
}

TEST_P(FlatKnn, MultiprocessorsNeverChangeTheResult) {
    for (int64_t q : {1, 9, 70}) {
        KnnCase c = base();
        c.n = 60001;
        c.q = q;
        c.d = 12;
        c.data = Vectors::Integers;
        SCOPED_TRACE(c.describe());
        KnnData data(c);
        const KnnResult usual = data.run(handle(), nullptr, 0xFF);
        ASSERT_TRUE(data.check(usual));
        for (int count : {1, 7, 1000}) {
            data.options().multiprocessors = count;
            ASSERT_TRUE(usual == data.run(handle(), nullptr, 0xFF)) << count;
        }
    }
}

TEST_P(FlatKnn, NarrowIds) {
    for (int64_t q : {2, 50}) {
        for (size_t maxScratch : {kLeastScratch, kRoomyScratch}) {
            KnnCase c = base();
            c.n = 40001;
            c.q = q;
            c.idType = IdType::Int32;
            c.maxScratch = maxScratch;
            c.data = Vectors::Integers;
            expectNearest(c);
        }
    }
}

TEST_P(FlatKnn, AnyAlignmentOfThePointers) {
    for (size_t shift : {1, 2, 3}) {
        for (int64_t q : {1, 5, 40}) {
            for (int d : {7, 8, 64}) {
                KnnCase c = base();
                c.n = 1100;
                c.q = q;
                c.d = d;
                c.shift = shift;
                expectNearest(c);
            }
        }
    }
}

/// A vector with a NaN component is never returned while numbers are left;
/// infinite ones rank as IEEE says.
TEST_P(FlatKnn, NanAndInfiniteVectors) {
    for (int64_t n : {40, 2000, 40001}) {
        for (int64_t q : {1, 4, 40}) {
            for (int k : {1, 20, 2048}) {
                KnnCase c = base();
                c.n = n;
                c.q = q;
                c.k = k;
                c.d = 6;
                c.data = Vectors::Special;
                c.maxScratch = kLeastScratch;
                expectNearest(c);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
