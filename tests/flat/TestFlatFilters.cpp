/// GpuIndexBitsFlat with every IDSelector of FAISS, evaluated at the search or
/// prepared, against the ranking of all vectors.

#include "tests/flat/GpuFilterHarness.h"

namespace faiss_bits::test {
namespace {

class GpuFlatFilters : public GpuTest {
   protected:
    /// An index of every kind, and what the tests ask of it.
    struct Searched {
        FlatData data;
        std::unique_ptr<GpuIndexBitsFlat> index;
        SearchOutput all;

        explicit Searched(const FlatCase& c)
                : data(c), index(data.makeIndex()) {
            all = searchOnHost(*index, data.queries, c.n);
        }
    };

    void makeIndexes(int64_t n, const std::vector<int64_t>& batches) {
        searched_.clear();
        n_ = n;
        for (int64_t q : batches) {
            FlatCase c;
            c.n = n;
            c.d = 12;
            c.q = q;
            for (const FlatCase& kind : kindsOf(c)) {
                searched_.push_back(std::make_unique<Searched>(kind));
                searched_.back()->data.expectNearest(searched_.back()->all, n);
            }
        }
    }

    void expectFiltered(faiss::IDSelector& selector, const char* name) {
        SCOPED_TRACE(name);
        std::set<int64_t> members;
        for (int64_t id = 0; id < n_; ++id) {
            if (selector.is_member(id)) {
                members.insert(members.end(), id);
            }
        }
        DeviceSelector prepared(&selector, n_);
        EXPECT_EQ(prepared.numVectors(), n_);
        EXPECT_EQ(prepared.numSelected(), int64_t(members.size()));
        for (int64_t id = -2; id < n_ + 40; ++id) {
            ASSERT_EQ(prepared.is_member(id), members.count(id) == 1) << id;
        }
        for (const auto& one : searched_) {
            for (int64_t k : {1, 10, 70}) {
                const SearchOutput want =
                        filtered(one->all, n_, k, one->data.isIP(), members);
                const auto& queries = one->data.queries;
                ASSERT_TRUE(sameButZeros(
                        want, searchWith(*one->index, queries, k, &selector)))
                        << one->data.c << " k=" << k;
                ASSERT_TRUE(sameButZeros(
                        want, searchWith(*one->index, queries, k, &prepared)))
                        << "prepared, " << one->data.c << " k=" << k;
                ASSERT_TRUE(sameButZeros(
                        want,
                        searchOnDeviceWith(*one->index, queries, k, &selector)))
                        << "on the device, " << one->data.c << " k=" << k;
            }
        }
    }

