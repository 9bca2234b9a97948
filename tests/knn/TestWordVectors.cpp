/// Vectors of words by every metric: every place and every bit is the oracle's,
/// as tests/cpu/TestCpuWords.cpp has it of the CPU.

#include "tests/common/WordVectors.h"
#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

class WordVectors : public FlatKnnCertified {
   protected:
    /// Of 16 bits too: counts are small.
    void expectWords(CertifiedCase c, WordCounts counts) {
        SCOPED_TRACE(c.describe());
        c.d = dimensionsOf(counts);
        const auto vectors = makeWordVectors(counts, c.n, 1);
        const auto queries = makeWordVectors(counts, c.q, 2);
        check(c, vectors, queries, search(c, vectors, queries));
    }
};

TEST_F(WordVectors, EveryMetric) {
    for (WordCounts counts : {WordCounts::Letters, WordCounts::Pairs}) {
        for (Metric metric : kAllMetrics) {
            for (int64_t q : {1, 17, 200}) {
                for (int k : {1, 10, 100}) {
                    CertifiedCase c;
                    c.metric = metric;
                    c.p = 2.5f;
                    c.q = q;
                    c.k = k;
                    expectWords(c, counts);
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_F(WordVectors, SixteenBits) {
    for (WordCounts counts : {WordCounts::Letters, WordCounts::Pairs}) {
        for (Metric metric : kAllMetrics) {
            for (DataType type : {DataType::Float16, DataType::BFloat16}) {
                CertifiedCase c;
                c.metric = metric;
                c.dataType = type;
                c.q = 40;
                c.k = 33;
                expectWords(c, counts);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
