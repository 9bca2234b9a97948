/// Every IDSelector of FAISS in the searches of IndexFusedFlat, and the
/// parameters that it must refuse.

#include <faiss/IndexFlat.h>
#include <faiss/IndexIVF.h>
#include <faiss/impl/IDSelector.h>

#include "tests/flat/FusedHarness.h"

namespace faiss_bits::test {
namespace {

/// A selector of a user's own.
struct EveryFifth : faiss::IDSelector {
    bool is_member(idx_t id) const override {
        return id % 5 == 0;
    }
};

/// One that fails in the middle.
struct Failing : faiss::IDSelector {
    bool is_member(idx_t id) const override {
        if (id == 100) {
            throw faiss::FaissException("no answer, says the test");
        }
        return id % 2;
    }
};

class FusedFlatFilters : public ::testing::Test {
   protected:
    /// Searches and range searches of every metric, with few queries and many,
    /// against the reference on those ids that the selector has.
    void expectFiltered(faiss::IDSelector& selector) {
        for (int64_t q : {1, 30}) {
            FusedCase c;
            c.n = kN;
            c.q = q;
            c.fill = Fill::Integers;
            for (const FusedCase& one : metricsOf(c)) {
                const FusedData data(one);
                const auto index = data.makeIndex();
                std::vector<int64_t> ids;
                for (int64_t id = 0; id < c.n; ++id) {
                    if (selector.is_member(id)) {
                        ids.push_back(id);
                    }
                }
                faiss::SearchParameters params;
                params.sel = &selector;
                for (int64_t k : {1, 10, int(kN) + 3}) {
                    data.expectNearest(
                            searchOnHost(*index, data.queries, k, &params),
                            k,
                            &ids);
                }
                const float radius = data.radiusFor(60);
                faiss::RangeSearchResult found(q);
                index->range_search(
                        q, data.queries.data(), radius, &found, &params);
                data.expectInRange(found, radius, &ids);
            }
        }
    }

    static constexpr idx_t kN = 300;
};

TEST_F(FusedFlatFilters, Range) {
    for (auto [first, end] : std::vector<std::pair<idx_t, idx_t>>{
                 {10, 200}, {0, 300}, {-5, 7}, {290, 1000}, {50, 50}, {9, 3}}) {
        faiss::IDSelectorRange selector(first, end);
        expectFiltered(selector);
        faiss::IDSelectorRange sorted(first, end, true);
        expectFiltered(sorted);
    }
}

TEST_F(FusedFlatFilters, ArrayAndBatch) {
    // In no order, repeated, and some that the index has not.
    const std::vector<idx_t> ids = {7, 299, 0, 7, 300, -1, 150, 3, 4000};
    faiss::IDSelectorArray array(ids.size(), ids.data());
    expectFiltered(array);
    faiss::IDSelectorBatch batch(ids.size(), ids.data());
    expectFiltered(batch);
    faiss::IDSelectorArray none(0, ids.data());
    expectFiltered(none);
}

TEST_F(FusedFlatFilters, Bitmap) {
    std::vector<uint8_t> bits((kN + 7) / 8, 0xA6);
    faiss::IDSelectorBitmap all(bits.size(), bits.data());
    expectFiltered(all);
    faiss::IDSelectorBitmap shorter(5, bits.data());
    expectFiltered(shorter);
    // Few of many, behind whole words without any; bits of ids that the index
    // has not.
    std::fill(bits.begin(), bits.end(), uint8_t(0));
    bits[1] = 0x81;
    bits[20] = 1;
    bits.back() = 0xFF;
    faiss::IDSelectorBitmap few(bits.size(), bits.data());
    expectFiltered(few);
    faiss::IDSelectorNot most(&few);
    expectFiltered(most);
    faiss::IDSelectorBitmap none(0, nullptr);
    expectFiltered(none);
}

TEST_F(FusedFlatFilters, MemoryThatIsNull) {
    FusedCase c;
    c.n = kN;
    const FusedData data(c);
    const auto index = data.makeIndex();
    faiss::IDSelectorBitmap bitmap(3, nullptr);
    faiss::SearchParameters params;
    params.sel = &bitmap;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { searchOnHost(*index, data.queries, 1, &params); }, "bitmap"));
    faiss::IDSelectorArray array(3, nullptr);
    params.sel = &array;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { searchOnHost(*index, data.queries, 1, &params); }, "ids"));
}

TEST_F(FusedFlatFilters, NotAndAll) {
    const std::vector<idx_t> ids = {7, 299, 0, 7, 300, -1, 150};
    faiss::IDSelectorArray array(ids.size(), ids.data());
    faiss::IDSelectorNot notArray(&array);
    expectFiltered(notArray);
    faiss::IDSelectorNot again(&notArray);
    expectFiltered(again);
    faiss::IDSelectorRange range(3, 280);
    faiss::IDSelectorNot notRange(&range);
    expectFiltered(notRange);
    faiss::IDSelectorAll all;
    expectFiltered(all);
    faiss::IDSelectorNot none(&all);
    expectFiltered(none);
}

TEST_F(FusedFlatFilters, OfTheUsersOwn) {
    EveryFifth selector;
    expectFiltered(selector);
}

#if FAISS_BITS_FAISS_HAS_LOGICAL_SELECTORS
TEST_F(FusedFlatFilters, AndOrXor) {
    const std::vector<idx_t> ids = {7, 299, 0, 7, 300, -1, 150, 25};
    faiss::IDSelectorBatch batch(ids.size(), ids.data());
    faiss::IDSelectorRange range(20, 180);
    faiss::IDSelectorAnd both(&batch, &range);
    expectFiltered(both);
    faiss::IDSelectorOr either(&batch, &range);
    expectFiltered(either);
    faiss::IDSelectorXOr one(&batch, &range);
    expectFiltered(one);
    faiss::IDSelectorNot not_(&one);
    expectFiltered(not_);
}
#endif

TEST_F(FusedFlatFilters, WithoutASelector) {
    FusedCase c;
    const FusedData data(c);
    const auto index = data.makeIndex();
    faiss::SearchParameters plain;
    EXPECT_TRUE(sameOutput(
            searchOnHost(*index, data.queries, 5, &plain),
            searchOnHost(*index, data.queries, 5)));
}

TEST_F(FusedFlatFilters, ParametersOfOtherIndexesAreRefused) {
    FusedCase c;
    const FusedData data(c);
    const auto index = data.makeIndex();
    faiss::IVFSearchParameters other;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { searchOnHost(*index, data.queries, 5, &other); }, "params"));
    faiss::RangeSearchResult found(c.q);
    EXPECT_TRUE(faissThrowsNaming(
            [&] {
                index->range_search(
                        c.q, data.queries.data(), 1, &found, &other);
            },
            "params"));
}

TEST_F(FusedFlatFilters, SelectorsThatThrowLeaveTheIndexAsItWas) {
    FusedCase c;
    const FusedData data(c);
    const auto index = data.makeIndex();
    Failing failing;
    faiss::SearchParameters params;
    params.sel = &failing;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { searchOnHost(*index, data.queries, 5, &params); }, "test"));
    EXPECT_TRUE(faissThrowsNaming([&] { index->remove_ids(failing); }, "test"));
    faiss::IDSelectorNot null(nullptr);
    params.sel = &null;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { searchOnHost(*index, data.queries, 5, &params); }, "sel"));
    EXPECT_EQ(index->ntotal, c.n);
    data.expectNearest(searchOnHost(*index, data.queries, 5), 5);
}

} // namespace
} // namespace faiss_bits::test
