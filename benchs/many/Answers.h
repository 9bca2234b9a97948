#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include <faiss/impl/AuxIndexStructures.h>

/// What an index on several devices answers beside what one index does.
namespace faiss_bits::bench {

/// Of one search: [q, k] each.
struct Answers {
    std::vector<float> distances;
    std::vector<int64_t> labels;

    void resize(size_t count) {
        distances.resize(count);
        labels.resize(count);
    }
};

/// Queries of which a distance or label is not the other's, bit for bit; all of
/// them where there are more or fewer.
inline int64_t wrongQueries(const Answers& got, const Answers& want, size_t k) {
    const auto same = [k](const auto& a, const auto& b, size_t at) {
        return std::memcmp(&a[at], &b[at], k * sizeof(a[0])) == 0;
    };
    const size_t count = want.labels.size();
    if (got.labels.size() != count || got.distances.size() != count ||
        want.distances.size() != count) {
        return int64_t(count / k);
    }
    int64_t wrong = 0;
    for (size_t at = 0; at < count; at += k) {
        wrong += !same(got.distances, want.distances, at) ||
                !same(got.labels, want.labels, at);
    }
    return wrong;
}

/// The same of a range search.
inline int64_t wrongQueries(
        const faiss::RangeSearchResult& got,
        const faiss::RangeSearchResult& want) {
    if (got.nq != want.nq) {
        return int64_t(want.nq);
    }
    int64_t wrong = 0;
    for (size_t q = 0; q < want.nq; ++q) {
        const size_t begin = want.lims[q];
        const size_t count = want.lims[q + 1] - begin;
        const size_t there = got.lims[q];
        const auto same = [&](const auto* a, const auto* b) {
            return count == 0 ||
                    std::memcmp(a + there, b + begin, count * sizeof(*a)) == 0;
        };
        wrong += got.lims[q + 1] - there != count ||
                !same(got.distances, want.distances) ||
                !same(got.labels, want.labels);
    }
    return wrong;
}

} // namespace faiss_bits::bench
