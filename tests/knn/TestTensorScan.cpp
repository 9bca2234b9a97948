/// Scans of tensor cores: every pair against exact keys and the proven bound.

#include "tests/common/ExpectError.h"
#include "tests/knn/TensorHarness.h"
#include "tests/knn/TensorKernelTest.h"

namespace faiss_bits::test {
namespace {

constexpr Metric kMetrics[] = {
        Metric::L2,
        Metric::InnerProduct,
        Metric::Cosine};

class TensorScanTest : public TensorKernelTest {
   protected:
    TensorCase of(
            Metric metric,
            int64_t numQueries,
            int64_t n,
            int d,
            TensorValues values = TensorValues::Uniform) const {
        TensorCase c;
        c.metric = metric;
        c.numQueries = numQueries;
        c.n = n;
        c.d = d;
        c.values = values;
        c.kernel = GetParam();
        return c;
    }
};

constexpr int kDims[] = {
        1,
        15,
        16,
        17,
        32,
        33,
        48,
        63,
        64,
        65,
        80,
        96,
        128,
        200,
        256,
        257,
        320,
        400,
        768};

TEST_P(TensorScanTest, SmallOfEveryDimension) {
    for (Metric metric : kMetrics) {
        for (int d : kDims) {
            checkTensorCase(of(metric, 20, 200, d));
        }
    }
}

TEST_P(TensorScanTest, Dimensions) {
    TensorChecked all;
    for (Metric metric : kMetrics) {
        for (int d : kDims) {
            const TensorChecked one = checkTensorCase(of(metric, 130, 1500, d));
            all.pairs += one.pairs;
            all.decided += one.decided;
        }
    }
    // Else the bound would be so wide that nothing was tested.
    EXPECT_GT(all.decided, all.pairs * 0.98);
}

TEST_P(TensorScanTest, NumbersOfVectors) {
    for (int d : {3, 20, 64, 130, 300}) {
        for (int64_t n = 1; n <= 300;
             n += n < 8 || (n >= 120 && n < 136) || n >= 250 ? 1 : 13) {
            checkTensorCase(
                    of(n % 2 ? Metric::L2 : Metric::InnerProduct, 9, n, d));
        }
        for (int64_t n : {511, 512, 513, 1023, 1025, 4097}) {
            checkTensorCase(of(Metric::L2, 5, n, d));
        }
    }
}

TEST_P(TensorScanTest, NumbersOfQueries) {
    for (int d : {16, 32, 128, 320}) {
        for (int64_t q = 1; q <= 300; q += q < 4 || q >= 250 ? 1 : 21) {
            checkTensorCase(
                    of(q % 2 ? Metric::InnerProduct : Metric::L2, q, 150, d));
        }
        for (int64_t q : {63, 64, 65, 127, 128, 129, 511, 513, 1025}) {
            checkTensorCase(of(Metric::L2, q, 100, d));
        }
    }
}

TEST_P(TensorScanTest, Values) {
    for (TensorValues values :
         {TensorValues::Integers,
          TensorValues::Duplicates,
          TensorValues::Scattered,
          TensorValues::Infinities,
          TensorValues::NaNs,
          TensorValues::Denormals,
          TensorValues::Huge,
          TensorValues::Tiny,
          TensorValues::Far}) {
        for (Metric metric : kMetrics) {
            for (int d : {1, 16, 24, 64, 100, 384}) {
                checkTensorCase(of(metric, 70, 600, d, values));
            }
        }
    }
}

TEST_P(TensorScanTest, Types) {
    for (DataType type : {DataType::Float16, DataType::BFloat16}) {
        for (Metric metric : kMetrics) {
            for (int d : {7, 16, 64, 100, 128}) {
                TensorCase c = of(metric, 40, 500, d);
                c.type = type;
                checkTensorCase(c);
            }
        }
    }
}

TEST_P(TensorScanTest, SmallListsThatOverflow) {
    for (uint32_t capacity : {1u, 7u, 64u}) {
        for (int d : {16, 128, 320}) {
            TensorCase c = of(Metric::L2, 70, 900, d);
            c.capacity = capacity;
            checkTensorCase(c);
        }
    }
}

TEST_P(TensorScanTest, SmallFilters) {
    for (Metric metric : kMetrics) {
        for (int d : {16, 32, 128, 320}) {
            for (uint32_t capacity : {0u, 5u}) {
                TensorCase c = of(metric, 70, 900, d);
                c.filtered = true;
                c.capacity = capacity;
                checkTensorCase(c);
            }
        }
    }
}

/// Told that many pass, a scan may take other masks (DenseTest.cuh): what it
/// finds is the same.
TEST_P(TensorScanTest, SmallManyPass) {
    for (Metric metric : kMetrics) {
        for (int d : {33, 64, 128, 256}) {
            for (uint32_t capacity : {0u, 5u}) {
                TensorCase c = of(metric, 70, 900, d);
                c.manyPass = true;
                c.filtered = capacity > 0;
                c.capacity = capacity;
                checkTensorCase(c);
            }
        }
    }
}

TEST_P(TensorScanTest, ManyPass) {
    for (TensorValues values : kAllTensorValues) {
        for (Metric metric : kMetrics) {
            for (int d : {24, 40, 65, 100, 200, 384}) {
                TensorCase c = of(metric, 70, 600, d, values);
                c.manyPass = true;
                checkTensorCase(c);
            }
        }
    }
    for (int64_t n : {1, 7, 127, 128, 129, 255, 257, 4097}) {
        for (int64_t q : {1, 17, 63, 65, 257}) {
            TensorCase c =
                    of(n % 2 ? Metric::L2 : Metric::InnerProduct, q, n, 80);
            c.manyPass = true;
            checkTensorCase(c);
        }
    }
    TensorCase large = of(Metric::L2, 3000, 3000, 128);
    large.manyPass = true;
    checkTensorCase(large);
}

/// All vectors are one item's, whose lists no other block appends to
/// (OwnLists.cuh): of one unit, and of some where queries fill the GPU.
TEST_P(TensorScanTest, SmallOwnLists) {
    for (Metric metric : kMetrics) {
        for (int d : {33, 128, 256}) {
            for (uint32_t capacity : {0u, 5u}) {
                TensorCase c = of(metric, 70, 100, d);
                c.manyPass = true;
                c.filtered = capacity > 0;
                c.capacity = capacity;
                checkTensorCase(c);
            }
        }
    }
}

TEST_P(TensorScanTest, OwnLists) {
    for (uint32_t capacity : {0u, 40u}) {
        for (auto [values, d] : std::vector<std::pair<TensorValues, int>>{
                     {TensorValues::Uniform, 33},
                     {TensorValues::NaNs, 80},
                     {TensorValues::Duplicates, 100}}) {
            TensorCase c = of(Metric::L2, 36000, 300, d, values);
            c.manyPass = true;
            c.capacity = capacity;
            checkTensorCase(c);
        }
    }
}

TEST_P(TensorScanTest, AddedLater) {
    for (int64_t later : {1, 100, 700}) {
        for (int d : {16, 64, 100, 320}) {
            for (TensorValues values :
                 {TensorValues::Uniform, TensorValues::Scattered}) {
                TensorCase c = of(Metric::L2, 20, 1000, d, values);
                c.addedLater = later;
                checkTensorCase(c);
            }
        }
    }
}

/// Many blocks, several items a block, both buffers of queries.
TEST_P(TensorScanTest, ManyItems) {
    checkTensorCase(of(Metric::L2, 1500, 20000, 16));
    checkTensorCase(of(Metric::InnerProduct, 1300, 10000, 40));
    checkTensorCase(of(Metric::L2, 3000, 3000, 128));
    checkTensorCase(of(Metric::L2, 1100, 5000, 200));
    checkTensorCase(of(Metric::L2, 700, 5000, 400));
}

/// Chunks of several units, which lie far apart.
TEST_P(TensorScanTest, UnitsFarApart) {
    for (auto [d, n] : std::vector<std::pair<int, int64_t>>{
                 {16, 140001}, {32, 70001}, {64, 40001}, {300, 70001}}) {
        checkTensorCase(of(Metric::L2, 9, n, d));
        checkTensorCase(
                of(Metric::InnerProduct, 9, n, d, TensorValues::Duplicates));
    }
}

/// Up to 64 queries warpgroups take units of vectors in turn: chunks of one
/// unit, of several and of many, lists that are full, and at both sides of the
/// edge.
TEST_P(TensorScanTest, Turns) {
    for (auto [d, n] : std::vector<std::pair<int, int64_t>>{
                 {16, 100001}, {32, 50001}, {64, 40001}, {256, 25001}}) {
        TensorCase c = of(Metric::L2, 64, n, d);
        c.filtered = true;
        c.capacity = 300;
        checkTensorCase(c);
        checkTensorCase(of(Metric::L2, 16, n, d));
        checkTensorCase(of(Metric::InnerProduct, 5, n, d));
    }
    checkTensorCase(of(Metric::InnerProduct, 64, 30001, 24));
    checkTensorCase(of(Metric::InnerProduct, 65, 30001, 24));
    // Blocks of nine units and more, so that every warpgroup has several.
    for (auto [d, n] : std::vector<std::pair<int, int64_t>>{
                 {16, 620001}, {32, 310001}, {64, 160001}, {256, 160001}}) {
        checkTensorCase(of(Metric::L2, 5, n, d));
        checkTensorCase(
                of(Metric::InnerProduct, 16, n, d, TensorValues::Duplicates));
    }
}

TEST_P(TensorScanTest, SmallTurns) {
    for (TensorValues values : kAllTensorValues) {
        for (Metric metric : kMetrics) {
            for (int d : {8, 24, 64, 100}) {
                for (int64_t q : {3, 63}) {
                    checkTensorCase(of(metric, q, 600, d, values));
                }
            }
        }
    }
}

TEST_P(TensorScanTest, Nothing) {
    TensorScanProblem problem;
    problem.d = 4;
    problem.kernel = GetParam();
    runTensorScan(problem, deviceTraits(), nullptr);
    problem.numQueries = 5;
    runTensorScan(problem, deviceTraits(), nullptr);
}

TEST_P(TensorScanTest, Arguments) {
    TensorScanProblem problem;
    problem.numQueries = 1;
    problem.numVectors = 1;
    problem.d = 4;
    problem.kernel = GetParam();
    auto run = [&] { runTensorScan(problem, deviceTraits(), nullptr); };
    EXPECT_TRUE(throwsNaming(run, "pieces", "nullptr"));
    problem.d = 0;
    EXPECT_TRUE(throwsNaming(run, "d", "0"));
    problem.d = 4;
    problem.numVectors = int64_t(1) << 32;
    EXPECT_TRUE(throwsNaming(run, "numVectors", "4294967296"));
    problem.numVectors = -1;
    EXPECT_TRUE(throwsNaming(run, "numVectors", "-1"));
    problem.numVectors = 1;
    problem.numQueries = -3;
    EXPECT_TRUE(throwsNaming(run, "numQueries", "-3"));
    problem.metric = Metric::L1;
    EXPECT_TRUE(throwsNaming(run, "metric", "2"));
}

INSTANTIATE_TEST_SUITE_P(
        Kernels,
        TensorScanTest,
        TensorKernelTest::kernels(),
        kernelName);

} // namespace
} // namespace faiss_bits::test
