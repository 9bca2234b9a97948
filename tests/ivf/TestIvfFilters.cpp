/// GpuIndexBitsIVFFlat with every IDSelector against the oracle.

#include <limits>
#include <unordered_set>

#include <faiss/impl/IDSelector.h>

#include "faiss_bits/flat/DeviceSelector.h"
#include "tests/ivf/IvfHarness.h"

namespace faiss_bits::test {
namespace {

using gpu::DeviceSelector;

class IvfFilters : public GpuTest {};

/// Not one of FAISS's.
struct OwnSelector : faiss::IDSelector {
    std::function<bool(int64_t)> selects;

    explicit OwnSelector(std::function<bool(int64_t)> which)
            : selects(std::move(which)) {}
    bool is_member(int64_t id) const override {
        return selects(id);
    }
};

/// A search with a selector of an index, against the oracle.
class Filtered {
   public:
    Filtered(IvfCase which, int probes) : data(which), nprobe(probes) {
        index = data.makeIndex();
    }

    /// With vectors and ids of the caller's.
    Filtered(
            IvfCase c,
            int probes,
            std::vector<float> vectors,
            std::vector<int64_t> ids)
            : data(c, std::move(vectors), makeVectors(c.q, c.d, 2), ids),
              nprobe(probes) {
        index = data.makeIndex();
    }

    void expect(
            const faiss::IDSelector& selector,
            const char* name,
            int64_t k) {
        SCOPED_TRACE(testing::Message() << name << " k=" << k);
        data.selects = [&](int64_t id) { return selector.is_member(id); };
        data.expectExact(search(selector, k), nprobe, k);
    }

    SearchOutput search(const faiss::IDSelector& selector, int64_t k) {
        SearchOutput found;
        found.distances.resize(data.c.q * k);
        found.labels.resize(data.c.q * k);
        faiss::SearchParametersIVF params;
        params.nprobe = nprobe;
        params.sel = const_cast<faiss::IDSelector*>(&selector);
        index->search(
                data.c.q,
                data.queries.data(),
                k,
                found.distances.data(),
                found.labels.data(),
                &params);
        return found;
    }

    /// Every kind of selector, of a part of the vectors.
    void expectKinds(double part, int64_t k, uint32_t seed) {
        std::vector<int64_t> ids = data.selectorIds();
        std::mt19937 random(seed);
        std::shuffle(ids.begin(), ids.end(), random);
        ids.resize(size_t(double(ids.size()) * part));
        const std::unordered_set<int64_t> set(ids.begin(), ids.end());
        // Also ids that no vector has, and one twice.
        ids.push_back(-999999999);
        ids.push_back(std::numeric_limits<int64_t>::max());
        ids.push_back(ids[0]);

        faiss::IDSelectorArray array(ids.size(), ids.data());
        expect(array, "array", k);
        faiss::IDSelectorBatch batch(ids.size(), ids.data());
        expect(batch, "batch", k);
        faiss::IDSelectorNot no(&batch);
        expect(no, "not", k);
        OwnSelector own([&](int64_t id) { return set.count(id) > 0; });
        expect(own, "own", k);
        faiss::IDSelectorNot notOwn(&own);
        expect(notOwn, "not own", k);
        const DeviceSelector prepared(&batch, 1000);
        expect(prepared, "DeviceSelector", k);
        std::vector<uint8_t> bytes(300);
        for (uint8_t& byte : bytes) {
            for (int bit = 0; bit < 8; ++bit) {
                byte |= uint8_t((random() % 1000 < part * 1000) << bit);
            }
        }
        faiss::IDSelectorBitmap bitmap(bytes.size(), bytes.data());
        expect(bitmap, "bitmap", k);
        std::vector<int64_t> sorted = data.selectorIds();
        std::sort(sorted.begin(), sorted.end());
        const size_t from = sorted.size() / 3;
        faiss::IDSelectorRange range(
                sorted[from],
                sorted[std::min(
                        from + size_t(double(sorted.size()) * part),
                        sorted.size() - 1)]);
        expect(range, "range", k);
    }

