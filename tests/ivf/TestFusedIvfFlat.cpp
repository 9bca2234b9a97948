#include <cmath>
#include <initializer_list>
#include <map>
#include <memory>

#include <faiss/IndexHNSW.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexIVFPQ.h>
#include <faiss/impl/AuxIndexStructures.h>

#include "faiss_bits/flat/IndexFusedFlat.h"
#include "tests/ivf/FusedIvfHarness.h"

/// Searches of IndexFusedIVFFlat as a FAISS index; what its kernels promise is
/// in tests/cpu/TestIvfCpu.cpp.
namespace faiss_bits::test {

TEST_P(TestFusedIvfFlat, Search) {
    for (idx_t nprobe : {1, 4, kLists, 3 * kLists}) {
        index.nprobe = size_t(nprobe);
        for (idx_t k : {1, 10, 300}) {
            expectExact(
                    searchIn(index, queries, k),
                    k,
                    std::min<idx_t>(nprobe, kLists));
        }
    }
    // One query at a time: the same bits.
    const Found all = searchIn(index, queries, 7);
    for (idx_t i = 0; i < kQ; ++i) {
        const Found one = searchIn(
                index,
                {queries.begin() + i * kD, queries.begin() + (i + 1) * kD},
                7);
        for (idx_t j = 0; j < 7; ++j) {
            EXPECT_EQ(all.labels[i * 7 + j], one.labels[j]);
            EXPECT_EQ(all.distances[i * 7 + j], one.distances[j]);
        }
    }
}

TEST_P(TestFusedIvfFlat, Parameters) {
    faiss::SearchParametersIVF params;
    params.nprobe = 9;
    expectExact(searchIn(index, queries, 12, &params), 12, 9);
    params.max_codes = 130;
    expectExact(
            searchIn(index, queries, 12, &params),
            12,
            9,
            [](idx_t) { return true; },
            130);
    params.max_codes = 0;
    faiss::IDSelectorRange range(100, 900);
    params.sel = &range;
    const auto inRange = [](idx_t id) { return 100 <= id && id < 900; };
    expectExact(searchIn(index, queries, 12, &params), 12, 9, inRange);
    params.max_codes = 200;
    expectExact(searchIn(index, queries, 12, &params), 12, 9, inRange, 200);
    faiss::SearchParameters plain;
    plain.sel = &range;
    expectExact(searchIn(index, queries, 12, &plain), 12, 4, inRange);
    const std::vector<int64_t> some = {5, 17, 17, 1800, 40};
    faiss::IDSelectorArray array(some.size(), some.data());
    faiss::IDSelectorNot others(&array);
    const auto isSome = [&](idx_t id) {
        return std::count(some.begin(), some.end(), id) > 0;
    };
    plain.sel = &array;
    expectExact(searchIn(index, queries, 12, &plain), 12, 4, isSome);
    plain.sel = &others;
    expectExact(searchIn(index, queries, 12, &plain), 12, 4, [&](idx_t id) {
        return !isSome(id);
    });
    index.max_codes = 70;
    expectExact(
            searchIn(index, queries, 5), 5, 4, [](idx_t) { return true; }, 70);
    struct Mine : faiss::SearchParameters {
    } mine;
    EXPECT_TRUE(refused([&] { searchIn(index, queries, 1, &mine); }, "params"));
    params.nprobe = 0;
    EXPECT_TRUE(
            refused([&] { searchIn(index, queries, 1, &params); }, "nprobe"));
}

TEST_P(TestFusedIvfFlat, FewerListsByTheQuantizersFilter) {
    constexpr idx_t kSome = 10;
    std::vector<idx_t> assign;
    for (idx_t i = 0; i < kQ; ++i) {
        for (const Ranked& near : canonicalTopK(
                     metric(),
                     0,
                     queries.data() + i * kD,
                     quantizer.get_xb(),
                     kSome,
                     kD,
                     4)) {
            assign.push_back(near.id);
        }
    }
    Found want(kQ * 6);
    index.search_preassigned(
            kQ,
            queries.data(),
            6,
            assign.data(),
            nullptr,
            want.distances.data(),
            want.labels.data(),
            false);
    faiss::IDSelectorRange some(0, kSome);
    faiss::SearchParameters ofQuantizer;
    ofQuantizer.sel = &some;
    faiss::SearchParametersIVF params;
    params.nprobe = 4;
    params.quantizer_params = &ofQuantizer;
    EXPECT_TRUE(want == searchIn(index, queries, 6, &params));
    faiss::IDSelectorRange none(0, 0);
    ofQuantizer.sel = &none;
    for (idx_t label : searchIn(index, queries, 3, &params).labels) {
        EXPECT_EQ(-1, label);
    }
}

TEST_P(TestFusedIvfFlat, Preassigned) {
    std::vector<idx_t> assign(kQ * 4);
    std::vector<float> centroidDistances(kQ * 4);
    quantizer.search(
            kQ, queries.data(), 4, centroidDistances.data(), assign.data());
    Found found(kQ * 6), places(kQ * 6);
    faiss::IndexIVFStats stats;
    index.search_preassigned(
            kQ,
            queries.data(),
            6,
            assign.data(),
            nullptr,
            found.distances.data(),
            found.labels.data(),
            false,
            nullptr,
            &stats);
    EXPECT_TRUE(found == searchIn(index, queries, 6));
    EXPECT_EQ(size_t(kQ), stats.nq);
    EXPECT_EQ(size_t(kQ * 4), stats.nlist);
    EXPECT_GT(stats.ndis, size_t(kQ));
    index.search_preassigned(
            kQ,
            queries.data(),
            6,
            assign.data(),
            nullptr,
            places.distances.data(),
            places.labels.data(),
            true);
    for (idx_t i = 0; i < kQ * 6; ++i) {
        const idx_t at = places.labels[i];
        EXPECT_EQ(
                found.labels[i],
                index.invlists->get_single_id(at >> 32, at & 0xffffffff));
    }
    assign[3] = kLists;
    EXPECT_TRUE(refused(
            [&] {
                index.search_preassigned(
                        kQ,
                        queries.data(),
                        6,
                        assign.data(),
                        nullptr,
                        found.distances.data(),
                        found.labels.data(),
                        false);
            },
            "assign[3] = 20"));
}

TEST_P(TestFusedIvfFlat, SearchAndReconstruct) {
    Found found(kQ * 400);
    std::vector<float> rows(kQ * 400 * kD);
    index.search_and_reconstruct(
            kQ,
            queries.data(),
            400,
            found.distances.data(),
            found.labels.data(),
            rows.data());
    EXPECT_TRUE(found == searchIn(index, queries, 400));
    idx_t none = 0;
    for (idx_t i = 0; i < kQ * 400; ++i) {
        if (found.labels[i] < 0) {
            EXPECT_TRUE(std::isnan(rows[i * kD]));
            ++none;
            continue;
        }
        const idx_t row = std::find(ids.begin(), ids.end(), found.labels[i]) -
                ids.begin();
        ASSERT_EQ(vectors[row * kD + 3], rows[i * kD + 3]);
    }
    EXPECT_GT(none, 0);
}

TEST_P(TestFusedIvfFlat, RangeSearch) {
    const float radius = GetParam() == faiss::METRIC_L2 ? 30.f : 3.f;
    faiss::IDSelectorRange low(0, 1000);
    faiss::SearchParametersIVF some;
    some.nprobe = 7;
    some.sel = &low;
    for (const faiss::SearchParametersIVF* params :
         std::initializer_list<const faiss::SearchParametersIVF*>{
                 nullptr, &some}) {
        faiss::RangeSearchResult found(kQ);
        index.range_search(kQ, queries.data(), radius, &found, params);
        // What a search for all vectors of the lists says, cut at the radius.
        const Found all = searchIn(index, queries, kN, params);
        const double sign = GetParam() == faiss::METRIC_L2 ? 1 : -1;
        size_t total = 0;
        for (idx_t q = 0; q < kQ; ++q) {
            std::map<idx_t, float> expected;
            for (idx_t i = 0; i < kN; ++i) {
                const float distance = all.distances[q * kN + i];
                if (all.labels[q * kN + i] >= 0 &&
                    sign * distance < sign * radius) {
                    expected[all.labels[q * kN + i]] = distance;
                }
            }
            std::map<idx_t, float> got;
            for (size_t i = found.lims[q]; i < found.lims[q + 1]; ++i) {
                got[found.labels[i]] = found.distances[i];
            }
            EXPECT_EQ(got, expected) << q;
            EXPECT_EQ(got.size(), found.lims[q + 1] - found.lims[q]);
            total += got.size();
        }
        EXPECT_GT(total, size_t(kQ));
    }
}

/// Finds what no list is, where a query has NaN.
struct LabelsBeyond : faiss::IndexFlat {
    explicit LabelsBeyond(const faiss::IndexFlat& index)
            : faiss::IndexFlat(index) {}

