#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/MetaIndexes.h>
#include <faiss/VectorTransform.h>
#include <faiss/clone_index.h>
#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/io.h>
#include <faiss/index_io.h>

#include "faiss_bits/cloners/FusedCloner.h"
#include "faiss_bits/flat/IndexFusedFlat.h"
#include "tests/ivf/FusedIvfHarness.h"

/// What an IndexFusedIVFFlat is made from, and what becomes of it: copies,
/// containers, files, removed vectors, lists and quantizers of other kinds.
namespace faiss_bits::test {

namespace {

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
        std::copy_n(lists->get_codes(list), list_size(list) * code_size, copy);
        return copy;
    }
    void release_codes(size_t, const uint8_t* codes) const override {
        delete[] codes;
    }
    const int64_t* get_ids(size_t list) const override {
        return lists->get_ids(list);
    }
    const faiss::InvertedLists* lists;
};

} // namespace

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
    EXPECT_TRUE(searchIn(index, queries, 10) == searchIn(ours, queries, 10));
}

TEST_P(TestFusedIvfFlat, TakesOverListsOfBothKinds) {
    const Found want = searchIn(index, queries, 10);
    faiss::IndexIVFFlat theirs(&quantizer, kD, kLists, GetParam());
    theirs.is_trained = true;
    theirs.add_with_ids(kN, vectors.data(), ids.data());
    IndexFusedIVFFlat ours(
            theirs); // a quantizer of its own, the same centroids
    index.reset();
    index.merge_from(theirs, 0);
    EXPECT_EQ(kN, index.ntotal);
    EXPECT_EQ(0, theirs.ntotal);
    EXPECT_TRUE(want == searchIn(index, queries, 10));
    index.reset();
    index.merge_from(ours, 0);
    EXPECT_TRUE(want == searchIn(index, queries, 10));
}

TEST_P(TestFusedIvfFlat, WhatCannotBeMergedIsNamed) {
    const auto merge = [&](faiss::Index& other) {
        return [&] { index.merge_from(other, 0); };
    };
    EXPECT_TRUE(refused(merge(index), "otherIndex is the index itself"));
    EXPECT_TRUE(refused(merge(quantizer), "otherIndex is a faiss::IndexFlat"));
    faiss::IndexIVFFlatDedup dedup(&quantizer, kD, kLists, GetParam());
    EXPECT_TRUE(refused(merge(dedup), "faiss::IndexIVFFlatDedup"));
    IndexFusedIVFFlat fewer(&quantizer, kD, kLists - 1, GetParam());
    EXPECT_TRUE(refused(merge(fewer), "nlist = 19"));
    const auto otherMetric = GetParam() == faiss::METRIC_L2
            ? faiss::METRIC_INNER_PRODUCT
            : faiss::METRIC_L2;
    IndexFusedIVFFlat apart(&quantizer, kD, kLists, otherMetric);
    EXPECT_TRUE(refused(merge(apart), "metric_type"));
    faiss::IndexFlat none(kD, GetParam());
    IndexFusedIVFFlat untrained(&none, kD, kLists, GetParam());
    EXPECT_TRUE(refused(merge(untrained), "trained"));
    faiss::IndexFlat moved(kD, GetParam());
    moved.add(kLists, vectors.data());
    IndexFusedIVFFlat elsewhere(&moved, kD, kLists, GetParam());
    EXPECT_TRUE(refused(merge(elsewhere), "another centroid of list 0"));
    IndexFusedIVFFlat mapped(index);
    mapped.make_direct_map();
    EXPECT_TRUE(refused(merge(mapped), "direct map"));
    EXPECT_EQ(kN, index.ntotal);
    EXPECT_EQ(kN, mapped.ntotal);
}

TEST_P(TestFusedIvfFlat, UpdatesLikeAnIndexWithTheVectors) {
    const idx_t n = 300;
    std::vector<float> updated = vectors;
    const std::vector<float> x = rowsOf(n, 7);
    for (idx_t i = 0; i < n; ++i) {
        const auto place = std::find(ids.begin(), ids.end(), i * 3);
        std::copy_n(
                x.data() + i * kD,
                kD,
                updated.data() + (place - ids.begin()) * kD);
    }
    std::vector<idx_t> some(n);
    for (idx_t i = 0; i < n; ++i) {
        some[i] = i * 3;
    }
    IndexFusedIVFFlat want(&quantizer, kD, kLists, GetParam());
    want.add_with_ids(kN, updated.data(), ids.data());
    want.nprobe = index.nprobe;
    for (auto type : {faiss::DirectMap::Hashtable, faiss::DirectMap::Array}) {
        IndexFusedIVFFlat ours(index);
        ours.set_direct_map_type(type);
        ours.update_vectors(int(n), some.data(), x.data());
        EXPECT_EQ(kN, ours.ntotal);
        EXPECT_TRUE(searchIn(want, queries, 10) == searchIn(ours, queries, 10));
        std::vector<float> row(kD);
        ours.reconstruct(some[4], row.data());
        EXPECT_TRUE(std::equal(row.begin(), row.end(), x.data() + 4 * kD));
    }
}