    IvfData data;
    const int nprobe;
    std::unique_ptr<GpuIndexBitsIVFFlat> index;
};

IvfCase someCase() {
    IvfCase c;
    c.n = 1500;
    c.d = 12;
    c.nlist = 11;
    c.q = 6;
    return c;
}

TEST_F(IvfFilters, SmallEveryKindOfIndex) {
    for (bool interleaved : {true, false}) {
        for (auto indices :
             {faiss::gpu::INDICES_64_BIT,
              faiss::gpu::INDICES_32_BIT,
              faiss::gpu::INDICES_CPU,
              faiss::gpu::INDICES_IVF}) {
            for (int64_t q : {5, 140}) {
                IvfCase c = someCase();
                c.interleaved = interleaved;
                c.indices = indices;
                c.q = q;
                c.metric = interleaved ? faiss::METRIC_L2
                                       : faiss::METRIC_INNER_PRODUCT;
                c.fill = q == 5 ? Fill::Integers : Fill::Uniform;
                c.d = q == 5 ? 3 : 12; // ties
                Filtered filtered(c, 5);
                filtered.expectKinds(0.3, 20, 7);
            }
        }
    }
}

TEST_F(IvfFilters, SmallParts) {
    for (int64_t q : {3, 150}) {
        IvfCase c = someCase();
        c.q = q;
        Filtered filtered(c, 6);
        for (double part : {0.001, 0.01, 0.5, 1.0}) {
            for (int64_t k : {1, 30, 2000}) {
                filtered.expectKinds(part, k, uint32_t(k));
            }
        }
    }
}

TEST_F(IvfFilters, SmallAllAndNone) {
    const int64_t least = std::numeric_limits<int64_t>::min();
    const int64_t greatest = std::numeric_limits<int64_t>::max();
    for (int64_t q : {2, 90}) {
        IvfCase c = someCase();
        c.q = q;
        Filtered filtered(c, 4);
        faiss::IDSelectorAll all;
        filtered.expect(all, "all", 15);
        faiss::IDSelectorNot none(&all);
        filtered.expect(none, "none", 15);
        faiss::IDSelectorRange whole(least, greatest);
        filtered.expect(whole, "whole", 15);
        faiss::IDSelectorRange empty(5, 5);
        filtered.expect(empty, "empty", 15);
        faiss::IDSelectorRange backwards(50, 5);
        filtered.expect(backwards, "backwards", 15);
        faiss::IDSelectorRange negative(least, 0);
        filtered.expect(negative, "negative", 15);
        faiss::IDSelectorArray noIds(0, nullptr);
        filtered.expect(noIds, "no ids", 15);
        faiss::IDSelectorBitmap noBits(0, nullptr);
        filtered.expect(noBits, "no bits", 15);
        const DeviceSelector nothing(&all, 0);
        filtered.expect(nothing, "DeviceSelector of none", 15);
    }
}

TEST_F(IvfFilters, SmallIdsThatAreHardToKeep) {
    // Among them the number that an empty place of the table has.
    const int64_t empty = int64_t(0x8080808080808080u);
    for (int64_t q : {2, 60}) {
        IvfCase c = someCase();
        c.n = 200;
        c.q = q;
        c.nlist = 3;
        std::vector<int64_t> ids(c.n);
        std::iota(ids.begin(), ids.end(), int64_t(0));
        ids[3] = empty;
        ids[4] = std::numeric_limits<int64_t>::min();
        ids[5] = std::numeric_limits<int64_t>::max();
        ids[6] = empty + 1;
        ids[7] = ids[8]; // twice
        Filtered filtered(c, 3, makeVectors(c.n, c.d, 1), ids);
        for (size_t count : {3, 4, 5, 6, 7, 8}) {
            faiss::IDSelectorArray array(count, ids.data());
            filtered.expect(array, "array", 20);
            faiss::IDSelectorNot no(&array);
            filtered.expect(no, "not", 20);
        }
    }
}

TEST_F(IvfFilters, SmallUnevenLists) {
    // Most vectors in one list, and far from each other in its order.
    for (auto indices : {faiss::gpu::INDICES_64_BIT, faiss::gpu::INDICES_CPU}) {
        for (int64_t q : {3, 200}) {
            IvfCase c = someCase();
            c.n = 2500;
            c.nlist = 64;
            c.q = q;
            c.indices = indices;
            auto vectors = makeVectors(c.n, c.d, 1);
            for (int64_t i = 0; i < c.n; ++i) {
                if (i % 5 != 0) {
                    std::copy_n(
                            vectors.begin() + c.d,
                            c.d,
                            vectors.begin() + i * c.d);
                }
            }
            std::vector<int64_t> ids(c.n);
            std::iota(ids.begin(), ids.end(), int64_t(100));
            std::shuffle(ids.begin(), ids.end(), std::mt19937(4));
            Filtered filtered(c, 40, vectors, ids);
            filtered.expectKinds(0.02, 30, 5);
            filtered.expectKinds(0.6, 30, 6);
        }
    }
}

/// Searches with batches of several sizes, for some queries against the oracle,
/// and all against the search without a filter.
void expectParts(
        const IvfCase& c,
        int nprobe,
        const std::vector<double>& parts,
        int64_t step) {
    const bool isIp = c.metric == faiss::METRIC_INNER_PRODUCT;
    Filtered filtered(c, nprobe);
    const int64_t k = 10;
    const SearchOutput all = filtered.search(faiss::IDSelectorAll(), k);
    for (double part : parts) {
        std::unordered_set<int64_t> set;
        std::mt19937 random(uint32_t(part * 1000));
        for (int64_t id : filtered.data.ids) {
            if (random() % 10000 < part * 10000) {
                set.insert(id);
            }
        }
        const std::vector<int64_t> ids(set.begin(), set.end());
        faiss::IDSelectorBatch batch(ids.size(), ids.data());
        const SearchOutput found = filtered.search(batch, k);
        filtered.data.selects = [&](int64_t id) { return set.count(id) > 0; };
        for (int64_t i = 0; i < c.q; i += step) {
            ASSERT_TRUE(isCanonical(
                    filtered.data.resultOf(
                            i, filtered.data.probesOf(i, nprobe), k),
                    isIp,
                    found.distances.data() + i * k,
                    found.labels.data() + i * k,
                    k))
                    << "query " << i << " of " << c << " part " << part;
        }
        // Found by all and selected: found, at no later place.
        for (int64_t i = 0; i < c.q; ++i) {
            for (int64_t j = 0; j < k; ++j) {
                const int64_t label = all.labels[i * k + j];
                if (!set.count(label)) {
                    continue;
                }
                const auto* begin = found.labels.data() + i * k;
                ASSERT_NE(std::find(begin, begin + j + 1, label), begin + j + 1)
                        << "query " << i << " part " << part;
            }
        }
    }
}

// Shapes of TestIvfPlan.cpp (CopiesOfTests), so that vectors are copied of some
// parts and not of others.

TEST_F(IvfFilters, ManyQueriesMeetInLists) {
    for (bool interleaved : {true, false}) {
        for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
            IvfCase c;
            c.n = 50000;
            c.d = 67; // no whole number of parts
            c.nlist = 40;
            c.q = 6000;
            c.interleaved = interleaved;
            c.metric = metric;
            expectParts(c, 20, {0.0005, 0.01, 0.1, 0.5, 0.97}, 101);
        }
    }
}

TEST_F(IvfFilters, FewQueriesReadTheirListsCopied) {
    for (bool interleaved : {true, false}) {
        IvfCase c;
        c.n = 300000;
        c.d = 67;
        c.nlist = 40;
        c.q = 42;
        c.interleaved = interleaved;
        expectParts(c, 15, {0.0005, 0.03, 0.1, 0.9}, 7);
    }
}

TEST_F(IvfFilters, ManyListsAreCopiedAsRows) {
    IvfCase c; // 4,096 groups of 32 of 700 components: more than 224 MiB
    c.n = 20000;
    c.d = 700;
    c.nlist = 4096;
    c.q = 8000;
    expectParts(c, 200, {0.01, 0.05}, 501);
}

TEST_F(IvfFilters, SmallGivenListsAndPairs) {
    for (int64_t q : {4, 130}) {
        IvfCase c = someCase();
        c.q = q;
        IvfData data(c);
        const auto index = data.makeIndex();
        const int nprobe = 4;
        const int k = 25;
        std::vector<std::vector<int64_t>> lists(c.q);
        std::vector<int64_t> assign;
        std::mt19937 random(3);
        for (auto& ofQuery : lists) {
            for (int p = 0; p < nprobe; ++p) {
                ofQuery.push_back(int64_t(random() % (c.nlist + 3)) - 2);
            }
            assign.insert(assign.end(), ofQuery.begin(), ofQuery.end());
        }
        OwnSelector odd([](int64_t id) { return id % 3 == 1; });
        data.selects = odd.selects;
        faiss::SearchParametersIVF params;
        params.nprobe = nprobe;
        params.sel = &odd;
        SearchOutput found;
        found.distances.resize(c.q * k);
        found.labels.resize(c.q * k);
        for (bool pairs : {false, true}) {
            index->search_preassigned(
                    c.q,
                    data.queries.data(),
                    k,
                    assign.data(),
                    nullptr,
                    found.distances.data(),
                    found.labels.data(),
                    pairs,
                    &params);
            for (int64_t i = 0; i < c.q; ++i) {
                EXPECT_TRUE(isCanonical(
                        data.bestOf(i, lists[i], k, pairs),
                        false,
                        found.distances.data() + i * k,
                        found.labels.data() + i * k,
                        k))
                        << "query " << i;
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
