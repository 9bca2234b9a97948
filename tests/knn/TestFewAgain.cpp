/// The search that looks at all vectors again, for up to eight queries, each of
/// which meets a vector by eight lanes: every metric and storage.

#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/canonical/Distance.h"
#include "kernels/knn/certified/VectorGroups.h"
#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

constexpr int kValues = 10;
constexpr int kOtherOf = 8;

/// Rows that are one of ten, with components in (0, 1]: thousands of distances
/// are equal, more than any list of a first scan holds. One in eight is like no
/// other, so that there are more distinct ones than sets of equal vectors are
/// made for: each vector is met.
std::vector<float> makeCopies(int64_t rows, int d, uint32_t seed) {
    std::mt19937 shared(99);
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> positive(0.01f, 1.f);
    std::vector<float> few(size_t(kValues) * d);
    for (float& one : few) {
        one = positive(shared);
    }
    std::vector<float> values(rows * d);
    for (int64_t i = 0; i < rows; ++i) {
        float* row = values.data() + i * d;
        std::copy_n(few.begin() + random() % kValues * d, d, row);
        // The first queries are copies. The others are short, so that none has
        // a larger product than these.
        if (random() % kOtherOf == 0 && i >= 64) {
            std::generate_n(row, d, [&] { return positive(random) / 8; });
        }
    }
    return values;
}

class FewAgain : public FlatKnnCertified {
   protected:
    uint64_t repeated_ = 0; // of all searches

    void expectRight(const CertifiedCase& c) {
        SCOPED_TRACE(c.describe());
        ASSERT_GT(c.n / kOtherOf, 5 * kMostGroups / 4);
        auto vectors = makeCopies(c.n, c.d, 1);
        auto queries = makeCopies(c.q, c.d, 2);
        roundAllTo(c.dataType, vectors);
        roundAllTo(c.dataType, queries);
        const Result result = search(c, vectors, queries);
        check(c, vectors, queries, result);
        repeated_ += result.repeated;
    }

    /// All queries are searched again.
    void expectAgain(const CertifiedCase& c) {
        const uint64_t before = repeated_;
        expectRight(c);
        EXPECT_EQ(repeated_ - before, uint64_t(c.q)) << c.describe();
    }
};

TEST_F(FewAgain, EveryMetric) {
    for (Metric metric : kAllMetrics) {
        for (int64_t q : {1, 2, 3, 7, 8, 9, 15, 16, 17}) {
            expectAgain(caseOf(Direct::Never, metric, 60007, q, 17, 10));
            if (HasFailure()) {
                return;
            }
        }
    }
}

/// Around the components that lanes have on their way.
TEST_F(FewAgain, EveryDimension) {
    for (int d : {1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 130, 300}) {
        for (Metric metric : {Metric::L2, Metric::L1, Metric::Cosine}) {
            for (int64_t q : {1, 5}) {
                const CertifiedCase c =
                        caseOf(Direct::Never, metric, 50021, q, d, 10);
                // By their signs (LineKnn.h): nothing is searched again.
                if (metric == Metric::Cosine && d == 1) {
                    expectRight(c);
                } else {
                    expectAgain(c);
                }
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(FewAgain, SixteenBits) {
    for (DataType type : {DataType::Float16, DataType::BFloat16}) {
        for (Metric metric : kAllMetrics) {
            CertifiedCase c = caseOf(Direct::Never, metric, 60007, 3, 37, 10);
            c.dataType = type;
            expectAgain(c);
            if (HasFailure()) {
                return;
            }
        }
    }
}

/// A k of many steps, filters, and vectors whose last chunk is cut.
TEST_F(FewAgain, LargeKAndFilters) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct, Metric::L1}) {
        for (int64_t n : {96 * 1024, 96 * 1024 + 1, 96 * 1024 + 191}) {
            expectRight(caseOf(Direct::Never, metric, n, 2, 20, 1500));
            CertifiedCase c = caseOf(Direct::Never, metric, n, 2, 20, 10);
            c.allowedOf = 2;
            expectRight(c);
            if (HasFailure()) {
                return;
            }
        }
    }
    EXPECT_GT(repeated_, 0u);
}

/// Thousands are as near as can be, here at a distance of 0: vectors behind the
/// k-th of those that a step has found are left out, in tiles too.
TEST_F(FewAgain, EqualToTheQueries) {
    for (Metric metric : kAllMetrics) {
        for (int64_t q : {1, 12, 20, 70}) {
            for (int k : {2, 100}) {
                expectRight(caseOf(Direct::Never, metric, 60007, q, 17, k));
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
    EXPECT_GT(repeated_, 0u);
}

/// The same of inner products that are infinity. Where queries have both signs
/// the k-th of some is less, and nothing is left out for the others.
TEST_F(FewAgain, InfinitelyNear) {
    uint64_t repeated = 0;
    for (bool haveBothSigns : {false, true}) {
        for (int64_t q : {1, 7, 12, 20, 70}) {
            for (int k : {10, 500}) {
                const CertifiedCase c = caseOf(
                        Direct::Never, Metric::InnerProduct, 50021, q, 11, k);
                SCOPED_TRACE(c.describe());
                std::mt19937 random(3);
                std::uniform_real_distribution<float> positive(0.01f, 1.f);
                std::vector<float> vectors(c.n * c.d);
                std::vector<float> queries(c.q * c.d);
                for (auto* values : {&vectors, &queries}) {
                    for (float& value : *values) {
                        value = positive(random);
                    }
                }
                for (int64_t i = 0; i < c.n; i += 3) {
                    vectors[i * c.d + random() % c.d] = INFINITY;
                }
                for (int64_t i = 0; haveBothSigns && i < c.q; i += 2) {
                    for (int j = 0; j < c.d; ++j) {
                        queries[i * c.d + j] *= j % 4 == 0 ? 1 : -1;
                    }
                }
                const Result result = search(c, vectors, queries);
                check(c, vectors, queries, result);
                repeated += haveBothSigns ? 0 : result.repeated;
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
    EXPECT_GT(repeated, 0u);
}

/// One kept image serves the first scan, whose lists a few queries fill.
TEST_F(FewAgain, ByAnImage) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int64_t q : {1, 4, 16, 17}) {
            CertifiedCase c = caseOf(Direct::Never, metric, 80000, q, 64, 10);
            c.keptImage = true;
            expectRight(c);
            c.allowedOf = 2;
            expectRight(c);
            if (HasFailure()) {
                return;
            }
        }
    }
    EXPECT_GT(repeated_, 0u);
}

} // namespace
} // namespace faiss_bits::test
