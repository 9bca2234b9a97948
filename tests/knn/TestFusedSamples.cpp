/// Searches by a sample: what its limits let through, and that hardly any query
/// is repeated for a limit of too little.

#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

class FusedSamples : public FlatKnnCertified {};

/// The sample says too little for one query in a million, not for more.
TEST_F(FusedSamples, HardlyAnyIsRepeated) {
    for (int k : {1, 10, 100, 1000}) {
        for (int64_t q : {16, 1000}) {
            CertifiedCase c;
            c.n = 100000;
            c.q = q;
            c.d = 24;
            c.k = k;
            EXPECT_EQ(expectCanonical(c, Hard::Bytes).repeated, 0u)
                    << c.describe();
        }
    }
}

/// Limits of few queries, of which blocks have four, among vectors that are
/// equal.
TEST_F(FusedSamples, LimitsAmongEqualVectors) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int d : {11, 49}) {
            for (bool keptImage : {false, true}) {
                CertifiedCase c;
                c.metric = metric;
                c.n = 100000;
                c.q = d < 20 ? 5 : 16;
                c.d = d;
                c.k = 1000;
                c.keptImage = keptImage;
                expectCanonical(c, Hard::Duplicates);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

/// Limits of a wrong sample are too high or too low, and queries are repeated.
TEST_F(FusedSamples, LimitsOfFewQueriesAreRight) {
    uint64_t numRepeated = 0;
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int64_t q : {2, 5, 7, 16}) {
            CertifiedCase c;
            c.metric = metric;
            c.n = 100000;
            c.q = q;
            c.d = 49;
            c.k = 1000;
            c.keptImage = true;
            numRepeated += expectCanonical(c, Hard::Bytes).repeated;
        }
    }
    EXPECT_LE(numRepeated, 2u); // of 60
}

} // namespace
} // namespace faiss_bits::test
