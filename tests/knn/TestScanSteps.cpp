/// The steps of the scan of repeated queries: what each block decides by
/// itself has to be the same in all, or they wait for one another for ever.

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "kernels/knn/ByMetric.h"
#include "tests/knn/ScanAgainHarness.h"

namespace faiss_bits::test {
namespace {

class ScanSteps : public GpuTest {
   protected:
    /// Several times, as it is a matter of which warps come first.
    void expectNearest(
            const ScanCase& c,
            const std::vector<float>& vectors,
            const std::vector<float>& queries) {
        constexpr int kTimes = 4;
        expectScanned(
                c,
                vectors,
                queries,
                [&](const ScanAgainParams& params, const auto& check) {
                    const TestStream stream;
                    for (int i = 0; i < kTimes && !HasFatalFailure(); ++i) {
                        launchScanAgain<Metric::L2>(
                                params, multiprocessorCount(), stream);
                        check();
                    }
                });
    }
};

/// Rows that are met by eight lanes a vector, and one more, with components on
/// both sides of what lanes have, and have on their way.
TEST_F(ScanSteps, FewRowsOfAnyDimension) {
    ScanCase c;
    c.n = 1501;
    c.k = 20;
    for (Metric metric :
         {Metric::L2,
          Metric::InnerProduct,
          Metric::Cosine,
          Metric::L1,
          Metric::Linf,
          Metric::BrayCurtis,
          Metric::Jaccard}) {
        for (int d : {1, 7, 8, 9, 16, 17, 32, 33, 63, 65, 100}) {
            for (uint32_t q : {1u, 2u, 3u, 8u, 9u, 16u, 17u}) {
                c.metric = metric;
                c.d = d;
                c.q = q;
                SCOPED_TRACE(
                        "metric " + std::to_string(int(metric)) + ", d = " +
                        std::to_string(d) + ", q = " + std::to_string(q));
                const auto queries = makeIntegers(size_t(q) * d, 2);
                const auto vectors = makeIntegers(size_t(c.n) * d, 1);
                expectScanned(
                        c,
                        vectors,
                        queries,
                        [&](const ScanAgainParams& params, const auto& check) {
                            const TestStream stream;
                            byMetric(metric, [&]<Metric kMetric>() {
                                launchScanAgain<kMetric>(
                                        params, multiprocessorCount(), stream);
                            });
                            check();
                        });
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Each row is one of so many, at random.
std::vector<float> makeSets(int64_t rows, int d, uint32_t sets, uint32_t seed) {
    const auto distinct = makeIntegers(size_t(sets) * d, 3);
    std::mt19937 random(seed);
    std::vector<float> values(rows * d);
    for (int64_t i = 0; i < rows; ++i) {
        const size_t one = random() % sets;
        std::copy_n(
                distinct.begin() + one * d, d, values.begin() + i * size_t(d));
    }
    return values;
}

/// A sample of 512 has from 4 to 18 vectors that are equal to another, and some
/// of their sets want one place of a block's table. Room for so many sets that
/// each of the numbers in question is the least that is worth a table.
TEST_F(ScanSteps, SetsWithOnePlace) {
    constexpr uint32_t kEqualOfRoom = 512 * 512 / 8;
    ScanCase c;
    c.n = 40009;
    c.d = 8;
    c.q = 5;
    c.k = 100;
    const auto queries = makeIntegers(size_t(c.q) * c.d, 2);
    for (const uint32_t sets :
         {8000u, 10000u, 12000u, 16000u, 22000u, 30000u}) {
        const auto vectors = makeSets(c.n, c.d, sets, sets);
        for (uint32_t least = 8; least <= 18; ++least) {
            SCOPED_TRACE(
                    std::to_string(sets) + " sets, at least " +
                    std::to_string(least) + " equal");
            c.mostSets = c.roomOfKeys = kEqualOfRoom / least;
            expectNearest(c, vectors, queries);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

/// Around the number of sets that there is room for: some samples say that the
/// table is worth it, and it gives up.
TEST_F(ScanSteps, SetsThatHaveRoomOrNot) {
    ScanCase c;
    c.n = 20011;
    c.d = 8;
    c.q = 9;
    c.k = 50;
    c.mostSets = c.roomOfKeys = 4096;
    const auto queries = makeIntegers(size_t(c.q) * c.d, 2);
    for (const uint32_t sets : {1u, 2u, 500u, 4000u, 4096u, 4097u, 5000u}) {
        SCOPED_TRACE(std::to_string(sets) + " sets");
        expectNearest(c, makeSets(c.n, c.d, sets, sets), queries);
        if (HasFatalFailure()) {
            return;
        }
    }
}

} // namespace
} // namespace faiss_bits::test
