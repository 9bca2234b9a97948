/// Certified searches: every place is the canonical one, bit for bit, on data
/// whose float32 distances mislead; and the proof fails where it should.

#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

TEST_F(FlatKnnCertified, HardData) {
    for (Hard kind : kHard) {
        for (Metric metric : kMetrics) {
            for (int64_t q : {1, 2, 16, 17, 64, 200}) {
                for (int d : {1, 3, 8, 33, 128}) {
                    CertifiedCase c;
                    c.metric = metric;
                    c.q = q;
                    c.d = d;
                    expectCanonical(c, kind);
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_F(FlatKnnCertified, HardDataOfSixteenBits) {
    for (Hard kind : kHard) {
        for (Metric metric : kMetrics) {
            for (DataType type : {DataType::Float16, DataType::BFloat16}) {
                for (bool exactQueries : {false, true}) {
                    for (int64_t q : {3, 40}) {
                        CertifiedCase c;
                        c.metric = metric;
                        c.dataType = type;
                        c.exactQueries = exactQueries;
                        c.q = q;
                        c.d = 40;
                        c.k = 33;
                        expectCanonical(c, kind);
                        if (HasFatalFailure()) {
                            return;
                        }
                    }
                }
            }
        }
    }
}

const std::vector<Metric> kOtherMetrics = {
        Metric::L1,
        Metric::Linf,
        Metric::Lp,
        Metric::Cosine,
        Metric::Canberra,
        Metric::BrayCurtis,
        Metric::JensenShannon,
        Metric::Jaccard};

TEST_F(FlatKnnCertified, HardDataByEveryMetric) {
    for (Hard kind : kHard) {
        for (Metric metric : kOtherMetrics) {
            for (float p : {0.5f, 3.f, 2.5f, 7.3f}) {
                for (int64_t q : {2, 40}) {
                    for (int d : {3, 40}) {
                        CertifiedCase c;
                        c.metric = metric;
                        c.p = p;
                        c.n = 2000;
                        c.q = q;
                        c.d = d;
                        expectCanonical(c, kind);
                        if (HasFatalFailure()) {
                            return;
                        }
                    }
                }
                if (metric != Metric::Lp) {
                    break;
                }
            }
        }
    }
}

/// Of which a power below 1 is a number of float32.
TEST_F(FlatKnnCertified, DifferencesBeyondFloat32) {
    const auto expectOf = [&](Metric metric, float p) {
        for (int64_t q : {1, 2, 40}) {
            for (int d : {1, 3, 40}) {
                CertifiedCase c;
                c.metric = metric;
                c.p = p;
                c.n = 2000;
                c.q = q;
                c.d = d;
                expectCanonical(c, Hard::Ends);
            }
        }
    };
    for (Metric metric : kOtherMetrics) {
        if (metric != Metric::Lp) {
            expectOf(metric, 3);
        }
    }
    for (float p : {0.1f, 0.5f, 0.7f, 0.99f, 1.0f, 1.5f, 3.0f}) {
        expectOf(Metric::Lp, p);
    }
}

TEST_F(FlatKnnCertified, HardDataOfSixteenBitsByEveryMetric) {
    for (Hard kind : kHard) {
        for (Metric metric : kOtherMetrics) {
            for (bool exactQueries : {false, true}) {
                if (metric == Metric::Cosine && exactQueries) {
                    continue; // no index has both
                }
                CertifiedCase c;
                c.metric = metric;
                c.dataType = DataType::Float16;
                c.exactQueries = exactQueries;
                c.n = 1000;
                expectCanonical(c, kind);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(FlatKnnCertified, Filters) {
    for (Hard kind : {Hard::Offset, Hard::Bytes, Hard::Infinite}) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct, Metric::L1}) {
            for (int allowedOf : {1, 2, 300, 5000}) {
                for (int64_t q : {1, 16, 17, 70}) {
                    CertifiedCase c;
                    c.metric = metric;
                    c.allowedOf = allowedOf;
                    c.q = q;
                    c.k = 20;
                    expectCanonical(c, kind);
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// Both sides of where rows get several blocks, of shared memory, of n.
TEST_F(FlatKnnCertified, EveryK) {
    for (Hard kind : {Hard::Offset, Hard::Bytes, Hard::Duplicates}) {
        for (int k :
             {1,
              2,
              100,
              220,
              231,
              250,
              1000,
              2031,
              2032,
              2033,
              2048,
              2049,
              3900,
              4999,
              5000,
              5001,
              7000}) {
            for (int64_t q : {2, 70}) {
                CertifiedCase c;
                c.n = 5000;
                c.q = q;
                c.k = k;
                c.d = 16;
                expectCanonical(c, kind);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

/// Most vectors are NaN, and some queries: lists have room for more than k, and
/// fewer numbers than that.
TEST_F(FlatKnnCertified, FewNumbers) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct, Metric::Cosine}) {
        for (int64_t q : {70, 1200}) {
            for (int k : {10, 30, 40, 300, 900}) {
                for (int numbers : {0, 1, k - 1, k, k + 1}) {
                    CertifiedCase c;
                    c.metric = metric;
                    c.n = 9000;
                    c.q = q;
                    c.d = 12;
                    c.k = k;
                    SCOPED_TRACE("numbers " + std::to_string(numbers));
                    auto vectors = makeHard(Hard::Clusters, c.n, c.d, 1);
                    auto queries = makeHard(Hard::Clusters, c.q, c.d, 2);
                    for (int64_t i = 0; i < c.n; ++i) {
                        if (i % 7 != 3 || i / 7 >= numbers) {
                            vectors[i * c.d + i % c.d] = std::nanf("");
                        }
                    }
                    for (int64_t i = 2; i < c.q; i += 5) {
                        queries[i * c.d + i % c.d] = std::nanf("");
                    }
                    check(c, vectors, queries, search(c, vectors, queries));
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// The scan of repeated queries in as little scratch as there may be, for more
/// of them than have a place at once.
TEST_F(FlatKnnCertified, LittleScratch) {
    for (Hard kind : {Hard::Offset, Hard::Duplicates, Hard::Infinite}) {
        for (int64_t q : {1, 5, 300}) {
            for (size_t scratch : {kLeastScratch, size_t(8) << 20}) {
                CertifiedCase c;
                c.n = 70001;
                c.q = q;
                c.d = 12;
                c.k = 40;
                c.maxScratch = scratch;
                expectCanonical(c, kind);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(FlatKnnCertified, FewVectors) {
    for (int64_t n : {1, 2, 9, 10, 11, 26, 27, 100}) {
        for (Hard kind : kHard) {
            CertifiedCase c;
            c.n = n;
            c.q = 30;
            expectCanonical(c, kind);
        }
    }
}

TEST_F(FlatKnnCertified, SameBitsInEveryBatch) {
    for (Hard kind : {Hard::Offset, Hard::Terrain, Hard::Clusters}) {
        for (Metric metric : kMetrics) {
            CertifiedCase c;
            c.metric = metric;
            c.n = 20001;
            c.q = 1000;
            c.d = 50;
            const auto vectors = makeHard(kind, c.n, c.d, 1);
            const auto queries = makeHard(kind, c.q, c.d, 2);
            const KnnResult whole = search(c, vectors, queries);
            check(c, vectors, queries, whole, 4);
            for (int64_t batch : {1, 2, 16, 17, 64}) {
                CertifiedCase part = c;
                part.q = batch;
                const std::vector<float> first(
                        queries.begin(), queries.begin() + batch * c.d);
                const KnnResult result = search(part, vectors, first);
                for (int64_t i = 0; i < batch * c.k; ++i) {
                    ASSERT_EQ(result.ids[i], whole.ids[i]) << batch;
                    ASSERT_TRUE(
                            sameBits(result.distances[i], whole.distances[i]))
                            << batch;
                }
            }
        }
    }
}

/// The proof holds for ordinary data, and not where float32 cannot tell.
TEST_F(FlatKnnCertified, CountsWhatIsRepeated) {
    CertifiedCase c;
    c.q = 100;
    c.d = 64;
    EXPECT_EQ(expectCanonical(c, Hard::Bytes).repeated, 0u);
    EXPECT_EQ(expectCanonical(c, Hard::Offset).repeated, 100u);
    // All vectors are candidates: nothing to prove.
    c.n = 20;
    EXPECT_EQ(expectCanonical(c, Hard::Offset).repeated, 0u);
}

TEST_F(FlatKnnCertified, SmallHardData) {
    for (Hard kind : {Hard::Offset, Hard::Bytes, Hard::Infinite}) {
        for (int k : {3, 300}) {
            for (int64_t q : {2, 6, 20}) {
                CertifiedCase c;
                c.n = 700;
                c.q = q;
                c.d = 9;
                c.k = k;
                c.metric = q == 6 ? Metric::InnerProduct : Metric::L2;
                c.idType = IdType::Int32;
                expectCanonical(c, kind);
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
