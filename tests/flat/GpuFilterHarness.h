#pragma once

#include <set>

#include <faiss/impl/IDSelector.h>

#include "faiss_bits/flat/DeviceSelector.h"
#include "tests/flat/IndexHarness.h"

/// Searches of GpuIndexBitsFlat with filters, and what they must find.
namespace faiss_bits::test {

using gpu::DeviceSelector;

/// A selector of a user's own.
struct EveryFifth : faiss::IDSelector {
    bool is_member(idx_t id) const override {
        return id % 5 == 0;
    }
};

struct Failing : faiss::IDSelector {
    bool is_member(idx_t id) const override {
        if (id == 100) {
            throw faiss::FaissException("no answer, says the test");
        }
        return id % 2;
    }
};

inline SearchOutput searchWith(
        const faiss::Index& index,
        const std::vector<float>& queries,
        int64_t k,
        faiss::IDSelector* selector) {
    const int64_t q = int64_t(queries.size()) / index.d;
    faiss::SearchParameters params;
    params.sel = selector;
    SearchOutput out;
    out.distances.assign(q * k, -123.f);
    out.labels.assign(q * k, -123);
    index.search(
            q,
            queries.data(),
            k,
            out.distances.data(),
            out.labels.data(),
            &params);
    return out;
}

inline SearchOutput searchOnDeviceWith(
        const faiss::Index& index,
        const std::vector<float>& queries,
        int64_t k,
        faiss::IDSelector* selector) {
    const int64_t q = int64_t(queries.size()) / index.d;
    faiss::SearchParameters params;
    params.sel = selector;
    const DeviceBuffer<float> x(queries);
    const DeviceBuffer<float> distances(q * k);
    const DeviceBuffer<int64_t> labels(q * k);
    index.search(q, x.data(), k, distances.data(), labels.data(), &params);
    return {distances.download(), labels.download()};
}

/// Of a search that ranked all n, the first k that the selector has.
inline SearchOutput filtered(
        const SearchOutput& all,
        int64_t n,
        int64_t k,
        bool isIP,
        const std::set<int64_t>& members) {
    const float most = std::numeric_limits<float>::max();
    SearchOutput out;
    for (size_t row = 0; row < all.labels.size(); row += n) {
        int64_t place = 0;
        for (int64_t i = 0; i < n && place < k; ++i) {
            if (members.count(all.labels[row + i])) {
                out.distances.push_back(all.distances[row + i]);
                out.labels.push_back(all.labels[row + i]);
                ++place;
            }
        }
        for (; place < k; ++place) {
            out.distances.push_back(isIP ? -most : most);
            out.labels.push_back(-1);
        }
    }
    return out;
}

/// Zeros of inner products may differ in their sign.
inline ::testing::AssertionResult sameButZeros(SearchOutput a, SearchOutput b) {
    for (auto* values : {&a.distances, &b.distances}) {
        for (float& value : *values) {
            value = value == 0 ? 0.f : value;
        }
    }
    return sameOutput(a, b);
}

} // namespace faiss_bits::test