/// FAISS has removed vectors by then, or writes beside its lists.
TEST_P(TestFusedIvfFlat, WhatCannotBeUpdatedIsNamed) {
    const std::vector<float> x(vectors.begin(), vectors.begin() + 3 * kD);
    std::vector<float> bad = x;
    bad[kD + 1] = NAN;
    const idx_t good[3] = {5, 9, 2};
    const Found want = searchIn(index, queries, 10);
    const auto update = [](auto& one, const idx_t* ids, const float* rows) {
        return [&one, ids, rows] { one.update_vectors(3, ids, rows); };
    };
    EXPECT_TRUE(refused(update(index, good, x.data()), "make_direct_map"));
    for (auto type : {faiss::DirectMap::Hashtable, faiss::DirectMap::Array}) {
        IndexFusedIVFFlat ours(index);
        ours.set_direct_map_type(type);
        for (idx_t id : {idx_t(-1), kN, idx_t(1) << 40}) {
            const idx_t some[3] = {5, 9, id};
            EXPECT_TRUE(refused(
                    update(ours, some, x.data()),
                    "ids = " + std::to_string(id) + " (number 2 of 3)"));
        }
        EXPECT_TRUE(refused(update(ours, good, bad.data()), "x[1]"));
        EXPECT_TRUE(refused(update(ours, nullptr, x.data()), "ids"));
        EXPECT_TRUE(refused(update(ours, good, nullptr), "x"));
        EXPECT_TRUE(refused(
                [&] { ours.update_vectors(-1, good, x.data()); }, "n = -1"));
        ours.update_vectors(0, nullptr, nullptr);
        EXPECT_EQ(kN, ours.ntotal);
        EXPECT_TRUE(want == searchIn(ours, queries, 10));
    }
    faiss::IndexFlat none(kD, GetParam());
    IndexFusedIVFFlat untrained(&none, kD, kLists, GetParam());
    EXPECT_TRUE(refused(update(untrained, good, x.data()), "not trained"));
}

/// As in FAISS: a map in an array takes the last, a table has no place for two.
TEST_P(TestFusedIvfFlat, AnIdThatIsUpdatedTwice) {
    const idx_t twice[2] = {5, 5};
    const std::vector<float> x(vectors.begin(), vectors.begin() + 2 * kD);
    IndexFusedIVFFlat table(index), array(index);
    table.set_direct_map_type(faiss::DirectMap::Hashtable);
    EXPECT_TRUE(
            refused([&] { table.update_vectors(2, twice, x.data()); },
                    "ids = 5 is there twice"));
    EXPECT_EQ(kN, table.ntotal);
    array.set_direct_map_type(faiss::DirectMap::Array);
    array.update_vectors(2, twice, x.data());
    std::vector<float> row(kD);
    array.reconstruct(5, row.data());
    EXPECT_TRUE(std::equal(row.begin(), row.end(), x.data() + kD));
}

/// A vector with NaN that add() has counted is in no list.
TEST_P(TestFusedIvfFlat, UpdateOfAVectorThatIsInNoList) {
    // FAISS's flat indexes may find a list for it.
    IndexFusedFlat centroids(quantizer);
    IndexFusedIVFFlat ours(&centroids, kD, kLists, GetParam());
    std::vector<float> x(vectors.begin(), vectors.begin() + 3 * kD);
    x[kD] = NAN;
    ours.add(3, x.data());
    ours.make_direct_map();
    const idx_t id = 1;
    EXPECT_TRUE(
            refused([&] { ours.update_vectors(1, &id, vectors.data()); },
                    "ids = 1 (number 0 of 1) is in no list"));
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
    // Centroids without a list are none.
    quantizer.add(kLists, queries.data());
    EXPECT_EQ(want.labels, searchIn(index, queries, 10).labels);
    faiss::RangeSearchResult range(kQ);
    index.range_search(kQ, queries.data(), 1, &range);
    index.reset();
    for (idx_t label : searchIn(index, queries, 3).labels) {
        EXPECT_EQ(-1, label);
    }
}

} // namespace faiss_bits::test
