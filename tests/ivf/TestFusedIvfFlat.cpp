#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include <faiss/IVFlib.h>
#include <faiss/IndexFlat.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/MetaIndexes.h>
#include <faiss/VectorTransform.h>
#include <faiss/clone_index.h>
#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/index_io.h>
#include <faiss/impl/io.h>
#include <gtest/gtest.h>

#include "faiss_bits/cloners/FusedCloner.h"
#include "faiss_bits/flat/IndexFusedFlat.h"
#include "faiss_bits/ivf/IndexFusedIVFFlat.h"
#include "tests/common/CanonicalOracle.h"

/// IndexFusedIVFFlat as a FAISS index; what its kernels promise is in
/// tests/cpu/TestIvfCpu.cpp.
namespace faiss_bits::test {

namespace {

constexpr int kD = 24;
constexpr int kLists = 20;
constexpr idx_t kN = 2000;
constexpr idx_t kQ = 50;

std::vector<float> rowsOf(idx_t n, uint32_t seed) {
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

Found searchIn(
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
                                         metric(), 0, query, rows + j * kD, kD)),
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

/// Lists that are no ArrayInvertedLists.
struct ForwardedLists : faiss::ReadOnlyInvertedLists {
    explicit ForwardedLists(const faiss::InvertedLists* lists)
            : faiss::ReadOnlyInvertedLists(lists->nlist, lists->code_size),
              lists(lists) {}
    size_t list_size(size_t list) const override {
        return lists->list_size(list);
    }
    const uint8_t* get_codes(size_t list) const override {
        auto* copy = new uint8_t[list_size(list) * code_size];
        std::copy_n(
                lists->get_codes(list), list_size(list) * code_size, copy);
        return copy;
    }
    void release_codes(size_t, const uint8_t* codes) const override {
        delete[] codes;
    }
    const faiss::InvertedLists::idx_t* get_ids(size_t list) const override {
        return lists->get_ids(list);
    }
    const faiss::InvertedLists* lists;
};

template <class Call>
testing::AssertionResult refused(Call&& call, const char* word) {
    try {
        call();
    } catch (const faiss::FaissException& error) {
        return std::string(error.what()).find(word) != std::string::npos
                ? testing::AssertionSuccess()
                : testing::AssertionFailure() << error.what();
    }
    return testing::AssertionFailure() << "nothing was thrown";
}

} // namespace

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
    const std::vector<faiss::IDSelector::idx_t> some = {5, 17, 17, 1800, 40};
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
            searchIn(index, queries, 5),
            5,
            4,
            [](idx_t) { return true; },
            70);
    struct Mine : faiss::SearchParameters {
    } mine;
    EXPECT_TRUE(refused([&] { searchIn(index, queries, 1, &mine); }, "params"));
    params.nprobe = 0;
    EXPECT_TRUE(
            refused([&] { searchIn(index, queries, 1, &params); }, "nprobe"));
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
        const idx_t row =
                std::find(ids.begin(), ids.end(), found.labels[i]) -
                ids.begin();
        ASSERT_EQ(vectors[row * kD + 3], rows[i * kD + 3]);
    }
    EXPECT_GT(none, 0);
}