    void expectEveryKind(int64_t n) {
        makeIndexes(n, {1, 5, 33});
        for (auto [first, end] : std::vector<std::pair<idx_t, idx_t>>{
                     {10, n / 2}, {0, n}, {-5, 7}, {n - 9, 2 * n}, {50, 50}}) {
            faiss::IDSelectorRange range(first, end);
            expectFiltered(range, "range");
        }
        faiss::IDSelectorAll all;
        expectFiltered(all, "all");
        // In no order, repeated, and some that the index has not.
        // The selector points to them.
        const std::vector<idx_t> fewIds = {
                7, n - 1, 0, 7, n, -1, 150, 3, 4 * n};
        faiss::IDSelectorArray few(fewIds.size(), fewIds.data());
        expectFiltered(few, "a short array");
        std::vector<idx_t> ids = fewIds;
        for (idx_t id = 0; id < n; id += 3) {
            ids.push_back(n - id);
        }
        faiss::IDSelectorArray array(ids.size(), ids.data());
        expectFiltered(array, "array");
        faiss::IDSelectorArray none(0, ids.data());
        expectFiltered(none, "an empty array");
        faiss::IDSelectorBatch batch(ids.size(), ids.data());
        expectFiltered(batch, "batch");
        std::vector<uint8_t> bits((n + 7) / 8 + 3, 0xA6);
        faiss::IDSelectorBitmap bitmap(bits.size(), bits.data());
        expectFiltered(bitmap, "bitmap");
        faiss::IDSelectorBitmap shorter(5, bits.data());
        expectFiltered(shorter, "a short bitmap");
        faiss::IDSelectorNot no(&batch);
        expectFiltered(no, "not");
        faiss::IDSelectorNot again(&no);
        expectFiltered(again, "not not");
        faiss::IDSelectorNot notFew(&few);
        expectFiltered(notFew, "not of a short array");
        faiss::IDSelectorNot nothing(&all);
        expectFiltered(nothing, "not all");
        EveryFifth own;
        expectFiltered(own, "of the user's own");
        faiss::IDSelectorNot notOwn(&own);
        expectFiltered(notOwn, "not of the user's own");
        DeviceSelector prepared(&own, n);
        faiss::IDSelectorNot notPrepared(&prepared);
        expectFiltered(notPrepared, "not of a prepared one");
#if FAISS_BITS_FAISS_HAS_LOGICAL_SELECTORS
        faiss::IDSelectorRange range(20, n / 3);
        faiss::IDSelectorAnd both(&batch, &range);
        expectFiltered(both, "and");
        faiss::IDSelectorOr either(&few, &range);
        expectFiltered(either, "or");
        faiss::IDSelectorXOr one(&bitmap, &range);
        expectFiltered(one, "xor");
        faiss::IDSelectorAnd nested(&either, &one);
        faiss::IDSelectorOr deeper(&nested, &prepared);
        expectFiltered(deeper, "or of and of or and xor");
#endif
    }

    int64_t n_ = 0;
    std::vector<std::unique_ptr<Searched>> searched_;
};

TEST_F(GpuFlatFilters, EveryKind) {
    expectEveryKind(1003);
}

TEST_F(GpuFlatFilters, SmallRangeAndArray) {
    // initcheck does not see what cuBLAS writes (tests/sanitize.sh).
    makeIndexes(203, {1, 5});
    faiss::IDSelectorRange range(10, 60);
    expectFiltered(range, "range");
    const std::vector<idx_t> ids = {7, 202, 7, -1, 203};
    faiss::IDSelectorArray array(ids.size(), ids.data());
    faiss::IDSelectorNot no(&array);
    expectFiltered(no, "not");
    EveryFifth own;
    expectFiltered(own, "of the user's own");
}

/// So many vectors that raw selectors become lists too.
TEST_F(GpuFlatFilters, Lists) {
    FlatCase c;
    c.n = 20011;
    c.d = 12;
    c.fill = Fill::Integers;
    std::vector<idx_t> ids(150);
    for (size_t i = 0; i < ids.size(); ++i) {
        ids[i] = (i * 7919) % (2 * c.n);
    }
    faiss::IDSelectorArray array(ids.size(), ids.data());
    faiss::IDSelectorRange range(500, 900);
    faiss::IDSelectorRange more(500, 14000);
    std::vector<faiss::IDSelector*> selectors = {&array, &range, &more};
    for (int64_t q : {1, 16, 17, 200}) {
        c.q = q;
        for (const FlatCase& kind : kindsOf(c)) {
            const FlatData data(kind);
            const auto index = data.makeIndex();
            const SearchOutput all = searchOnHost(*index, data.queries, c.n);
            for (faiss::IDSelector* selector : selectors) {
                std::set<int64_t> members;
                for (int64_t id = 0; id < c.n; ++id) {
                    if (selector->is_member(id)) {
                        members.insert(id);
                    }
                }
                DeviceSelector prepared(selector, c.n);
                for (int64_t k : {1, 10, 200}) {
                    const SearchOutput want =
                            filtered(all, c.n, k, data.isIP(), members);
                    ASSERT_TRUE(sameButZeros(
                            want,
                            searchWith(*index, data.queries, k, selector)))
                            << kind << " k=" << k;
                    ASSERT_TRUE(sameButZeros(
                            want,
                            searchWith(*index, data.queries, k, &prepared)))
                            << "prepared, " << kind << " k=" << k;
                }
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
