/// Rows of bits that eight lanes score, sort and write.

#include "tests/common/ExpectError.h"
#include "tests/knn/FinishHarness.h"

namespace faiss_bits::test {
namespace {

using Eights = FinishCase::Eights;

class ScoreRows : public FinishPassed {
   protected:
    static FinishCase caseOf(Eights eights, int k, int d, int64_t n) {
        FinishCase c;
        c.bySlots = true;
        c.byBits = true;
        c.eights = eights;
        c.k = k;
        c.d = d;
        c.n = n;
        return c;
    }
};

/// Zeros, denormals, the largest numbers, infinities and NaN among them, which
/// moves of bits make finite.
TEST_F(ScoreRows, HardData) {
    const int dims[] = {33, 64, 65, 128};
    int turn = 0;
    for (Hard data :
         {kHard[0],
          kHard[1],
          kHard[2],
          kHard[3],
          kHard[4],
          kHard[5],
          kHard[6],
          kHard[7],
          kHard[8],
          Hard::Ends}) {
        for (int k : {1, 2, 7, 8, 31, 32}) {
            for (Eights eights : {Eights::Rows, Eights::Few}) {
                if (eights == Eights::Few && k > kMostFewK) {
                    continue;
                }
                FinishCase c = caseOf(eights, k, dims[turn++ % 4], 700);
                c.data = data;
                expectResults(c);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

/// Words of a lane: some, four, more; rows of more entries than are sorted at
/// a time, and of more than there is room for.
TEST_F(ScoreRows, NumbersOfVectors) {
    for (int64_t n : {31, 64, 992, 993, 1403, 4064}) {
        for (int k : {1, 8, 32}) {
            FinishCase c = caseOf(k > 8 ? Eights::Rows : Eights::Few, k, 40, n);
            c.capacity = n == 1403 ? 1100 : 320;
            expectResults(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST_F(ScoreRows, SmallTypesAndLayouts) {
    for (DataType type :
         {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
        for (int i = 0; i < 6; ++i) {
            FinishCase c =
                    caseOf(i % 2 ? Eights::Rows : Eights::Few,
                           i % 2 ? 20 : 5,
                           40,
                           300);
            c.type = type;
            c.data = i < 3 ? Hard::Bytes : Hard::Infinite;
            c.columnMajor = i & 1;
            c.idType = i % 3 ? IdType::Int32 : IdType::Int64;
            expectResults(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

/// Warps have several sets of rows each.
TEST_F(ScoreRows, ManyRows) {
    for (Eights eights : {Eights::Rows, Eights::Few}) {
        FinishCase c = caseOf(eights, 8, 40, 200);
        c.repeats = 160;
        expectResults(c);
    }
}

/// Warps have so many sets of rows that those behind rows far from the origin,
/// and those behind rows whose neighbours products do not tell apart, are of
/// both kinds of distances, and then of products again.
TEST_F(ScoreRows, FarAndNearRows) {
    for (Hard data :
         {Hard::Offset,
          Hard::Clusters,
          Hard::Duplicates,
          Hard::Mixed,
          Hard::Infinite}) {
        for (int d : {40, 128}) {
            FinishCase c = caseOf(Eights::Rows, 20, d, 150);
            c.data = data;
            c.repeats = 22; // 40 sets of a warp
            c.multiprocessors = 1;
            expectResults(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST(ScoreRowsChoice, WhatIsRefused) {
    float row = 0; // never read
    uint32_t bits = 0;
    ScoreSlotsParams params;
    params.slotRows = reinterpret_cast<const float4*>(&row);
    params.words.bits = &bits;
    params.words.perRow = 1;
    CertifiedParams& search = params.passed.search;
    search.d = 128;
    search.k = 8;
    search.rows = 1;
    const DeviceTraits device;
    EXPECT_TRUE(canScoreFew(Metric::L2, params));
    EXPECT_TRUE(canScoreRows(Metric::L2, params));
    const auto refuse = [&](Metric metric) {
        EXPECT_THROW(launchScoreFew(metric, params, nullptr), Error);
        EXPECT_THROW(launchScoreRows(metric, params, device, nullptr), Error);
    };
    refuse(Metric::InnerProduct);
    search.d = 32;
    refuse(Metric::L2);
    search.d = 129;
    refuse(Metric::L2);
    search.d = 128;
    search.k = 33;
    refuse(Metric::L2);
    search.k = 9;
    EXPECT_FALSE(canScoreFew(Metric::L2, params));
    search.k = 8;
    params.words.perRow = kMostFewWords + 1;
    EXPECT_FALSE(canScoreFew(Metric::L2, params));
    EXPECT_TRUE(canScoreRows(Metric::L2, params));
    params.words.bits = nullptr;
    refuse(Metric::L2);
}

} // namespace
} // namespace faiss_bits::test
