/// Searches of vectors many of which are equal: those that are searched again
/// meet the sets of equal ones (VectorGroups). And of vectors that are
/// infinitely far, of which images say so.

#include <algorithm>
#include <limits>

#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

/// What the components of the distinct vectors are.
enum class Values {
    Positive,  ///< in (0, 1]
    Integers,  ///< -2 to 2: distances of different vectors are equal, too
    NotFinite, ///< integers, zeros of both signs, NaN and infinities
};

class EqualVectors : public FlatKnnCertified {
   protected:
    int distinct_ = 12;
    Values values_ = Values::Positive;
    bool isTogether_ = false; // equal vectors lie side by side
    uint64_t repeated_ = 0;   // of all searches

    float draw(std::mt19937& random) const {
        if (values_ == Values::Positive) {
            return std::uniform_real_distribution<float>(0.01f, 1.f)(random);
        }
        if (values_ == Values::NotFinite && random() % 8 == 0) {
            constexpr float kInfinity = std::numeric_limits<float>::infinity();
            const float odd[] = {-0.f, std::nanf(""), kInfinity, -kInfinity};
            return odd[random() % 4];
        }
        return float(int(random() % 5) - 2);
    }

    /// Rows that are one of distinct_.
    std::vector<float> makeRows(int64_t rows, int d, uint32_t seed) const {
        std::mt19937 shared(99);
        std::mt19937 random(seed);
        std::vector<float> few(size_t(distinct_) * d);
        for (float& one : few) {
            one = draw(shared);
        }
        std::vector<float> all(rows * d);
        for (int64_t i = 0; i < rows; ++i) {
            const int64_t one = isTogether_ ? i * distinct_ / rows
                                            : int64_t(random() % distinct_);
            std::copy_n(few.begin() + one * d, d, all.begin() + i * d);
        }
        return all;
    }

    void expectRight(const CertifiedCase& c) {
        SCOPED_TRACE(
                c.describe() + " distinct " + std::to_string(distinct_) +
                " values " + std::to_string(int(values_)));
        auto vectors = makeRows(c.n, c.d, 1);
        auto queries = makeRows(c.q, c.d, 2);
        roundAllTo(c.dataType, vectors);
        roundAllTo(c.dataType, queries);
        const Result result = search(c, vectors, queries);
        check(c, vectors, queries, result, 6);
        repeated_ += result.repeated;
    }

    /// A test that sees none repeated tests nothing.
    void TearDown() override {
        if (!IsSkipped()) {
            EXPECT_GT(repeated_, 0u);
        }
        FlatKnnCertified::TearDown();
    }
};

TEST_F(EqualVectors, EveryMetric) {
    for (Metric metric : kAllMetrics) {
        for (int64_t q : {1, 3, 9, 20, 150}) {
            expectRight(caseOf(Direct::Never, metric, 40007, q, 5, 10));
            expectRight(caseOf(Direct::Never, metric, 12001, q, 70, 40));
            if (HasFailure()) {
                return;
            }
        }
    }
}

/// Powers that the compiler knows, and others.
TEST_F(EqualVectors, EveryPower) {
    for (float p : {0.5f, 1.f, 1.5f, 2.f, 2.5f, 3.f, 4.f, 2.7f, 7.f}) {
        for (int64_t q : {1, 20}) {
            for (int distinct : {12, 60000}) {
                distinct_ = distinct;
                CertifiedCase c =
                        caseOf(Direct::Never, Metric::Lp, 60011, q, 11, 10);
                c.p = p;
                expectRight(c);
            }
            if (HasFailure()) {
                return;
            }
        }
    }
}

/// Around the number of sets that there is room for, and with few and many
/// ties.
TEST_F(EqualVectors, EveryNumberOfSets) {
    for (int distinct : {1, 2, 31, 300, 2000, 4090, 4500, 6000, 20000}) {
        distinct_ = distinct;
        for (Metric metric : {Metric::L2, Metric::InnerProduct, Metric::L1}) {
            expectRight(caseOf(Direct::Never, metric, 33001, 40, 6, 10));
            values_ = Values::Integers;
            expectRight(caseOf(Direct::Never, metric, 33001, 40, 2, 10));
            values_ = Values::Positive;
            if (HasFailure()) {
                return;
            }
        }
    }
}

