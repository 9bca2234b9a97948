/// The scan of repeated queries of more rows than are met singly: those that
/// are alike make tiles, and warps cut lists.

#include <bit>
#include <cmath>
#include <string>

#include "tests/knn/ScanAgainHarness.h"

namespace faiss_bits::test {
namespace {

/// By the metrics whose tiles are of products.
class ManyScanRows : public GpuTest {
   protected:
    void expectNearest(
            const ScanCase& c,
            const std::vector<float>& vectors,
            const std::vector<float>& queries) {
        expectScanned(
                c,
                vectors,
                queries,
                [&](const ScanAgainParams& params, const auto& check) {
                    const TestStream stream;
                    const auto launch = c.metric == Metric::L2
                            ? launchScanAgain<Metric::L2>
                            : launchScanAgain<Metric::InnerProduct>;
                    launch(params, multiprocessorCount(), stream);
                    check();
                });
    }

    void expectNearest(const ScanCase& c) {
        expectNearest(
                c,
                makeIntegers(size_t(c.n) * c.d, 1),
                makeIntegers(size_t(c.q) * c.d, 2));
    }
};

/// Copies of some kinds of vectors, off by a few units in the last place, and
/// `exactOf` of them, one in so many, not at all.
std::vector<float> makeCopies(
        int64_t rows,
        int d,
        uint32_t kinds,
        uint32_t exactOf,
        uint32_t seed) {
    std::mt19937 shared(9);
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> unit(0.5f, 1.f);
    std::vector<float> centers(size_t(kinds) * d);
    for (float& one : centers) {
        one = unit(shared);
    }
    std::vector<float> values(rows * d);
    for (int64_t i = 0; i < rows; ++i) {
        // Any of them, or one of which the first has half, the next a quarter.
        const uint32_t any = uint32_t(random() % kinds);
        const uint32_t few = uint32_t(std::countr_zero(random() | 1u << 31));
        const uint32_t kind = random() % 2 ? any : std::min(few, kinds - 1);
        const bool isExact = random() % exactOf == 0;
        for (int j = 0; j < d; ++j) {
            const float off = float(int(random() % 17) - 8) * 0x1p-24f;
            values[i * d + j] =
                    centers[size_t(kind) * d + j] + (isExact ? 0.f : off);
        }
    }
    return values;
}

/// Numbers of tiles around those that blocks have at a time.
TEST_F(ManyScanRows, TurnsOfAllBlocks) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (uint32_t q : {65u, 276u, 1024u}) {
            for (int64_t n : {1537, 1600, 5000, 7876, 9000}) {
                for (int k : {2, 99}) {
                    ScanCase c;
                    c.metric = metric;
                    c.n = n;
                    c.q = q;
                    c.k = k;
                    c.d = 5;
                    c.room = 8192;
                    SCOPED_TRACE(
                            std::to_string(q) + " rows of " +
                            std::to_string(n) + ", k = " + std::to_string(k));
                    expectNearest(c);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// Copies that differ in their last bits: slots of a kind make tiles, where
/// components are many. With 17 kinds and more some are not told apart; of 64
/// rows all are one tile.
TEST_F(ManyScanRows, KindsOfCopies) {
    ScanCase c;
    c.n = 1011;
    c.k = 40;
    for (const uint32_t kinds : {1u, 4u, 40u}) {
        for (const uint32_t q : {64u, 65u, 200u}) {
            for (const int d : {3, 512}) {
                // More may be as near as can be than are wanted.
                for (const uint32_t exactOf : {2u, 50u}) {
                    SCOPED_TRACE(
                            std::to_string(kinds) + " kinds, " +
                            std::to_string(q) + " rows of " +
                            std::to_string(d));
                    c.q = q;
                    c.d = d;
                    expectNearest(
                            c,
                            makeCopies(c.n, d, kinds, exactOf, 1),
                            makeCopies(q, d, kinds, exactOf, 2));
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// Queries that are not finite, the first one among them, and far ones.
TEST_F(ManyScanRows, KindsWithOddRows) {
    ScanCase c;
    c.n = 1011;
    c.k = 40;
    c.d = 520;
    c.q = 150;
    const auto vectors = makeCopies(c.n, c.d, 4, 50, 1);
    for (const float odd : {HUGE_VALF, -HUGE_VALF, NAN, 1e30f, -1e-30f}) {
        for (const uint32_t at : {0u, 77u}) {
            auto queries = makeCopies(c.q, c.d, 4, 50, 2);
            queries[at * c.d] = odd;
            queries[(at + 5) * c.d + 3] = odd;
            expectNearest(c, vectors, queries);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

/// Lists that a warp cuts, as blocks have several, and longer ones; the last
/// rows make a turn of their own. Around what a warp sorts in the end.
TEST_F(ManyScanRows, MoreThanBlocks) {
    ScanCase c;
    c.room = 8192;
    const uint32_t blocks = uint32_t(multiprocessorCount());
    for (const int64_t n : {3011, 5011}) {
        for (const int k : {1, 257, 768}) {
            for (const uint32_t q : {blocks + 1, uint32_t(kMaxScanSlots) + 3}) {
                SCOPED_TRACE(
                        "k " + std::to_string(k) + ", " + std::to_string(q));
                c.n = n;
                c.k = k;
                c.q = q;
                c.metric = k % 2 != 0 ? Metric::InnerProduct : Metric::L2;
                expectNearest(c);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

/// The same of few vectors.
TEST_F(ManyScanRows, ShortLists) {
    ScanCase c;
    c.n = 700;
    c.k = 10;
    c.q = uint32_t(multiprocessorCount()) + 9;
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        c.metric = metric;
        expectNearest(c);
    }
}

/// Around those that eight lanes meet with each vector.
TEST_F(ManyScanRows, AboutSixteen) {
    ScanCase c;
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (uint32_t q : {8u, 9u, 15u, 16u, 17u}) {
            for (int64_t n : {300, 30011}) {
                c.metric = metric;
                c.q = q;
                c.n = n;
                c.k = 100;
                SCOPED_TRACE(std::to_string(q) + " of " + std::to_string(n));
                expectNearest(c);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
