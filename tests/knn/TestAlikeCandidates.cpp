/// Searches of which more candidates are alike than are compared one with
/// another: they are sorted (SortAlike.cuh).

#include <algorithm>
#include <numeric>

#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

/// Rows of candidates that are alike, more of them than blocks: each is sorted
/// by one block, and none is searched again.
class AlikeCandidates : public FlatKnnCertified {
   protected:
    /// k: 0 stands for all.
    void expectSorted(Metric metric, int64_t n, int64_t q, int k = 0) {
        const CertifiedCase c =
                caseOf(Direct::Never, metric, n, q, 4, k > 0 ? k : int(n));
        SCOPED_TRACE(c.describe());
        std::mt19937 random(3);
        std::vector<float> vectors(n * c.d);
        std::vector<float> queries(q * c.d);
        for (auto* values : {&vectors, &queries}) {
            for (float& value : *values) {
                value = float(random() % 2 + 1);
            }
        }
        const Result result = search(c, vectors, queries);
        check(c, vectors, queries, result, 40);
        EXPECT_EQ(result.repeated, 0u);
    }

    /// `near` of 20,000 vectors at few distances, all others far away.
    Result expectOfSome(Metric metric, int64_t near, int64_t q, int k) {
        const CertifiedCase c = caseOf(Direct::Never, metric, 20000, q, 4, k);
        SCOPED_TRACE(c.describe() + " near " + std::to_string(near));
        std::mt19937 random(3);
        std::vector<float> vectors(c.n * c.d);
        std::vector<float> queries(q * c.d);
        for (auto* values : {&vectors, &queries}) {
            for (float& value : *values) {
                value = float(random() % 2 + 1);
            }
        }
        std::vector<int64_t> order(c.n);
        std::iota(order.begin(), order.end(), int64_t(0));
        std::shuffle(order.begin(), order.end(), random);
        for (int64_t i = near; i < c.n; ++i) {
            vectors[order[i] * c.d] += 1000.f + float(i);
        }
        const Result result = search(c, vectors, queries);
        check(c, vectors, queries, result, 40);
        return result;
    }
};

/// Candidates that are not all vectors: what comes behind the last result says
/// whether they are enough.
TEST_F(AlikeCandidates, SomeOfAll) {
    for (Metric metric : {Metric::L1, Metric::Lp}) {
        for (int k : {2500, 6000, 6100, 7000}) {
            for (int64_t q : {1, 2, 300}) {
                EXPECT_EQ(expectOfSome(metric, k, q, k).repeated, 0u);
                // As far as the last result are more than are candidates.
                EXPECT_EQ(
                        expectOfSome(metric, 2 * k, q, k).repeated,
                        uint64_t(q));
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Nearly all vectors are wanted, and as far as the last one are more than
/// would be candidates: all are, and nothing is searched again.
TEST_F(AlikeCandidates, NearlyAll) {
    for (Metric metric :
         {Metric::L1, Metric::Linf, Metric::Canberra, Metric::JensenShannon}) {
        for (int k : {17600, 19000}) {
            for (int64_t q : {1, 2, 150}) {
                EXPECT_EQ(expectOfSome(metric, 20000, q, k).repeated, 0u);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Fewer, which shared memory has room for.
TEST_F(AlikeCandidates, NearlyAllOfFew) {
    for (Metric metric : {Metric::Lp, Metric::Canberra, Metric::BrayCurtis}) {
        expectSorted(metric, 5000, 40, 4600);
        expectSorted(metric, 8083, 20, 7100);
    }
}

/// Of fewer rows than blocks, around the pieces that are sorted.
TEST_F(AlikeCandidates, FewRows) {
    for (int64_t n : {2047, 2048, 2049, 4097, 6144, 6145, 8192, 8193, 30000}) {
        for (int64_t q : {1, 3}) {
            expectSorted(Metric::L1, n, q);
            if (HasFailure()) {
                return;
            }
        }
    }
}

/// In shared memory, and in the lists, where two blocks must not meet.
TEST_F(AlikeCandidates, ManyRows) {
    for (Metric metric : {Metric::L1, Metric::Lp}) {
        for (int64_t n : {3000, 6143, 6144, 6145, 9000}) {
            expectSorted(metric, n, 1100);
            if (HasFailure()) {
                return;
            }
        }
    }
}

TEST_F(AlikeCandidates, SmallRows) {
    expectSorted(Metric::L1, 1100, 300);
    expectSorted(Metric::L1, 6200, 2); // by all blocks
}

/// Copies of four vectors that differ in their last bits, most of which are
/// results: many components of a pair are equal, by which Canberra divides 0.
TEST_F(AlikeCandidates, NearCopies) {
    for (Metric metric :
         {Metric::Canberra, Metric::JensenShannon, Metric::L2}) {
        const CertifiedCase c =
                caseOf(Direct::Never, metric, 8083, 20, 41, 6797);
        SCOPED_TRACE(c.describe());
        std::mt19937 random(5);
        std::vector<float> centers(4 * c.d);
        for (float& one : centers) {
            one = 0.01f + float(random() % 1000) / 1000;
        }
        std::vector<float> vectors(c.n * c.d);
        std::vector<float> queries(c.q * c.d);
        for (auto* values : {&vectors, &queries}) {
            for (size_t i = 0; i < values->size(); i += c.d) {
                const size_t center = random() % 4 * c.d;
                for (int j = 0; j < c.d; ++j) {
                    (*values)[i + j] = centers[center + j] +
                            0x1p-24f * float(int(random() % 9) - 4);
                }
            }
        }
        const Result result = search(c, vectors, queries);
        check(c, vectors, queries, result, 6);
        EXPECT_EQ(result.repeated, 0u);
        if (HasFailure()) {
            return;
        }
    }
}

} // namespace
} // namespace faiss_bits::test
