#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include <faiss/impl/AuxIndexStructures.h>

#include "tests/flat/IndexHarness.h"

/// What the tests of GpuIndexBitsFlat::range_search share.
namespace faiss_bits::test {

/// Results as rows of a sparse matrix.
struct Wanted {
    std::vector<size_t> lims = {0};
    std::vector<float> distances;
    std::vector<int64_t> labels;
};

/// By canonical distances of vectors as they are stored.
inline Wanted wantedOf(
        const FlatData& data,
        float radius,
        const std::function<bool(int64_t)>& selects = {}) {
    std::vector<float> stored = data.vectors;
    roundAllTo(data.type(), stored);
    Wanted wanted;
    for (int64_t q = 0; q < data.c.q; ++q) {
        for (int64_t v = 0; v < data.c.n; ++v) {
            const float distance = canonicalDistance(
                    data.isIP() ? Metric::InnerProduct : Metric::L2,
                    0,
                    data.queries.data() + q * data.c.d,
                    stored.data() + v * data.c.d,
                    data.c.d);
            if ((data.isIP() ? distance > radius : distance < radius) &&
                (!selects || selects(v))) {
                wanted.distances.push_back(distance);
                wanted.labels.push_back(v);
            }
        }
        wanted.lims.push_back(wanted.labels.size());
    }
    return wanted;
}

inline void expectSame(
        const Wanted& wanted,
        const faiss::RangeSearchResult& result,
        const FlatCase& c) {
    ASSERT_EQ(
            std::vector<size_t>(result.lims, result.lims + c.q + 1),
            wanted.lims)
            << c;
    const size_t total = wanted.labels.size();
    EXPECT_EQ(
            std::vector<int64_t>(result.labels, result.labels + total),
            wanted.labels)
            << c;
    EXPECT_EQ(
            std::vector<float>(result.distances, result.distances + total),
            wanted.distances)
            << c;
}

/// A distance of the first query, which leaves its vector out.
inline float someRadius(const FlatData& data, double part) {
    const float all = data.isIP() ? -INFINITY : INFINITY;
    FlatCase c = data.c;
    FlatData first(c);
    first.c.q = 1;
    std::vector<float> distances = wantedOf(first, all).distances;
    std::sort(distances.begin(), distances.end());
    if (data.isIP()) {
        std::reverse(distances.begin(), distances.end());
    }
    return distances[size_t(part * double(distances.size() - 1))];
}

inline FlatCase smallCase() {
    FlatCase c;
    c.n = 3000;
    c.q = 40;
    return c;
}

} // namespace faiss_bits::test
