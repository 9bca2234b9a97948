#pragma once

#include <faiss/impl/AuxIndexStructures.h>

#include "tests/ivf/IvfHarness.h"

/// What the tests of range searches of inverted lists share.
namespace faiss_bits::test {

/// What is in range of a query's lists, in their order, and in theirs.
inline std::vector<Ranked> inRange(
        const IvfData& data,
        int64_t query,
        int nprobe,
        float radius) {
    std::vector<Ranked> found;
    const bool isIP = data.c.metric == faiss::METRIC_INNER_PRODUCT;
    for (int64_t list : data.probesOf(query, nprobe)) {
        const auto* vectors = reinterpret_cast<const float*>(
                data.cpu->invlists->get_codes(list));
        for (size_t i = 0; i < data.cpu->invlists->list_size(list); ++i) {
            if (data.selects &&
                !data.selects(data.selectorIdOf(list, int64_t(i)))) {
                continue;
            }
            const float distance = canonicalDistance(
                    data.metric(),
                    0,
                    data.queries.data() + query * data.c.d,
                    vectors + i * data.c.d,
                    data.c.d);
            if (isIP ? distance > radius : distance < radius) {
                found.push_back(
                        {double(distance),
                         data.selectorIdOf(list, int64_t(i))});
            }
        }
    }
    return found;
}

/// Returns how many were found.
inline size_t expectRange(
        const IvfData& data,
        const faiss::Index& index,
        float radius,
        int nprobe,
        faiss::IDSelector* selector = nullptr) {
    faiss::RangeSearchResult result(data.c.q);
    faiss::SearchParametersIVF params;
    params.nprobe = nprobe;
    params.sel = selector;
    index.range_search(data.c.q, data.queries.data(), radius, &result, &params);
    EXPECT_EQ(result.lims[0], 0u);
    for (int64_t i = 0; i < data.c.q; ++i) {
        const auto want = inRange(data, i, nprobe, radius);
        const size_t count = result.lims[i + 1] - result.lims[i];
        EXPECT_EQ(count, want.size()) << "query " << i << " of " << data.c;
        if (count != want.size()) {
            return 0;
        }
        for (size_t j = 0; j < count; ++j) {
            const size_t at = result.lims[i] + j;
            EXPECT_EQ(double(result.distances[at]), want[j].key)
                    << "query " << i << " place " << j << " of " << data.c;
            EXPECT_EQ(result.labels[at], want[j].id)
                    << "query " << i << " place " << j << " of " << data.c;
        }
    }
    return result.lims[data.c.q];
}

/// A radius that is the distance of some vector, and so leaves it out.
inline float someRadius(const IvfData& data, double part) {
    std::vector<float> all;
    for (int64_t i = 0; i < data.c.n; ++i) {
        all.push_back(canonicalDistance(
                data.metric(),
                0,
                data.queries.data(),
                data.vectors.data() + i * data.c.d,
                data.c.d));
    }
    std::sort(all.begin(), all.end());
    if (data.c.metric == faiss::METRIC_INNER_PRODUCT) {
        std::reverse(all.begin(), all.end());
    }
    return all[size_t(part * double(all.size() - 1))];
}

} // namespace faiss_bits::test
