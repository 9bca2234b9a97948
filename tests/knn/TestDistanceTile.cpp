/// Tiles of canonical distances by float64 products: data whose distances the
/// products leave open, in the matrix of all pairs and in the search that looks
/// at all vectors again.

#include "kernels/knn/certified/CertifiedParams.h"
#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

enum class Open {
    FarApart,      ///< two clouds 2e6 apart: float64 norms cancel
    Copies,        ///< queries are copies of vectors, of twelve values
    FarFirst,      ///< queries and vectors near, but for the first of each
    Sparse,        ///< most inner products are sums of nothing
    Counts,        ///< the same where none is negative: small integers
    Sizes,         ///< the same of no integers
    Signs,         ///< 1, 0, -1: sums of 0 that are exact
    Cancelling,    ///< sums of 0 that are so in some orders alone
    Zeros,         ///< many vectors are zero
    LargeIntegers, ///< squared distances halfway between float32 values
    HalfIntegers,  ///< the same by quarters, which are no integers
    Scales,        ///< rows of sizes from 2^-39 to 1: a center hides the small
    Infinite,      ///< a third of all have infinities, in the same component
    InfiniteAndNan ///< the same, of both signs, and NaN
};

const std::vector<Open> kOpen = {
        Open::FarApart,
        Open::Copies,
        Open::FarFirst,
        Open::Sparse,
        Open::Counts,
        Open::Sizes,
        Open::Signs,
        Open::Cancelling,
        Open::Zeros,
        Open::LargeIntegers,
        Open::HalfIntegers,
        Open::Scales,
        Open::Infinite,
        Open::InfiniteAndNan};

std::vector<float> makeOpen(Open kind, int64_t n, int d, uint32_t seed) {
    std::mt19937 random(seed);
    std::mt19937 shared(99);
    std::normal_distribution<float> normal;
    std::vector<float> few(12 * d);
    for (float& one : few) {
        one = normal(shared);
    }
    std::vector<float> values(n * d);
    for (int64_t i = 0; i < n; ++i) {
        const uint32_t which = random();
        for (int j = 0; j < d; ++j) {
            float& value = values[i * d + j];
            const float unit = normal(random);
            switch (kind) {
                case Open::FarApart:
                    value = (which % 2 ? 1e6f : -1e6f) + unit;
                    break;
                case Open::Copies:
                    value = few[which % 12 * d + j];
                    break;
                case Open::FarFirst:
                    value = i == 0 ? 1e9f * unit : unit;
                    break;
                case Open::Sparse:
                    value = random() % 32 == 0 ? unit : 0.f;
                    break;
                case Open::Counts:
                    value = float(random() % 4);
                    break;
                case Open::Sizes:
                    value = random() % 8 == 0 ? std::fabs(unit) : 0.f;
                    break;
                case Open::Signs:
                    value = float(int(random() % 3) - 1);
                    break;
                case Open::Cancelling:
                    value = random() % 2 ? few[j % 2] : -few[j % 2];
                    break;
                case Open::Zeros:
                    value = which % 3 == 0 ? 0.f : unit;
                    break;
                case Open::LargeIntegers:
                    value = float(random() % 40000);
                    break;
                case Open::HalfIntegers:
                    value = float(random() % 80001) / 4;
                    break;
                case Open::Scales:
                    value = std::ldexp(unit, -int(which % 40));
                    break;
                case Open::Infinite:
                case Open::InfiniteAndNan:
                    value = unit;
                    break;
            }
        }
        if (kind >= Open::Infinite && which % 3 == 0) {
            const float odds[] = {HUGE_VALF, -HUGE_VALF, std::nanf("")};
            const int most = kind == Open::Infinite ? 1 : 3;
            values[i * d + d / 2] = odds[which / 3 % most];
        }
    }
    return values;
}

class DistanceTile : public FlatKnnCertified {
   protected:
    const std::vector<Metric> metrics = {
            Metric::L2,
            Metric::InnerProduct,
            Metric::Cosine};

    Result expectOpen(const CertifiedCase& c, Open kind, int64_t most = 400) {
        SCOPED_TRACE(c.describe() + " data " + std::to_string(int(kind)));
        std::vector<float> vectors = makeOpen(kind, c.n, c.d, 1);
        std::vector<float> queries = makeOpen(kind, c.q, c.d, 2);
        roundAllTo(c.dataType, vectors);
        roundAllTo(c.dataType, queries);
        const Result result = search(c, vectors, queries);
        check(c, vectors, queries, result, std::min(c.q, most));
        return result;
    }
};

