/// From lists of what passed a scan to results: the k best by canonical
/// distance, and the proof, on both sides of every length of a list.

#include "tests/knn/FinishHarness.h"

namespace faiss_bits::test {
namespace {

/// Both sides of the rows of a warp's list.
TEST_F(FinishPassed, SmallEveryK) {
    for (int k : {1, 2, 31, 32, 33, 63, 64, 65, 100, 127, 128}) {
        FinishCase c;
        c.k = k;
        c.metric = kProducts[k % 3];
        expectResults(c);
        if (HasFatalFailure()) {
            return;
        }
    }
}

TEST_F(FinishPassed, SmallTypesAndLayouts) {
    for (DataType type :
         {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
        for (int i = 0; i < 4; ++i) {
            FinishCase c;
            c.type = type;
            c.metric = kProducts[i % 3];
            c.columnMajor = i & 1;
            c.listed = i & 2;
            c.idType = i == 1 ? IdType::Int32 : IdType::Int64;
            c.k = 40;
            expectResults(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST_F(FinishPassed, Dimensions) {
    for (int d : {1, 7, 8, 9, 63, 64, 65, 130, 515}) {
        for (Metric metric : kProducts) {
            FinishCase c;
            c.metric = metric;
            c.d = d;
            c.data = Hard::Mixed;
            expectResults(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST_F(FinishPassed, HardData) {
    for (Hard data : kHard) {
        for (Metric metric : kProducts) {
            for (int k : {10, 50}) {
                FinishCase c;
                c.metric = metric;
                c.data = data;
                c.k = k;
                expectResults(c);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

/// Blocks of long lists have several rows each.
TEST_F(FinishPassed, ManyRows) {
    FinishCase c;
    c.n = 330;
    c.d = 9;
    c.repeats = 40;
    expectResults(c);
}

TEST_F(FinishPassed, OtherMetricsThrow) {
    FinishPassedParams params;
    EXPECT_THROW(
            launchFinishPassed(Metric::L1, params, deviceTraits(), nullptr),
            Error);
}

} // namespace
} // namespace faiss_bits::test
