/// Rows that one block, or the blocks of a cluster, hold in registers.

#include "tests/select/SelectOfFloats.h"
#include "tests/select/ThresholdPlanOf.h"

namespace faiss_bits::test {
namespace {

class HeldRows : public GpuTest {
   protected:
    static SelectCase of(int64_t rows, int64_t cols) {
        SelectCase c;
        c.rows = rows;
        c.cols = cols;
        c.algorithm = SelectAlgorithm::SampleThreshold;
        return c;
    }

    /// Blocks that hold a row; 0: it is not held.
    static int blocksOf(const SelectCase& c, int k) {
        const ThresholdPlan plan = thresholdPlanOf(c, k);
        return plan.isHeld ? int(plan.sampleParts) : 0;
    }
};

/// Both sides of every policy's k.
const std::vector<int> kKs = {1, 2, 32, 33, 256, 257, 1000, 1024};

TEST_F(HeldRows, EveryValueByOneBlock) {
    for (Values values : kAllValues) {
        for (bool largest : {false, true}) {
            SelectCase c = of(5, 8003);
            c.values = values;
            c.largest = largest;
            ASSERT_EQ(blocksOf(c, 10), 1);
            expectSelects(c, kKs);
            if (HasFailure()) {
                return;
            }
        }
    }
}

TEST_F(HeldRows, EveryValueByClusters) {
    if (!sharesRows()) {
        GTEST_SKIP() << "needs clusters of blocks";
    }
    for (Values values : kAllValues) {
        for (bool largest : {false, true}) {
            SelectCase c = of(3, 100003);
            c.values = values;
            c.largest = largest;
            ASSERT_EQ(blocksOf(c, 10), 16);
            expectSelects(c, kKs);
            if (HasFailure()) {
                return;
            }
        }
    }
}

TEST_F(HeldRows, EveryType) {
    for (DataType type : {DataType::Float16, DataType::BFloat16}) {
        for (Values values :
             {Values::Random,
              Values::FewDistinct,
              Values::SomeNan,
              Values::Ascending,
              Values::SignedZeros}) {
            for (int64_t cols : {7001, 40001}) {
                SelectCase c = of(2, cols);
                c.keyType = type;
                c.values = values;
                c.largest = values == Values::Ascending;
                EXPECT_EQ(blocksOf(c, 10) > 0, cols < 16384 || sharesRows());
                expectSelects(c, kKs);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// 1 to 16 blocks of 8, 16 and 32 keys a thread, whole and in part.
TEST_F(HeldRows, EveryLengthAndNumberOfRows) {
    int held = 0;
    for (int64_t cols :
         {2049,
          4095,
          4096,
          4097,
          8191,
          8192,
          8193,
          16383,
          16384,
          16385,
          32767,
          32768,
          32769,
          65536,
          65537,
          131072,
          131073,
          262144}) {
        for (int64_t rows : {1, 2, 9, 17, 65, 132, 300}) {
            if (rows * cols < 3000000) {
                SelectCase c = of(rows, cols);
                c.seed = uint32_t(rows);
                held += blocksOf(c, 40) > 0;
                expectSelects(c, {2, 40, 200, 700});
            }
        }
    }
    EXPECT_GT(held, 40);
}

/// Rows at any address, strides, given ids.
TEST_F(HeldRows, Layouts) {
    for (DataType type : {DataType::Float32, DataType::Float16}) {
        for (int64_t cols : {3001, 33001}) {
            for (size_t shift : {0, 1, 4}) {
                SelectCase c = of(3, cols);
                c.keyType = type;
                c.padding = shift * 13;
                c.shift = shift;
                c.outPadding = 3;
                c.givenIds = shift == 1;
                c.idType = shift == 4 ? IdType::Int32 : IdType::Int64;
                c.dropNan = shift == 1;
                c.values = shift == 1 ? Values::SomeNan : Values::Random;
                expectSelects(c, {1, 30, 250, 1024});
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// The best lie in the columns of few threads, so that more survive than have
/// room.
TEST_F(HeldRows, BestInTheColumnsOfFewThreads) {
    constexpr int64_t kThreads = 512;
    for (int64_t cols : {8192, 16384, 100000}) {
        for (int k : {1, 32, 33, 256, 257, 1024}) {
            SelectProblem p;
            p.rows = 2;
            p.cols = cols;
            p.k = k;
            p.algorithm = SelectAlgorithm::SampleThreshold;
            p.device = deviceTraits();
            const ThresholdPlan plan = planThreshold(p);
            if (!plan.isHeld) {
                EXPECT_GT(cols, 16384); // without clusters
                continue;
            }
            // Distinct and descending; those of some threads far below: of so
            // few that the least of each part leaves a limit above all of them.
            const int few = plan.segment == cols ? 200 : 300;
            std::vector<float> keys(size_t(p.rows * cols));
            for (size_t i = 0; i < keys.size(); ++i) {
                const int64_t at = int64_t(i) % cols % plan.segment;
                const int64_t thread = at % kThreads;
                keys[i] = float(keys.size() - i) + (thread < few ? 0 : 1e7f);
            }
            SCOPED_TRACE(testing::Message() << cols << " columns, k = " << k);
            expectSelectOfFloats(p, keys);
            if (HasFailure()) {
                return;
            }
        }
    }
}

TEST_F(HeldRows, Small) {
    for (DataType type :
         {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
        for (Values values : {Values::Random, Values::AllEqual}) {
            for (int64_t cols : {2101, 8203, 17003}) {
                SelectCase c = of(2, cols);
                c.keyType = type;
                c.values = values;
                c.shift = 1;
                ASSERT_TRUE(blocksOf(c, 10) > 0 || !sharesRows());
                expectSelects(c, {10, 200, 500});
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