TEST_F(DistanceTile, AllPairs) {
    for (Open kind : kOpen) {
        for (Metric metric : metrics) {
            for (int d : {1, 7, 8, 9, 16, 24, 25, 40}) {
                for (int64_t n : {255, 257, 600}) {
                    const CertifiedCase c =
                            caseOf(Direct::AllPairs, metric, n, 70, d, 30);
                    ASSERT_TRUE(planOf(c).allPairs);
                    expectOpen(c, kind);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// Wide tiles, of which there must be many.
TEST_F(DistanceTile, ManyPairs) {
    for (Open kind : kOpen) {
        for (Metric metric : metrics) {
            for (int d : {2, 17}) {
                const CertifiedCase c =
                        caseOf(Direct::AllPairs, metric, 5003, 390, d, 20);
                ASSERT_TRUE(planOf(c).allPairs);
                expectOpen(c, kind);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// More queries than slots, and more vectors than one step of the scan.
TEST_F(DistanceTile, ScanAgain) {
    unsigned long long repeated = 0;
    for (Open kind : kOpen) {
        for (Metric metric : metrics) {
            for (int64_t q : {150, int(kMaxScanSlots) + 80}) {
                const int d = q == 150 ? 33 : 4;
                const CertifiedCase c =
                        caseOf(Direct::Never, metric, 20000, q, d, 40);
                repeated += expectOpen(c, kind, 150).repeated;
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
    EXPECT_GT(repeated, 1500u); // of 52,668 queries
}

/// k = 1: by products without lists.
TEST_F(DistanceTile, OneNearest) {
    unsigned long long repeated = 0;
    for (Open kind : kOpen) {
        for (Metric metric : metrics) {
            for (int64_t q : {150, int(kMaxScanSlots) + 80}) {
                const int d = q == 150 ? 33 : 4;
                const CertifiedCase c =
                        caseOf(Direct::Never, metric, 6000, q, d, 1);
                repeated += expectOpen(c, kind, 40).repeated;
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
    EXPECT_GT(repeated, 500u);
}

TEST_F(DistanceTile, SmallOneNearest) {
    for (Open kind : {Open::Zeros, Open::Scales, Open::Infinite}) {
        for (Metric metric : metrics) {
            expectOpen(caseOf(Direct::Never, metric, 600, 80, 20, 1), kind);
        }
    }
}

/// Where the first step of the scan finds hardly a vector, more pass in the
/// next one than a list has room for.
TEST_F(DistanceTile, ListsOverflow) {
    unsigned long long repeated = 0;
    for (size_t scratch : {kLeastScratch, CertifiedCase().maxScratch}) {
        for (Metric metric : {Metric::L2, Metric::Cosine}) {
            for (int percent : {1, 3, 8, 30}) {
                CertifiedCase c =
                        caseOf(Direct::Never, metric, 300000, 60, 4, 12);
                c.maxScratch = scratch;
                SCOPED_TRACE(c.describe());
                auto vectors = makeOpen(Open::FarApart, c.n, c.d, 1);
                const auto queries = makeOpen(Open::FarApart, c.q, c.d, 2);
                // With these, 3% pass the room of the least scratch at once,
                // and 8% that of the usual.
                std::mt19937 random(3);
                for (int64_t i = 0; i < c.n; i += 192) {
                    if (int(random() % 100) >= percent) {
                        std::fill_n(
                                vectors.begin() + i * c.d,
                                std::min<int64_t>(192, c.n - i) * c.d,
                                std::nanf(""));
                    }
                }
                const Result result = search(c, vectors, queries);
                check(c, vectors, queries, result);
                repeated += result.repeated;
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
    EXPECT_GT(repeated, 200u); // of 960
}

/// Vectors along a walk, whose neighbours are nearer than 16 bits tell: lists
/// of the scan overflow, and those of most steps that look at all vectors
/// again.
TEST_F(DistanceTile, AlongAWalk) {
    unsigned long long repeated = 0;
    for (Metric metric : metrics) {
        for (int d : {4, 20}) {
            const CertifiedCase c =
                    caseOf(Direct::Never, metric, 1 << 18, 200, d, 40);
            std::mt19937 random(1);
            std::normal_distribution<float> normal(0, 0.1f);
            std::vector<float> vectors(c.n * d);
            for (size_t i = 0; i < vectors.size(); ++i) {
                const float before = i < size_t(d) ? 0.f : vectors[i - d];
                vectors[i] = before + normal(random);
            }
            std::vector<float> queries(c.q * d);
            for (int64_t i = 0; i < c.q; ++i) {
                const int64_t near = random() % c.n;
                for (int j = 0; j < d; ++j) {
                    queries[i * d + j] = vectors[near * d + j] + normal(random);
                }
            }
            const Result result = search(c, vectors, queries);
            check(c, vectors, queries, result, 20);
            repeated += result.repeated;
            if (HasFailure()) {
                return;
            }
        }
    }
    EXPECT_GT(repeated, 0u); // of 1,200
}

/// Cosines of 1, than which none is nearer: a scan for queries that all have
/// enough of them ends there, of some and others it must not; by tiles, and for
/// few queries.
TEST_F(DistanceTile, CosinesOfOne) {
    unsigned long long repeated = 0;
    for (int lonely : {0, 1, 40}) { // percent of queries that no vector is near
        for (int64_t q : {3, 12, 150, int(kMaxScanSlots) + 80}) {
            for (int k : {3, 200}) {
                const CertifiedCase c =
                        caseOf(Direct::Never, Metric::Cosine, 20000, q, 6, k);
                SCOPED_TRACE(c.describe());
                std::mt19937 random(uint32_t(q + k + lonely));
                std::normal_distribution<float> normal;
                // Most vectors are multiples of one, in eighths, so that their
                // components are no less exact.
                const float line[] = {3, -1, 5, 2, -7, 4};
                const auto fill = [&](std::vector<float>& rows, int percent) {
                    for (size_t i = 0; i < rows.size(); i += c.d) {
                        const bool isOther = int(random() % 100) < percent;
                        const float size = float(1 + random() % 64) / 8;
                        for (int j = 0; j < c.d; ++j) {
                            rows[i + j] =
                                    isOther ? normal(random) : size * line[j];
                        }
                    }
                };
                std::vector<float> vectors(c.n * c.d);
                std::vector<float> queries(c.q * c.d);
                fill(vectors, 30);
                fill(queries, lonely);
                const Result result = search(c, vectors, queries);
                check(c, vectors, queries, result, 150);
                repeated += result.repeated;
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
    EXPECT_GT(repeated, 2000u); // of 7,614
}

/// Of a handful of different vectors each is the nearest of many.
TEST_F(DistanceTile, FewValues) {
    unsigned long long repeated = 0;
    for (Metric metric : metrics) {
        for (int d : {1, 2, 4}) {
            const CertifiedCase c =
                    caseOf(Direct::Never, metric, 40000, 150, d, 5);
            std::mt19937 random(1);
            std::vector<float> vectors(c.n * d);
            std::vector<float> queries(c.q * d);
            for (auto* values : {&vectors, &queries}) {
                for (float& value : *values) {
                    value = float(random() % 3);
                }
            }
            const Result result = search(c, vectors, queries);
            check(c, vectors, queries, result, 60);
            repeated += result.repeated;
            if (HasFailure()) {
                return;
            }
        }
    }
    EXPECT_GE(repeated, 150u); // of 1,350
}

TEST_F(DistanceTile, SixteenBits) {
    for (DataType type : {DataType::Float16, DataType::BFloat16}) {
        for (Open kind : kOpen) {
            for (Metric metric : metrics) {
                CertifiedCase c =
                        caseOf(Direct::AllPairs, metric, 400, 70, 12, 30);
                c.dataType = type;
                expectOpen(c, kind);
                c.direct = Direct::Never;
                c.n = 9000;
                expectOpen(c, kind);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(DistanceTile, Small) {
    for (Open kind : {Open::Sparse, Open::InfiniteAndNan, Open::FarApart}) {
        for (Metric metric : metrics) {
            expectOpen(caseOf(Direct::AllPairs, metric, 300, 70, 10, 9), kind);
            expectOpen(caseOf(Direct::AllPairs, metric, 16100, 65, 3, 9), kind);
            expectOpen(caseOf(Direct::Never, metric, 700, 20, 10, 9), kind);
        }
    }
}

} // namespace
} // namespace faiss_bits::test
