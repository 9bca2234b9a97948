/// The same where a kernel of its own scores the lists, or the rows of bits,
/// from a copy of the vectors.

#include "tests/knn/FinishHarness.h"

namespace faiss_bits::test {
namespace {

class ScoreSlots : public FinishPassed {
   protected:
    static FinishCase caseOf(bool byBits) {
        FinishCase c;
        c.bySlots = true;
        c.byBits = byBits;
        return c;
    }
};

/// Both sides of each width of the copy.
TEST_F(ScoreSlots, SmallDimensions) {
    for (int d : {1, 8, 31, 32, 33, 64, 65, 96, 127, 128}) {
        for (Metric metric : kProducts) {
            FinishCase c = caseOf(d % 2);
            c.d = d;
            c.metric = metric;
            c.data = d % 2 ? Hard::Mixed : Hard::Bytes;
            expectResults(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

/// Zeros, denormals, the largest numbers, infinities and NaN among them.
TEST_F(ScoreSlots, HardData) {
    for (Hard data : kHard) {
        for (Metric metric : kProducts) {
            for (bool byBits : {false, true}) {
                FinishCase c = caseOf(byBits);
                c.metric = metric;
                c.data = data;
                c.k = byBits ? 50 : 100;
                c.d = 90;
                expectResults(c);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(ScoreSlots, SmallTypesAndLayouts) {
    for (DataType type :
         {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
        for (int i = 0; i < 6; ++i) {
            FinishCase c = caseOf(i % 2);
            c.type = type;
            c.metric = kProducts[i % 3];
            c.data = i < 3 ? Hard::Bytes : Hard::Infinite;
            c.columnMajor = i & 1;
            c.idType = i == 1 ? IdType::Int32 : IdType::Int64;
            c.k = 40;
            c.d = 40;
            expectResults(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

/// The last words of bits, and more of them than lanes.
TEST_F(ScoreSlots, NumbersOfVectors) {
    for (int n : {1025, 1056, 2047, 2048, 2049, 5000}) {
        for (bool byBits : {false, true}) {
            FinishCase c = caseOf(byBits);
            c.n = n;
            c.d = 17;
            expectResults(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

/// Warps have several lists each.
TEST_F(ScoreSlots, ManyRows) {
    for (bool byBits : {false, true}) {
        FinishCase c = caseOf(byBits);
        c.n = 1000;
        c.d = 40;
        c.repeats = 80;
        expectResults(c);
        if (HasFatalFailure()) {
            return;
        }
    }
}

/// Some lists are for blocks, and some rows have more than a queue of bits; of
/// small k a warp has them all.
TEST_F(ScoreSlots, SmallLongLists) {
    for (Metric metric : kProducts) {
        for (int i = 0; i < 4; ++i) {
            const bool byBits = i % 2;
            FinishCase c = caseOf(byBits);
            c.metric = metric;
            c.capacity = 1100;
            c.n = 1403;
            c.d = 50;
            c.k = i < 2 ? 33 : 32;
            expectResults(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

/// Lists of up to 64 entries are sorted by 32 bits, unless keys are equal or
/// far apart.
TEST_F(ScoreSlots, FewEntries) {
    for (Hard data : kHard) {
        for (int k : {1, 31, 32}) {
            for (bool byBits : {false, true}) {
                FinishCase c = caseOf(byBits);
                c.metric = kProducts[k % 3];
                c.data = data;
                c.k = k;
                c.d = 20;
                expectResults(c);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST(ScoreSlotsChoice, WhatIsRefused) {
    const DeviceTraits device;
    const float row = 0; // never read
    FinishPassedParams params;
    params.slotRows = &row;
    CertifiedParams& search = params.passed.search;
    const auto refuses = [&](Metric metric) {
        const ScoreSlotsParams scores{
                params.passed,
                params.words,
                reinterpret_cast<const float4*>(params.slotRows),
                params.complete};
        EXPECT_THROW(launchScoreSlots(metric, scores, device, nullptr), Error);
    };
    search.d = 129;
    refuses(Metric::L2);
    EXPECT_THROW(
            launchFinishPassed(Metric::L2, params, device, nullptr), Error);
    search.d = 128;
    refuses(Metric::L1);
    search.n = (1 << 18) + 1;
    refuses(Metric::L2);
    search.n = 1 << 18;
    search.numCandidates = (1 << 14) + 1;
    refuses(Metric::L2);
    search.numCandidates = 1 << 14;
    const int32_t id = 0;
    search.listedIds = &id;
    refuses(Metric::L2);
}

} // namespace
} // namespace faiss_bits::test