TEST_P(TestFusedIvfFlat, CopiesAndContainers) {
    faiss::IndexIVFFlat theirs(&quantizer, kD, kLists, GetParam());
    theirs.is_trained = true;
    theirs.add_with_ids(kN, vectors.data(), ids.data());
    theirs.nprobe = 4;
    const Found want = searchIn(index, queries, 10);
    const IndexFusedIVFFlat ours(theirs);
    EXPECT_TRUE(want == searchIn(ours, queries, 10));
    EXPECT_TRUE(dynamic_cast<IndexFusedFlat*>(ours.quantizer));
    EXPECT_TRUE(want == searchIn(IndexFusedIVFFlat(ours), queries, 10));

    const auto isOurs = [](const faiss::Index* one) {
        return dynamic_cast<const IndexFusedIVFFlat*>(one) != nullptr;
    };
    std::unique_ptr<faiss::Index> copy(index_to_fused(&theirs));
    EXPECT_TRUE(isOurs(copy.get()));
    copy.reset(index_to_fused(copy.get()));
    EXPECT_TRUE(isOurs(copy.get()));
    EXPECT_TRUE(want == searchIn(*copy, queries, 10));
    std::unique_ptr<faiss::Index> plain(faiss::clone_index(&index));
    EXPECT_TRUE(typeid(*plain) == typeid(faiss::IndexIVFFlat));

    faiss::IndexIVFFlat empty(&quantizer, kD, kLists, GetParam());
    faiss::IndexIDMap map(&empty);
    copy.reset(index_to_fused(&map));
    EXPECT_TRUE(isOurs(static_cast<faiss::IndexIDMap&>(*copy).index));
    faiss::RandomRotationMatrix rotation(kD, kD);
    rotation.init(3);
    faiss::IndexPreTransform chain(&rotation, &theirs);
    copy.reset(index_to_fused(&chain));
    EXPECT_TRUE(isOurs(static_cast<faiss::IndexPreTransform&>(*copy).index));
    faiss::IndexIVFFlat base(&quantizer, kD, kLists, GetParam());
    base.is_trained = true;
    base.nprobe = 4;
    faiss::IndexRefineFlat refine(&base);
    refine.add(kN, vectors.data());
    copy.reset(index_to_fused(&refine));
    auto& refined = static_cast<faiss::IndexRefineFlat&>(*copy);
    EXPECT_TRUE(isOurs(refined.base_index));
    EXPECT_TRUE(dynamic_cast<IndexFusedFlat*>(refined.refine_index));
    EXPECT_EQ(
            searchIn(refine, queries, 5).labels,
            searchIn(refined, queries, 5).labels);

    // Moved: the lists themselves.
    const auto* lists = theirs.invlists;
    IndexFusedIVFFlat moved(std::move(theirs));
    EXPECT_EQ(lists, moved.invlists);
    EXPECT_TRUE(want == searchIn(moved, queries, 10));
}

TEST_P(TestFusedIvfFlat, Files) {
    faiss::VectorIOWriter writer;
    faiss::write_index(&index, &writer);
    faiss::VectorIOReader reader;
    reader.data = writer.data;
    std::unique_ptr<faiss::Index> read(faiss::read_index(&reader));
    ASSERT_TRUE(typeid(*read) == typeid(faiss::IndexIVFFlat));
    const IndexFusedIVFFlat ours(static_cast<faiss::IndexIVFFlat&>(*read));
    EXPECT_TRUE(
            searchIn(index, queries, 10) == searchIn(ours, queries, 10));
}

TEST_P(TestFusedIvfFlat, RemoveAddAndOtherLists) {
    faiss::IDSelectorRange odd(0, 1000);
    EXPECT_EQ(1000u, index.remove_ids(odd));
    expectExact(searchIn(index, queries, 10), 10, 4);
    index.add_with_ids(10, queries.data(), ids.data());
    const Found want = searchIn(index, queries, 10);
    expectExact(want, 10, 4);
    auto* own = index.invlists;
    ForwardedLists other(own);
    index.invlists = &other;
    index.own_invlists = false;
    EXPECT_TRUE(want == searchIn(index, queries, 10));
    const IndexFusedIVFFlat copy(index);
    EXPECT_TRUE(want == searchIn(copy, queries, 10));
    index.invlists = own;
    index.own_invlists = true;
    // A quantizer that is not flat is asked itself.
    struct Counting : faiss::IndexFlat {
        using faiss::IndexFlat::IndexFlat;
        mutable int calls = 0;
        void search(
                idx_t n,
                const float* x,
                idx_t k,
                float* distances,
                idx_t* labels,
                const faiss::SearchParameters* params) const override {
            ++calls;
            faiss::IndexFlat::search(n, x, k, distances, labels, params);
        }
    } counting(kD, GetParam());
    counting.add(kLists, quantizer.get_xb());
    index.quantizer = &counting;
    EXPECT_EQ(want.labels, searchIn(index, queries, 10).labels);
    EXPECT_EQ(1, counting.calls);
    index.quantizer = &quantizer;
    index.reset();
    for (idx_t label : searchIn(index, queries, 3).labels) {
        EXPECT_EQ(-1, label);
    }
}

TEST_P(TestFusedIvfFlat, RangeSearchIsFaiss) {
    faiss::RangeSearchResult found(kQ);
    const float radius = GetParam() == faiss::METRIC_L2 ? 30.f : 3.f;
    index.range_search(kQ, queries.data(), radius, &found);
    EXPECT_GT(found.lims[kQ], 0u);
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
    EXPECT_TRUE(refused(
            make(&quantizer, kD, 4, faiss::METRIC_L1), "metric = 2"));
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
    index.parallel_mode = 2;
    search(kQ, queries.data(), 1, to)();
    IndexFusedIVFFlat untrained(&quantizer, kD, 40, GetParam());
    EXPECT_TRUE(refused(
            [&] { searchIn(untrained, queries, 1); }, "not trained"));
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
