/// Certified searches whose threads share the vectors, and rescore candidates
/// among their own: on both sides of where that pays.

#include <string>

#include <gtest/gtest.h>

#include "tests/cpu/CpuHarness.h"

namespace faiss_bits::test {
namespace {

template <class T>
void expectSameBits(CpuCase c) {
    c.mode = SearchMode::Certified;
    const CpuData<T> data(c);
    const CpuResult<T> expected = data.canonicalResult();
    for (const cpu::Variant variant :
         {cpu::Variant::Auto, cpu::Variant::Buffered}) {
        cpu::Choice choice;
        choice.variant = variant;
        for (const int threads : {2, 3, 7}) {
            EXPECT_EQ(data.run(choice, threads), expected)
                    << c.describe() << " " << nameOf(variant) << " " << threads
                    << " threads";
        }
    }
}

template <class T>
void expectSameBitsOfAll(Metric metric) {
    for (const Contents contents : kAllContents) {
        // Components of the candidates of a thread: 2^17 is the least.
        for (const idx_t k : {1, 90, 700, 2100}) {
            for (const idx_t q : {1, 11}) {
                CpuCase c;
                c.metric = metric;
                c.contents = contents;
                c.q = q;
                c.n = 2100;
                c.d = 100;
                c.k = k;
                expectSameBits<T>(c);
            }
        }
    }
}

TEST(CpuByParts, FloatsHaveTheSameBits) {
    expectSameBitsOfAll<float>(Metric::L2);
    expectSameBitsOfAll<float>(Metric::InnerProduct);
}

TEST(CpuByParts, DoublesHaveTheSameBits) {
    expectSameBitsOfAll<double>(Metric::L2);
}

/// Vectors that are picked from among others, and many rows.
TEST(CpuByParts, PicksHaveTheSameBits) {
    for (const idx_t q : {5, 60}) {
        CpuCase c;
        c.q = q;
        c.n = 1500;
        c.d = 128;
        c.k = 300;
        c.pickQueries = c.pickVectors = true;
        expectSameBits<float>(c);
    }
}

} // namespace
} // namespace faiss_bits::test
