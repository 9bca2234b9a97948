#pragma once

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <faiss/IndexFlat.h>
#include <faiss/impl/FaissException.h>
#include <gtest/gtest.h>

#include "faiss_bits/ivf/IndexFusedIVFFlat.h"
#include "tests/common/CanonicalOracle.h"

/// What the tests of IndexFusedIVFFlat share.
namespace faiss_bits::test {

inline constexpr int kD = 24;
inline constexpr int kLists = 20;
inline constexpr idx_t kN = 2000;
inline constexpr idx_t kQ = 50;

inline std::vector<float> rowsOf(idx_t n, uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> rows(n * kD);
    for (float& value : rows) {
        value = normal(random);
    }
    return rows;
}

struct Found {
    std::vector<float> distances;
    std::vector<idx_t> labels;

    explicit Found(idx_t size) : distances(size), labels(size) {}
    bool operator==(const Found& other) const {
        return distances == other.distances && labels == other.labels;
    }
};

inline Found searchIn(
        const faiss::Index& index,
        const std::vector<float>& queries,
        idx_t k,
        const faiss::SearchParameters* params = nullptr) {
    const idx_t n = idx_t(queries.size()) / kD;
    Found found(n * k);
    index.search(
            n,
            queries.data(),
            k,
            found.distances.data(),
            found.labels.data(),
            params);
    return found;
}

class TestFusedIvfFlat : public testing::TestWithParam<faiss::MetricType> {
   protected:
    TestFusedIvfFlat()
            : vectors(rowsOf(kN, 1)),
              queries(rowsOf(kQ, 2)),
              ids(kN),
              quantizer(kD, GetParam()),
              index(&quantizer, kD, kLists, GetParam()) {
        std::mt19937 random(3);
        std::iota(ids.begin(), ids.end(), idx_t(0));
        std::shuffle(ids.begin(), ids.end(), random);
        index.train(kN, vectors.data());
        index.add_with_ids(kN, vectors.data(), ids.data());
        index.nprobe = 4;
    }

    Metric metric() const {
        return GetParam() == faiss::METRIC_L2 ? Metric::L2
                                              : Metric::InnerProduct;
    }

    /// By the canonical distances of the centroids, then of the vectors.
    template <class IsIn>
    void expectExact(
            const Found& found,
            idx_t k,
            idx_t nprobe,
            const IsIn& isIn,
            idx_t mostCodes = 0) {
        for (idx_t i = 0; i < kQ; ++i) {
            const float* query = queries.data() + i * kD;
            std::vector<Ranked> candidates;
            idx_t left = mostCodes > 0 ? mostCodes : kN;
            for (const Ranked& near : canonicalTopK(
                         metric(),
                         0,
                         query,
                         quantizer.get_xb(),
                         kLists,
                         kD,
                         nprobe)) {
                const size_t list = size_t(near.id);
                const auto* rows = reinterpret_cast<const float*>(
                        index.invlists->get_codes(list));
                for (size_t j = 0; j < index.invlists->list_size(list); ++j) {
                    const idx_t id = index.invlists->get_ids(list)[j];
                    if (left-- > 0 && isIn(id)) {
                        candidates.push_back(
                                {double(canonicalDistance(
                                         metric(),
                                         0,
                                         query,
                                         rows + j * kD,
                                         kD)),
                                 id});
                    }
                }
            }
            const bool largest = metric() == Metric::InnerProduct;
            ASSERT_TRUE(isCanonical(
                    topK(candidates, k, largest),
                    largest,
                    found.distances.data() + i * k,
                    found.labels.data() + i * k,
                    k))
                    << "query " << i;
        }
    }
    void expectExact(const Found& found, idx_t k, idx_t nprobe) {
        expectExact(found, k, nprobe, [](idx_t) { return true; });
    }

    std::vector<float> vectors, queries;
    std::vector<idx_t> ids;
    faiss::IndexFlat quantizer;
    IndexFusedIVFFlat index;
};

template <class Call>
testing::AssertionResult refused(Call&& call, const std::string& word) {
    try {
        call();
    } catch (const faiss::FaissException& error) {
        return std::string(error.what()).find(word) != std::string::npos
                ? testing::AssertionSuccess()
                : testing::AssertionFailure() << error.what();
    }
    return testing::AssertionFailure() << "nothing was thrown";
}

} // namespace faiss_bits::test
