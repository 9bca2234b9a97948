/// Fast searches: distances are what the scan's products of 16 bits say, within
/// the bound that certified searches prove, and the order is theirs.

#include "tests/knn/FusedFastHarness.h"

namespace faiss_bits::test {
namespace {

/// For tools that watch each access, too.
TEST_F(FusedFast, SmallOfEveryShape) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int d : {5, 16, 17, 32, 48, 64, 100, 128, 200, 256, 300}) {
            // The bound grows with d, what tells neighbours apart does not.
            expectFast(of(metric, 9000, 18, d, 10), 0);
            if (HasFailure()) {
                return;
            }
        }
    }
}

TEST_F(FusedFast, SmallOfEveryK) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int k : {1, 2, 33, 512, 1024}) {
            expectFast(of(metric, 20000, 24, 32, k), k >= 512 ? 0.9 : 0);
            if (HasFailure()) {
                return;
            }
        }
    }
}

TEST_F(FusedFast, WithASecondSample) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int k : {1, 100, 2048}) {
            CertifiedCase c = of(metric, 524288 + 77, 40, 64, k);
            c.keptImage = k > 1;
            expectFast(c, k >= 100 ? 0.5 : 0);
            if (HasFailure()) {
                return;
            }
        }
    }
}

/// Vectors of 16 bits, and queries that are as they are or rounded to them.
TEST_F(FusedFast, SmallOfEveryStorage) {
    for (DataType type : {DataType::Float16, DataType::BFloat16}) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            for (bool isKept : {false, true}) {
                CertifiedCase c = of(metric, 9000, 20, 64, 10);
                c.dataType = type;
                c.exactQueries = c.keptImage = isKept;
                expectFast(c, 0);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(FusedFast, StoragesWithASecondSample) {
    for (DataType type : {DataType::Float16, DataType::BFloat16}) {
        CertifiedCase c = of(Metric::L2, 524288 + 77, 40, 64, 100);
        c.dataType = type;
        c.exactQueries = c.keptImage = true;
        expectFast(c, 0.5);
    }
}

TEST_F(FusedFast, Filters) {
    for (int holes : {-1, 0, 5}) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            CertifiedCase c = of(metric, 60000, 30, 40, 20);
            c.allowedOf = 3;
            c.holes = holes;
            const auto vectors = uniform(c.n, c.d, 1);
            const auto queries = uniform(c.q, c.d, 2);
            const Result result = search(c, vectors, queries);
            checkFast(c, vectors, queries, result);
            if (HasFailure()) {
                return;
            }
        }
    }
}

/// Searches that no such scan takes.
TEST_F(FusedFast, OthersAreCertified) {
    expectAsCertified(of(Metric::L2, 20000, 16, 64, 10));
    expectAsCertified(of(Metric::L2, 20000, 40, 64, 2049));
    expectAsCertified(of(Metric::L2, 20000, 40, 2, 10));
    expectAsCertified(of(Metric::L2, 500, 40, 64, 100));
    expectAsCertified(of(Metric::Cosine, 20000, 40, 64, 10));
    expectAsCertified(of(Metric::L1, 20000, 40, 64, 10));
    expectAsCertified(of(Metric::L2, 20000, 1500, 32, 10));
    CertifiedCase ofBytes = of(Metric::L2, 524288 + 77, 40, 256, 1);
    ofBytes.keptImage = true;
    expectAsCertified(ofBytes);
}

} // namespace
} // namespace faiss_bits::test
