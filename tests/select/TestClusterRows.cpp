/// Few rows that the blocks of a cluster share.

#include "tests/select/ThresholdPlanOf.h"

namespace faiss_bits::test {
namespace {

class ClusterRows : public GpuTest {
   protected:
    std::string lack() const override {
        return sharesRows() ? "" : "needs clusters of blocks";
    }

    static SelectCase of(int64_t rows, int64_t cols) {
        SelectCase c;
        c.rows = rows;
        c.cols = cols;
        c.algorithm = SelectAlgorithm::SampleThreshold;
        return c;
    }

    static bool isCluster(const SelectCase& c, int k) {
        return thresholdPlanOf(c, k).isCluster;
    }
};

/// Rows of up to 262,144 columns are held in registers for k up to 1024.
const std::vector<int> kKs = {1025, 2000, 2048};

TEST_F(ClusterRows, EveryValue) {
    for (Values values : kAllValues) {
        for (bool largest : {false, true}) {
            SelectCase c = of(3, 50003);
            c.values = values;
            c.largest = largest;
            ASSERT_TRUE(isCluster(c, 1500));
            expectSelects(c, kKs);
            if (HasFailure()) {
                return;
            }
        }
    }
}

TEST_F(ClusterRows, EveryType) {
    for (DataType type : {DataType::Float16, DataType::BFloat16}) {
        for (Values values :
             {Values::Random,
              Values::FewDistinct,
              Values::SomeNan,
              Values::Ascending,
              Values::SignedZeros}) {
            SelectCase c = of(2, 70001);
            c.keyType = type;
            c.values = values;
            c.largest = values == Values::Ascending;
            ASSERT_TRUE(isCluster(c, 1500));
            expectSelects(c, kKs);
            if (HasFailure()) {
                return;
            }
        }
    }
}

/// Clusters of 4 to 16 blocks, tiles and parts of tiles.
TEST_F(ClusterRows, EveryLengthAndNumberOfRows) {
    int clusters = 0;
    for (int64_t cols :
         {32769, 36864, 36865, 45056, 49153, 65536, 65537, 69632, 262144}) {
        for (int64_t rows : {1, 2, 8, 9, 16, 17, 33}) {
            if (rows * cols < 1500000) {
                SelectCase c = of(rows, cols);
                c.seed = uint32_t(rows);
                clusters += isCluster(c, 1400);
                expectSelects(c, {1400, 1600});
            }
        }
    }
    EXPECT_GT(clusters, 20);
    expectSelects(of(1, 1000003), {1, 100, 2048, 2049, 4096, 4097});
}

/// Both sides of every policy's k.
TEST_F(ClusterRows, SmallKOfLongRows) {
    for (Values values :
         {Values::Random, Values::FewDistinct, Values::SomeNan}) {
        SelectCase c = of(1, 300007);
        c.values = values;
        ASSERT_TRUE(isCluster(c, 10));
        expectSelects(c, {1, 2, 31, 32, 33, 255, 256, 257, 1024});
    }
}

/// One row, more results than other blocks sort.
TEST_F(ClusterRows, LargeKOfOneRow) {
    for (DataType type :
         {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
        for (Values values : kAllValues) {
            SelectCase c = of(1, 150001);
            c.keyType = type;
            c.values = values;
            c.largest = type == DataType::BFloat16;
            c.shift = type == DataType::Float16;
            ASSERT_TRUE(isCluster(c, 4096));
            expectSelects(c, {2049, 3000, 4096});
            if (HasFailure()) {
                return;
            }
        }
    }
}

/// Rows at any address, strides, given ids.
TEST_F(ClusterRows, Layouts) {
    for (DataType type : {DataType::Float32, DataType::Float16}) {
        for (int64_t padding : {0, 1, 13, 64}) {
            for (size_t shift : {0, 1, 4, 8}) {
                SelectCase c = of(3, 33001);
                c.keyType = type;
                c.padding = padding;
                c.shift = shift;
                c.outPadding = 3;
                c.givenIds = shift == 1;
                c.idType = shift == 4 ? IdType::Int32 : IdType::Int64;
                c.dropNan = padding == 13;
                c.values = padding == 13 ? Values::SomeNan : Values::Random;
                ASSERT_TRUE(isCluster(c, 1500));
                expectSelects(c, {1300, 2000});
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(ClusterRows, Small) {
    for (DataType type :
         {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
        for (Values values : {Values::Random, Values::AllEqual}) {
            SelectCase c = of(2, 36001);
            c.keyType = type;
            c.values = values;
            c.shift = 1;
            ASSERT_TRUE(isCluster(c, 1500));
            expectSelects(c, {1300, 2048});
        }
    }
}

} // namespace
} // namespace faiss_bits::test
