/// Searches by the canonical distances of all pairs.

#include <limits>

#include "kernels/knn/direct/DirectSpread.h"
#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

class DirectKnn : public FlatKnnCertified {
   protected:
    static CertifiedCase of(Metric metric, int64_t n, int64_t q, int d, int k) {
        return caseOf(Direct::Always, metric, n, q, d, k);
    }

    /// Whether several blocks finish a query.
    static bool isSpread(const CertifiedCase& c) {
        const FlatKnnPlan plan = planOf(c);
        return plan.direct && plan.direct->spread;
    }

    void expectDirect(const CertifiedCase& c, Hard kind) {
        ASSERT_TRUE(planOf(c).direct) << c.describe();
        EXPECT_EQ(expectCanonical(c, kind).repeated, 0u);
    }

    /// The same of vectors of one's own making.
    void expectDirect(
            const CertifiedCase& c,
            const std::vector<float>& vectors,
            const std::vector<float>& queries) {
        ASSERT_TRUE(planOf(c).direct) << c.describe();
        check(c, vectors, queries, search(c, vectors, queries));
    }
};

TEST_F(DirectKnn, HardData) {
    for (Hard kind : kHard) {
        for (Metric metric : kDirectMetrics) {
            for (int64_t q : {1, 2, 5, 20}) {
                for (int d : {1, 7, 8, 33, 130}) {
                    expectDirect(of(metric, 2005, q, d, 10), kind);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// Eight lanes a pair, and on the other side of that a lane.
TEST_F(DirectKnn, BothSidesOfFewPairs) {
    for (Metric metric : kDirectMetrics) {
        for (auto [n, q] : std::vector<std::pair<int64_t, int64_t>>{
                     {33, 2}, {4096, 8}, {4097, 8}, {32768, 1}, {32769, 1}}) {
            for (int d : {63, 64, 131}) {
                expectDirect(of(metric, n, q, d, 10), Hard::Mixed);
                CertifiedCase c = of(metric, n, q, d, 40);
                c.allowedOf = 3;
                c.holes = n % 2 ? 5 : -1;
                expectDirect(c, Hard::Duplicates);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Units, groups of units, and whole tiles of the finish.
TEST_F(DirectKnn, BothSidesOfEveryNumberOfVectors) {
    for (int64_t n : {1,    2,    31,    32,    33,     63,    64,   65,
                      127,  128,  129,   1023,  1024,   1025,  4095, 4096,
                      4097, 9999, 65536, 65537, 131071, 262145}) {
        for (int64_t q : {1, 3}) {
            for (int k : {1, 10, 100}) {
                expectDirect(of(Metric::L2, n, q, 5, k), Hard::Bytes);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(DirectKnn, EveryK) {
    for (Hard kind : {Hard::Bytes, Hard::Offset, Hard::Duplicates}) {
        for (int k :
             {1,
              2,
              31,
              32,
              33,
              64,
              65,
              127,
              128,
              129,
              511,
              512,
              513,
              1023,
              1024,
              1025,
              2047,
              2048}) {
            for (int64_t n : {50, 2000, 100001}) {
                CertifiedCase c = of(Metric::L2, n, 2, 4, k);
                c.idType = k % 2 ? IdType::Int32 : IdType::Int64;
                expectDirect(c, kind);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(DirectKnn, EveryDimension) {
    for (Metric metric : kDirectMetrics) {
        for (int d : {1,  2,  15,  16,  17,  31,   32,   33,   63,   64,  65,
                      96, 97, 128, 255, 768, 1023, 1024, 1025, 4095, 4096}) {
            for (int64_t q : {1, 4}) {
                expectDirect(of(metric, 333, q, d, 7), Hard::Mixed);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
    CertifiedCase c = of(Metric::L2, 333, 1, 4097, 7);
    EXPECT_FALSE(planOf(c).direct);
}

TEST_F(DirectKnn, SixteenBits) {
    for (Hard kind : {Hard::Offset, Hard::Bytes, Hard::Mixed, Hard::Infinite}) {
        for (Metric metric : kDirectMetrics) {
            for (DataType type : {DataType::Float16, DataType::BFloat16}) {
                for (int d : {37, 40, 96}) {
                    CertifiedCase c = of(metric, 3000, 5, d, 20);
                    c.dataType = type;
                    c.exactQueries = d == 40 &&
                            (metric == Metric::L2 ||
                             metric == Metric::InnerProduct);
                    expectDirect(c, kind);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_F(DirectKnn, Filters) {
    for (Hard kind : {Hard::Bytes, Hard::Duplicates, Hard::Infinite}) {
        for (int allowedOf : {1, 2, 7, 100, 5000}) {
            for (int holes : {-1, 0, 1, 77}) {
                for (int64_t q : {1, 6}) {
                    for (int k : {1, 10, 300}) {
                        CertifiedCase c =
                                of(Metric::L2, 20011, q, holes % 2 ? 9 : 8, k);
                        c.allowedOf = allowedOf;
                        c.holes = holes;
                        expectDirect(c, kind);
                        if (HasFailure()) {
                            return;
                        }
                    }
                }
            }
        }
    }
}

/// Every least of a group is the same, or is the best of all, or there is none.
TEST_F(DirectKnn, GroupsThatAreAlike) {
    constexpr int64_t kVectors = 70000;
    for (int k : {1, 10, 100, 2048}) {
        CertifiedCase c = of(Metric::L2, kVectors, 2, 2, k);
        std::vector<float> queries(c.q * c.d, 0.5f);
        std::vector<float> equal(c.n * c.d, 1.0f);
        expectDirect(c, equal, queries);

        std::vector<float> ascending(c.n * c.d);
        for (int64_t i = 0; i < c.n; ++i) {
            ascending[i * c.d] = float(i);
        }
        expectDirect(c, ascending, queries);
        std::vector<float> descending = ascending;
        for (int64_t i = 0; i < c.n; ++i) {
            descending[i * c.d] = float(c.n - i);
        }
        expectDirect(c, descending, queries);

        // One of the best in each of 33 vectors.
        std::vector<float> saw = ascending;
        for (int64_t i = 0; i < c.n; ++i) {
            saw[i * c.d] = float(i % 33);
        }
        expectDirect(c, saw, queries);

        for (int64_t numbers : {0, 1, 9, 10, 11, 150}) {
            std::vector<float> few(c.n * c.d, std::nanf(""));
            for (int64_t i = 0; i < numbers; ++i) {
                std::fill_n(few.begin() + i * 451 * c.d, c.d, float(i % 4));
            }
            expectDirect(c, few, queries);
        }
        if (HasFailure()) {
            return;
        }
    }
}

/// Vectors of which several blocks find the k best: as many as there have to
/// be for a k.
constexpr int64_t leastSpread(int k) {
    return int64_t(kLeastSpreadGroups) * k * kDirectUnit;
}

/// Most queries that have so many blocks each.
int64_t mostSpread() {
    return deviceTraits().multiprocessors / kSpreadBlocks;
}

TEST_F(DirectKnn, SeveralBlocksOfHardData) {
    if (mostSpread() == 0) {
        GTEST_SKIP() << "one block finishes a query of a GPU as small as this";
    }
    for (Hard kind : kHard) {
        for (int k : {513, 1024, 1025, 2048}) {
            for (int64_t q : {int64_t(1), mostSpread()}) {
                CertifiedCase c = of(Metric::L2, leastSpread(k), q, 3, k);
                ASSERT_TRUE(isSpread(c)) << c.describe();
                c.idType = k % 2 ? IdType::Int32 : IdType::Int64;
                expectDirect(c, kind);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(DirectKnn, BothSidesOfSeveralBlocks) {
    if (mostSpread() == 0) {
        GTEST_SKIP() << "one block finishes a query of a GPU as small as this";
    }
    const int k = 600;
    const int64_t n = leastSpread(k);
    const auto expectSpread = [&](CertifiedCase c, bool expected) {
        EXPECT_EQ(isSpread(c), expected) << c.describe();
        expectDirect(c, Hard::Bytes);
    };
    expectSpread(of(Metric::L2, n, 1, 5, k), true);
    expectSpread(of(Metric::L2, n - kDirectUnit, 1, 5, k), false);
    expectSpread(of(Metric::L2, n, 1, 5, 512), false);
    expectSpread(of(Metric::L2, n, mostSpread(), 5, k), true);
    expectSpread(of(Metric::L2, n, mostSpread() + 1, 5, k), false);
}

/// Where the limit lets too few through, or more than there is room for: of one
/// block, and of all.
TEST_F(DirectKnn, SeveralBlocksOfVectorsThatAreAlike) {
    if (mostSpread() == 0) {
        GTEST_SKIP() << "one block finishes a query of a GPU as small as this";
    }
    for (int k : {600, 2000}) {
        const int64_t n = leastSpread(k) + 77;
        CertifiedCase c =
                of(Metric::L2, n, std::min<int64_t>(mostSpread(), 2), 2, k);
        ASSERT_TRUE(isSpread(c)) << c.describe();
        const std::vector<float> queries(c.q * c.d, 0.5f);
        const DirectPlan plan = *planOf(c).direct;
        const auto unitOf = [&](int64_t i) {
            return (i >> plan.logRun) % (int64_t(plan.groups) << plan.logUnits);
        };
        const auto expectAll = [&](auto valueOf) {
            std::vector<float> vectors(n * c.d);
            for (int64_t i = 0; i < n; ++i) {
                std::fill_n(vectors.begin() + i * c.d, c.d, float(valueOf(i)));
            }
            expectDirect(c, vectors, queries);
        };
        const auto nan = std::nanf("");
        expectAll([](int64_t) { return 1; });
        expectAll([](int64_t i) { return i; });
        expectAll([&](int64_t i) { return n - i; });
        expectAll([](int64_t i) { return i % 33; });
        // The best are all in one block's groups.
        expectAll([&](int64_t i) {
            return unitOf(i) % kSpreadBlocks == 5 ? 1 : 3;
        });
        expectAll([&](int64_t i) {
            return unitOf(i) % kSpreadBlocks == 5 ? i % 1000 : 5000;
        });
        // The best are in the groups of one value of one thread.
        expectAll([&](int64_t i) {
            return unitOf(i) % 8192 == 77 ? 1 : 3 + i % 1000;
        });
        // In fewer groups than k.
        expectAll([&](int64_t i) { return i < 1000 ? float(i) : nan; });
        expectAll([&](int64_t i) { return i % 99991 == 0 ? 2.0f : nan; });
        expectAll([&](int64_t) { return nan; });
        expectAll([](int64_t i) {
            return i % 100 == 3 ? i : std::numeric_limits<double>::infinity();
        });
        if (HasFailure()) {
            return;
        }
    }
}

TEST_F(DirectKnn, SeveralBlocksOfAllowedVectors) {
    if (mostSpread() < 2) {
        GTEST_SKIP() << "one block finishes a query of a GPU as small as this";
    }
    for (Hard kind : {Hard::Bytes, Hard::Duplicates, Hard::Infinite}) {
        for (int allowedOf : {1, 2, 7, 1000}) {
            for (int holes : {-1, 0, 70000}) {
                CertifiedCase c = of(Metric::L2, 140000, 2, 3, 520);
                c.allowedOf = allowedOf;
                c.holes = holes;
                // One of seven, and of a thousand, are too few.
                ASSERT_TRUE(allowedOf > 1 || isSpread(c)) << c.describe();
                expectDirect(c, kind);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(DirectKnn, SmallOfSeveralBlocks) {
    if (mostSpread() == 0) {
        GTEST_SKIP() << "one block finishes a query of a GPU as small as this";
    }
    for (Hard kind : {Hard::Bytes, Hard::Duplicates}) {
        CertifiedCase c = of(Metric::L2, leastSpread(513), 1, 1, 513);
        ASSERT_TRUE(isSpread(c)) << c.describe();
        expectDirect(c, kind);
    }
}

/// More queries than a block has, and than the GPU has blocks for.
TEST_F(DirectKnn, ManyQueries) {
    for (int64_t q : {17, 130, 1000, 1024}) {
        expectDirect(of(Metric::InnerProduct, 300, q, 6, 12), Hard::Clusters);
    }
    EXPECT_FALSE(planOf(of(Metric::L2, 300, 1025, 6, 12)).direct);
}

TEST_F(DirectKnn, RefusesMetricsOfDearTerms) {
    for (Metric metric : {Metric::Canberra, Metric::Lp}) {
        EXPECT_FALSE(planOf(of(metric, 100, 1, 16, 10)).direct);
    }
}

TEST_F(DirectKnn, CountsWhatItComputes) {
    for (int64_t q : {1, 6}) {
        CertifiedCase c = of(Metric::L2, 1000, q, 6, 12);
        const auto vectors = makeHard(Hard::Bytes, c.n, c.d, 1);
        const auto queries = makeHard(Hard::Bytes, c.q, c.d, 2);
        EXPECT_EQ(search(c, vectors, queries).rescored, unsigned(1000 * q));
        c.allowedOf = 10;
        EXPECT_EQ(search(c, vectors, queries).rescored, unsigned(100 * q));
        c.holes = 50;
        EXPECT_EQ(search(c, vectors, queries).rescored, unsigned(100 * q));
    }
}

TEST_F(DirectKnn, SmallOfEveryKind) {
    for (Metric metric : kDirectMetrics) {
        for (int64_t q : {1, 5}) {
            expectDirect(of(metric, 700, q, 19, 12), Hard::Duplicates);
            expectDirect(of(metric, 700, q, 36, 12), Hard::Duplicates);
        }
    }
    for (int k : {40, 600, 1100}) {
        expectDirect(of(Metric::L2, 3000, 2, 3, k), Hard::Clusters);
    }
    CertifiedCase c = of(Metric::L2, 3000, 3, 9, 5);
    c.allowedOf = 7;
    expectDirect(c, Hard::Infinite);
    c.holes = 3;
    c.d = 72;
    expectDirect(c, Hard::Infinite);
    c.dataType = DataType::BFloat16;
    expectDirect(c, Hard::Bytes);
}

} // namespace
} // namespace faiss_bits::test
