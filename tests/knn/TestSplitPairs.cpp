/// Canonical distances of all pairs where blocks share tiles of many
/// dimensions.

#include "kernels/knn/all_pairs/SplitPairs.h"
#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

class SplitPairs : public FlatKnnCertified {
   protected:
    static CertifiedCase of(Metric metric, int64_t n, int64_t q, int d) {
        return caseOf(Direct::AllPairs, metric, n, q, d, 5);
    }

    static int partsOf(const CertifiedCase& c) {
        return pairParts(c.q, c.n, c.d, traitsOf(c));
    }

    std::string lack() const override {
        return deviceTraits().computeCapability < 90
                ? "no clusters on this device"
                : "";
    }

    void expectSplit(const CertifiedCase& c, Hard kind) {
        const auto plan = planOf(c).allPairs;
        ASSERT_TRUE(plan && !plan->byDigits) << c.describe();
        ASSERT_EQ(plan->tileQueries, c.q) << c.describe();
        ASSERT_GT(partsOf(c), 0) << c.describe();
        EXPECT_EQ(expectCanonical(c, kind).repeated, 0u) << c.describe();
    }
};

constexpr Metric kMetrics[] = {
        Metric::L2,
        Metric::InnerProduct,
        Metric::Cosine};

/// Of components, parts, queries and vectors.
TEST_F(SplitPairs, BothSidesOfEveryEdge) {
    for (Metric metric : kMetrics) {
        for (int d : {88, 89, 128, 129, 257, 505, 513, 1000}) {
            for (int64_t q : {17, 32, 33, 65}) {
                for (int64_t n : {64, 65, 500}) {
                    expectSplit(of(metric, n, q, d), Hard::Mixed);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
        expectSplit(of(metric, 64, 20, 2048), Hard::Clusters);
        expectSplit(of(metric, 1, 20, 300), Hard::Clusters);
    }
}

TEST_F(SplitPairs, HardData) {
    for (Metric metric : kMetrics) {
        for (Hard kind : kHard) {
            for (int d : {100, 300, 512}) {
                expectSplit(of(metric, 333, 70, d), kind);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(SplitPairs, SixteenBits) {
    for (Metric metric : kMetrics) {
        for (DataType type : {DataType::Float16, DataType::BFloat16}) {
            for (bool exactQueries : {false, true}) {
                for (Hard kind : kHard) {
                    CertifiedCase c = of(metric, 200, 40, 259);
                    c.dataType = type;
                    c.exactQueries = exactQueries;
                    expectSplit(c, kind);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// Each number of parts, and as many tiles as go with it.
TEST_F(SplitPairs, Parts) {
    const int64_t room = deviceTraits().multiprocessors;
    for (int parts : {2, 4, 8}) {
        const int64_t tiles = parts == 2 ? room : room / parts;
        CertifiedCase c = of(Metric::Cosine, 64 * tiles, 20, 520);
        ASSERT_EQ(partsOf(c), parts) << c.describe();
        expectSplit(c, Hard::Mixed);
        c.n += 1;
        EXPECT_EQ(partsOf(c), parts / 2) << c.describe();
        expectCanonical(c, Hard::Mixed);
    }
}

/// Sums of squares are exact, halves between two of float32 among them; and
/// where a row or two are finer than the first query's last bit.
TEST_F(SplitPairs, MultiplesOfAUnit) {
    for (int finer : {0, 1, 2}) {
        for (float offset : {1e4f, 1.0f, 3e7f}) {
            const CertifiedCase c = of(Metric::L2, 300, 70, 300);
            std::vector<float> queries(c.q * c.d);
            std::vector<float> vectors(c.n * c.d);
            uint32_t bits = 1;
            const auto fill = [&](std::vector<float>& rows) {
                for (float& value : rows) {
                    bits = bits * 1664525 + 1013904223;
                    value = offset + float(bits >> 22) * 0x1p-10f;
                }
            };
            fill(queries);
            fill(vectors);
            if (finer > 0) {
                queries[c.d * 40 + 7] = 0x1.234567p-9f;
            }
            if (finer > 1) {
                vectors[c.d * 100 + 299] = -0x1.765432p-15f;
            }
            check(c, vectors, queries, search(c, vectors, queries), 70);
        }
    }
}

/// The definition decides for all pairs of a block: all are one distance apart
/// but for what float64 loses.
TEST_F(SplitPairs, AllPairsInDoubt) {
    for (Metric metric : kMetrics) {
        const CertifiedCase c = of(metric, 300, 64, 520);
        std::vector<float> queries(c.q * c.d);
        std::vector<float> vectors(c.n * c.d);
        // Sums that vanish, of large numbers of both signs.
        for (size_t i = 0; i < queries.size(); ++i) {
            queries[i] = (i % 2 ? 1.0f : -1.0f) * 0x1.234p20f;
        }
        for (size_t i = 0; i < vectors.size(); ++i) {
            vectors[i] = 0x1.87654p20f + float(i % c.d / 2 % 7);
        }
        check(c, vectors, queries, search(c, vectors, queries));
    }
}

TEST_F(SplitPairs, Small) {
    for (Metric metric : kMetrics) {
        expectSplit(of(metric, 70, 20, 130), Hard::Infinite);
        expectSplit(of(metric, 130, 70, 520), Hard::Clusters);
    }
}

} // namespace
} // namespace faiss_bits::test
