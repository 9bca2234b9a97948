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

/// Nearest list first, then by place, by canonical distances, whatever
/// max_codes and parallel_mode say.
TEST_P(TestFusedIvfFlat, RangeSearchIsListByList) {
    const float radius = GetParam() == faiss::METRIC_L2 ? 30.f : 3.f;
    faiss::SearchParametersIVF params;
    params.nprobe = 6;
    for (const int mode : {0, 1, 2}) {
        index.parallel_mode = mode;
        params.max_codes = mode * 10;
        faiss::RangeSearchResult found(kQ);
        index.range_search(kQ, queries.data(), radius, &found, &params);
        for (idx_t q = 0; q < kQ; ++q) {
            const float* query = queries.data() + q * kD;
            size_t at = found.lims[q];
            for (const Ranked& near : canonicalTopK(
                         metric(),
                         0,
                         query,
                         quantizer.get_xb(),
                         kLists,
                         kD,
                         idx_t(params.nprobe))) {
                const size_t list = size_t(near.id);
                const auto* rows = reinterpret_cast<const float*>(
                        index.invlists->get_codes(list));
                for (size_t j = 0; j < index.invlists->list_size(list); ++j) {
                    const float distance = canonicalDistance(
                            metric(), 0, query, rows + j * kD, kD);
                    if (metric() == Metric::L2 ? distance < radius
                                               : distance > radius) {
                        ASSERT_LT(at, found.lims[q + 1]) << q;
                        ASSERT_EQ(
                                found.labels[at],
                                index.invlists->get_ids(list)[j]);
                        ASSERT_EQ(found.distances[at++], distance);
                    }
                }
            }
            ASSERT_EQ(at, found.lims[q + 1]) << q;
        }
    }
}

} // namespace faiss_bits::test
