#include <faiss/impl/AuxIndexStructures.h>

#include "tests/ivf/FusedIvfHarness.h"

/// Range searches of IndexFusedIVFFlat that run in parts.
namespace faiss_bits::test {

/// So many queries that they are searched in three parts or more: each has what
/// it has alone.
TEST_P(TestFusedIvfFlat, RangeSearchOfManyQueries) {
    constexpr idx_t kMany = 1500;
    const float radius = GetParam() == faiss::METRIC_L2 ? 25.f : 8.f;
    const std::vector<float> many = rowsOf(kMany, 5);
    index.nprobe = kLists;
    faiss::RangeSearchResult all(kMany);
    index.range_search(kMany, many.data(), radius, &all);
    EXPECT_EQ(all.lims[0], 0u);
    EXPECT_GT(all.lims[kMany], size_t(kMany));
    for (idx_t q = 0; q < kMany; ++q) {
        faiss::RangeSearchResult one(1);
        index.range_search(1, many.data() + q * kD, radius, &one);
        const size_t begin = all.lims[q];
        ASSERT_EQ(all.lims[q + 1] - begin, one.lims[1]) << "query " << q;
        for (size_t i = 0; i < one.lims[1]; ++i) {
            EXPECT_EQ(all.labels[begin + i], one.labels[i]) << "query " << q;
            EXPECT_EQ(all.distances[begin + i], one.distances[i]);
        }
    }
}

} // namespace faiss_bits::test