/// Fewer vectors in a set, more than are within a limit, and all.
TEST_F(EqualVectors, EveryK) {
    for (int k : {1, 2, 63, 64, 65, 1024, 2048, 2500, 8999, 9001, 9100}) {
        for (int distinct : {3, 150}) {
            distinct_ = distinct;
            for (Metric metric : {Metric::L2, Metric::Linf}) {
                expectRight(caseOf(Direct::Never, metric, 9001, 30, 9, k));
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// So few rows that only a k of many steps makes sets for them, and lists of
/// more than shared memory holds.
TEST_F(EqualVectors, LargeKOfFewRows) {
    for (int k : {6143, 6144, 6145, 8192, 17943}) {
        for (int64_t q : {1, 2, 5}) {
            for (int distinct : {1, 7, 20000}) {
                distinct_ = distinct;
                CertifiedCase c =
                        caseOf(Direct::Never, Metric::L2, 30001, q, 5, k);
                expectRight(c);
                c.metric = Metric::InnerProduct;
                c.dataType = DataType::Float16;
                expectRight(c);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// The lowest numbers of a set are not where the order of the vectors lets
/// expect them, so that a scan up to there finds too few.
TEST_F(EqualVectors, StoredTogether) {
    isTogether_ = true;
    for (Metric metric : {Metric::L2, Metric::L1, Metric::JensenShannon}) {
        for (int64_t q : {3, 20, 150}) {
            for (int k : {10, 3000, 7000}) {
                expectRight(caseOf(Direct::Never, metric, 40007, q, 5, k));
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(EqualVectors, NotFinite) {
    values_ = Values::NotFinite;
    for (Metric metric : kAllMetrics) {
        for (int d : {1, 3, 20}) {
            for (int k : {7, 3000}) {
                distinct_ = 50;
                expectRight(caseOf(Direct::Never, metric, 20003, 35, d, k));
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(EqualVectors, SixteenBitsAndFilters) {
    for (DataType type :
         {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
        for (Metric metric : kAllMetrics) {
            CertifiedCase c = caseOf(Direct::Never, metric, 30001, 21, 13, 10);
            c.dataType = type;
            expectRight(c);
            c.allowedOf = 3;
            expectRight(c);
            c.allowedOf = 200;
            c.k = 200; // more than are allowed
            expectRight(c);
            if (HasFailure()) {
                return;
            }
        }
    }
}

/// Small problems for sanitizers.
TEST_F(EqualVectors, Small) {
    for (Metric metric : {Metric::L2, Metric::L1, Metric::JensenShannon}) {
        for (int64_t q : {3, 20}) {
            expectRight(caseOf(Direct::Never, metric, 2001, q, 5, 10));
        }
    }
    distinct_ = 1500; // too many
    expectRight(caseOf(Direct::Never, Metric::L2, 2001, 20, 5, 10));
    distinct_ = 12;
    expectRight(caseOf(Direct::Never, Metric::L2, 13001, 1, 3, 6200));
}

class InfinitelyFar : public FlatKnnCertified {
   protected:
    /// One of `share` vectors has an infinite component, or `all` of its.
    Result expectRight(const CertifiedCase& c, int share, bool all) {
        SCOPED_TRACE(c.describe() + " share " + std::to_string(share));
        std::mt19937 random(5);
        std::uniform_real_distribution<float> component(-1, 1);
        std::vector<float> vectors(c.n * c.d);
        std::vector<float> queries(c.q * c.d);
        for (auto* values : {&vectors, &queries}) {
            for (float& value : *values) {
                value = component(random);
            }
        }
        for (int64_t i = 0; i < c.n; i += share) {
            const float sign = random() % 2 ? 1.f : -1.f;
            const int at = int(random() % c.d);
            for (int j = 0; j < c.d; ++j) {
                if (all || j == at) {
                    vectors[i * c.d + j] =
                            sign * std::numeric_limits<float>::infinity();
                }
            }
        }
        roundAllTo(c.dataType, vectors);
        roundAllTo(c.dataType, queries);
        const Result result = search(c, vectors, queries);
        check(c, vectors, queries, result);
        return result;
    }
};

/// They do not pass the scan of an image, so that nothing is searched again.
TEST_F(InfinitelyFar, AreNotSearchedAgain) {
    for (int64_t q : {17, 100, 700}) {
        for (int d : {16, 17, 64, 200}) {
            for (bool all : {false, true}) {
                CertifiedCase c =
                        caseOf(Direct::Never, Metric::L2, 60000, q, d, 10);
                c.keptImage = true;
                const Result result = expectRight(c, 3, all);
                if (HasFailure()) {
                    return;
                }
                EXPECT_LE(result.repeated, q / 16) << c.describe();
            }
        }
    }
}

/// Where they are among the results, and other metrics.
TEST_F(InfinitelyFar, AreFoundWhereTheyBelong) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct, Metric::Cosine}) {
        for (int share : {1, 2, 3}) {
            for (int k : {1, 10, 500, 6000}) {
                for (int64_t q : {3, 40, 300}) {
                    expectRight(
                            caseOf(Direct::Never, metric, 9000, q, 24, k),
                            share,
                            k == 10);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
