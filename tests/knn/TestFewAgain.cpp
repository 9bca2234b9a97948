/// The search that looks at all vectors again, for up to eight queries, each of
/// which meets a vector by eight lanes: every metric and storage.

#include <algorithm>

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
        for (int64_t q : {1, 2, 3, 7, 8, 9}) {
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
                expectAgain(caseOf(Direct::Never, metric, 50021, q, d, 10));
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
