/// Ties, NaN, infinities and repeatability of IndexFusedFlat.

#include <limits>
#include <thread>

#include "tests/flat/suite/CpuFlatKind.h"
#include "tests/flat/suite/FlatNan.h"
#include "tests/flat/suite/FlatValues.h"

namespace faiss_bits::test {
namespace {

INSTANTIATE_TYPED_TEST_SUITE_P(FusedFlatValues, FlatValues, CpuFlatKind);
INSTANTIATE_TYPED_TEST_SUITE_P(FusedFlatNan, FlatNan, CpuFlatKind);

TEST(FusedFlatValues, NanIsInNoRange) {
    FusedCase c;
    c.n = 70;
    for (const FusedCase& one : metricsOf(c)) {
        FusedData data(one);
        for (int64_t i = 0; i < c.n; i += 7) {
            data.vectors[i * c.d + 3] = kNan;
        }
        const float infinity = std::numeric_limits<float>::infinity();
        const float all = data.largest() ? -infinity : infinity;
        faiss::RangeSearchResult found(c.q);
        data.makeIndex()->range_search(c.q, data.queries.data(), all, &found);
        EXPECT_EQ(int64_t(found.lims[c.q]), 60 * c.q) << one;
        data.expectInRange(found, all);
    }
}

TEST(FusedFlatValues, SearchesAtTheSameTime) {
    FusedCase c;
    c.n = 4000;
    const FusedData data(c);
    const auto index = data.makeIndex();
    const auto expected = searchOnHost(*index, data.queries, 30);
    std::vector<std::thread> threads;
    std::vector<int> wrong(4);
    for (int& count : wrong) {
        threads.emplace_back([&] {
            for (int run = 0; run < 10; ++run) {
                const auto out = searchOnHost(*index, data.queries, 30);
                count += !sameOutput(out, expected);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(wrong, std::vector<int>(4));
}

} // namespace
} // namespace faiss_bits::test