    void search(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params) const override {
        faiss::IndexFlat::search(n, x, k, distances, labels, params);
        for (idx_t i = 0; i < n * k; ++i) {
            if (std::isnan(x[i / k * d])) {
                labels[i] = ntotal + i;
            }
        }
    }
};

// FAISS's own ends the process on these.
TEST_P(TestFusedIvfFlat, WhatFaissDoesNotSurvive) {
    faiss::RangeSearchResult found(kQ);
    const auto range = [&](const IndexFusedIVFFlat& in, float radius) {
        return [&, radius] {
            in.range_search(kQ, queries.data(), radius, &found);
        };
    };
    IndexFusedIVFFlat untrained(&quantizer, kD, kLists, GetParam());
    untrained.is_trained = false;
    EXPECT_TRUE(refused(range(untrained, 1), "not trained"));
    EXPECT_TRUE(
            refused([&] { untrained.add(kQ, queries.data()); }, "not trained"));
    EXPECT_TRUE(refused(range(index, NAN), "radius = NaN"));
    EXPECT_TRUE(refused([&] { index.add(1, nullptr); }, "x is"));
    EXPECT_TRUE(refused([&] { index.add(-1, nullptr); }, "n = -1"));
    faiss::SearchParametersIVF none;
    none.nprobe = 0;
    EXPECT_TRUE(refused(
            [&] { index.range_search(kQ, queries.data(), 1, &found, &none); },
            "nprobe = 0"));

    // Vectors and queries with NaN have no list: with every kind of quantizer.
    std::vector<float> bad(size_t(kQ) * kD, NAN);
    std::copy_n(queries.data(), kD, bad.data());
    IndexFusedFlat ours(quantizer);
    LabelsBeyond beyond(quantizer);
    for (faiss::IndexFlat* of :
         std::initializer_list<faiss::IndexFlat*>{&quantizer, &ours, &beyond}) {
        IndexFusedIVFFlat lists(of, kD, kLists, GetParam());
        lists.nprobe = kLists;
        lists.add(kQ, bad.data());
        EXPECT_EQ(lists.ntotal, kQ); // as FAISS counts
        size_t stored = 0;
        for (size_t list = 0; list < lists.nlist; ++list) {
            stored += lists.invlists->list_size(list);
        }
        EXPECT_EQ(stored, 1u);
        const Found results = searchIn(lists, bad, 2);
        faiss::RangeSearchResult inRange(kQ);
        const float all = GetParam() == faiss::METRIC_L2 ? INFINITY : -INFINITY;
        lists.range_search(kQ, bad.data(), all, &inRange);
        for (idx_t q = 0; q < kQ; ++q) {
            EXPECT_EQ(results.labels[q * 2], q == 0 ? 0 : -1) << q;
            EXPECT_EQ(results.labels[q * 2 + 1], -1) << q;
            EXPECT_EQ(inRange.lims[q + 1], 1u) << q;
        }
    }
}

TEST_P(TestFusedIvfFlat, BadArgumentsAreNamed) {
    const auto make = [&](faiss::Index* q, size_t d, size_t nlist, int m) {
        return [=] {
            IndexFusedIVFFlat bad(q, d, nlist, faiss::MetricType(m));
        };
    };
    EXPECT_TRUE(refused(make(nullptr, kD, 4, 1), "quantizer"));
    EXPECT_TRUE(refused(make(&quantizer, 7, 4, 1), "d = 7"));
    EXPECT_TRUE(refused(make(&quantizer, kD, 0, 1), "nlist = 0"));
    EXPECT_TRUE(
            refused(make(&quantizer, kD, 4, faiss::METRIC_L1), "metric = 2"));
    faiss::IndexIVFFlatDedup dedup(&quantizer, kD, kLists);
    EXPECT_TRUE(refused([&] { IndexFusedIVFFlat bad(dedup); }, "Dedup"));
    std::vector<float> distances(kQ);
    std::vector<idx_t> labels(kQ);
    const auto search = [&](idx_t n, const float* x, idx_t k, float* to) {
        return [=, this, &labels] { index.search(n, x, k, to, labels.data()); };
    };
    float* to = distances.data();
    EXPECT_TRUE(refused(search(-1, queries.data(), 1, to), "n = -1"));
    EXPECT_TRUE(refused(search(kQ, queries.data(), 0, to), "k = 0"));
    EXPECT_TRUE(refused(search(kQ, nullptr, 1, to), "x is"));
    EXPECT_TRUE(refused(search(kQ, queries.data(), 1, nullptr), "distances"));
    index.parallel_mode = index.PARALLEL_MODE_NO_HEAP_INIT;
    EXPECT_TRUE(refused(search(kQ, queries.data(), 1, to), "parallel_mode"));
    index.parallel_mode = 3; // which FAISS has for k nearest neighbours alone
    search(kQ, queries.data(), 1, to)();
    faiss::RangeSearchResult range(kQ);
    EXPECT_TRUE(
            refused([&] { index.range_search(kQ, queries.data(), 1, &range); },
                    "parallel_mode = 3"));
    index.parallel_mode = 2;
    search(kQ, queries.data(), 1, to)();
    index.range_search(kQ, queries.data(), 1, &range);
    const faiss::SearchParametersHNSW graph;
    EXPECT_TRUE(
            refused([&] { searchIn(index, queries, 1, &graph); },
                    "params is a faiss::SearchParametersHNSW"));
    // What a derived class adds would have to be ignored.
    const faiss::IVFPQSearchParameters product;
    EXPECT_TRUE(
            refused([&] { searchIn(index, queries, 1, &product); },
                    "params is a faiss::IVFPQSearchParameters"));
    faiss::SearchParametersIVF params;
    params.quantizer_params = const_cast<faiss::SearchParametersHNSW*>(&graph);
    EXPECT_TRUE(
            refused([&] { searchIn(index, queries, 1, &params); },
                    "quantizer_params is a faiss::SearchParametersHNSW"));
    IndexFusedIVFFlat untrained(&quantizer, kD, 40, GetParam());
    EXPECT_TRUE(
            refused([&] { searchIn(untrained, queries, 1); }, "not trained"));
}

TEST_P(TestFusedIvfFlat, Interrupts) {
    struct Always : faiss::InterruptCallback {
        bool want_interrupt() override {
            return true;
        }
    };
    faiss::InterruptCallback::instance = std::make_unique<Always>();
    EXPECT_TRUE(refused([&] { searchIn(index, queries, 3); }, "interrupted"));
    faiss::InterruptCallback::clear_instance();
    expectExact(searchIn(index, queries, 3), 3, 4);
}

INSTANTIATE_TEST_SUITE_P(
        Metrics,
        TestFusedIvfFlat,
        testing::Values(faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT));

} // namespace faiss_bits::test
