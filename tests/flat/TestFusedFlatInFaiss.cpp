/// IndexFusedFlat where FAISS takes a flat index, and FAISS's interrupts.

#include <chrono>
#include <initializer_list>
#include <limits>
#include <memory>
#include <thread>

#include <faiss/Clustering.h>
#include <faiss/IndexFlat.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/MetaIndexes.h>
#include <faiss/VectorTransform.h>

#include "faiss_bits/cloners/FusedCloner.h"
#include "tests/flat/FusedHarness.h"

namespace faiss_bits::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMax = std::numeric_limits<float>::max();

template <class T>
T* as(faiss::Index* index) {
    return dynamic_cast<T*>(index);
}

FusedCase integers() {
    FusedCase c;
    c.fill = Fill::Integers;
    return c;
}

TEST(FusedFlatInFaiss, InsideAnIdMap) {
    const FusedData data(integers());
    IndexFusedFlat inner(data.c.d);
    faiss::IndexIDMap2 index(&inner);
    std::vector<idx_t> ids(data.c.n);
    for (idx_t i = 0; i < data.c.n; ++i) {
        ids[i] = 1000 + i;
    }
    index.add_with_ids(data.c.n, data.vectors.data(), ids.data());
    auto shifted = searchOnHost(index, data.queries, 7);
    for (idx_t& label : shifted.labels) {
        label -= 1000;
    }
    data.expectNearest(shifted, 7);

    const idx_t gone[] = {1000, 1499};
    index.remove_ids(faiss::IDSelectorArray(2, gone));
    EXPECT_EQ(inner.ntotal, data.c.n - 2);
}

#if FAISS_BITS_FAISS_HAS_LOGICAL_SELECTORS
/// The map hands its translated selector on.
TEST(FusedFlatInFaiss, FiltersThroughAnIdMap) {
    const FusedData data(integers());
    IndexFusedFlat inner(data.c.d);
    faiss::IndexIDMap index(&inner);
    std::vector<idx_t> ids(data.c.n);
    for (idx_t i = 0; i < data.c.n; ++i) {
        ids[i] = 1000 + i;
    }
    index.add_with_ids(data.c.n, data.vectors.data(), ids.data());
    faiss::IDSelectorRange range(1100, 1200);
    faiss::SearchParameters params;
    params.sel = &range;
    auto shifted = searchOnHost(index, data.queries, 7, &params);
    for (idx_t& label : shifted.labels) {
        label -= 1000;
    }
    std::vector<int64_t> some(100);
    std::iota(some.begin(), some.end(), 100);
    data.expectNearest(shifted, 7, &some);
}
#endif

TEST(FusedFlatInFaiss, AsQuantizerAndForKMeans) {
    FusedCase c = integers();
    c.n = 1000;
    const FusedData data(c);
    IndexFusedFlat quantizer(c.d);
    faiss::IndexIVFFlat index(&quantizer, c.d, 8);
    index.train(c.n, data.vectors.data());
    index.add(c.n, data.vectors.data());
    EXPECT_EQ(quantizer.ntotal, 8);
    index.nprobe = 8;
    EXPECT_EQ(index.ntotal, c.n);
    const auto out = searchOnHost(index, data.queries, 1);
    const auto flat = searchOnHost(*data.makeIndex(), data.queries, 1);
    EXPECT_EQ(out.distances, flat.distances);

    faiss::Clustering clustering(c.d, 16);
    IndexFusedFlat centroids(c.d);
    clustering.train(c.n, data.vectors.data(), centroids);
    EXPECT_EQ(centroids.ntotal, 16);
}

/// A coarse quantizer's label -1 is what keeps a NaN out of FAISS's lists. (The
/// IndexFlatL2 of FAISS 1.7.3 gives no such label for k = 1, but does for
/// more.)
TEST(FusedFlatInFaiss, AsQuantizerOfNan) {
    FusedCase c;
    c.n = 5000;
    FusedData data(c);
    IndexFusedFlat quantizer(c.d);
    faiss::IndexIVFFlat index(&quantizer, c.d, 16);
    index.train(c.n, data.vectors.data());
    data.vectors[1234 * c.d + 7] = kNan;
    index.add(c.n, data.vectors.data());
    EXPECT_EQ(index.ntotal, 5000);
    EXPECT_EQ(index.invlists->compute_ntotal(), 4999u);

    // A query of NaN finds no list, and so nothing.
    std::vector<float> bad(c.d, 1.f);
    bad[3] = kNan;
    const std::vector<idx_t> none(2, -1);
    index.nprobe = 4;
    EXPECT_EQ(searchOnHost(index, bad, 2).labels, none);
    faiss::IndexFlatL2 theirs(c.d);
    theirs.add(16, quantizer.get_xb());
    for (const faiss::IndexFlat* flat :
         std::initializer_list<const faiss::IndexFlat*>{&theirs, &quantizer}) {
        std::vector<idx_t> labels(2);
        flat->assign(1, bad.data(), labels.data(), 2);
        EXPECT_EQ(labels, none);
        const auto out = searchOnHost(*flat, bad, 2);
        EXPECT_EQ(out.labels, none);
        EXPECT_EQ(out.distances, std::vector<float>(2, kMax));
    }
}

TEST(FusedFlatInFaiss, AsRefinement) {
    const FusedData data(integers());
    auto base = data.makeIndex();
    faiss::IndexRefineFlat index(base.get(), base->get_xb());
    index.k_factor = 2;
    data.expectNearest(searchOnHost(index, data.queries, 5), 5);
}

TEST(FusedFlatInFaiss, ToFusedOfEveryFlat) {
    for (const FusedCase& one : metricsOf(integers())) {
        const FusedData data(one);
        faiss::IndexFlat plain(one.d, one.metric);
        plain.metric_arg = one.metricArg;
        plain.add(one.n, data.vectors.data());
        const std::unique_ptr<faiss::Index> ours(index_to_fused(&plain));
        ASSERT_NE(as<IndexFusedFlat>(ours.get()), nullptr) << one;
        data.expectNearest(searchOnHost(*ours, data.queries, 9), 9);
        as<IndexFusedFlat>(ours.get())->choice.variant = cpu::Variant::Var1;
        const std::unique_ptr<faiss::Index> again(index_to_fused(ours.get()));
        ASSERT_NE(as<IndexFusedFlat>(again.get()), nullptr) << one;
        EXPECT_EQ(
                as<IndexFusedFlat>(again.get())->choice.variant,
                cpu::Variant::Var1);
    }
    const std::unique_ptr<faiss::Index> l2(
            index_to_fused(std::make_unique<faiss::IndexFlatL2>(4).get()));
    EXPECT_NE(as<IndexFusedFlat>(l2.get()), nullptr);
    const faiss::IndexFlat canberra(4, faiss::METRIC_Canberra);
    const std::unique_ptr<faiss::Index> shares(index_to_fused(&canberra));
    EXPECT_NE(as<IndexFusedFlat>(shares.get()), nullptr);
    const faiss::IndexFlat unknown(4, faiss::MetricType(30));
    const std::unique_ptr<faiss::Index> other(index_to_fused(&unknown));
    EXPECT_EQ(as<IndexFusedFlat>(other.get()), nullptr);
    EXPECT_NE(as<faiss::IndexFlat>(other.get()), nullptr);
    EXPECT_TRUE(faissThrowsNaming([] { index_to_fused(nullptr); }, "index"));
}

TEST(FusedFlatInFaiss, ToFusedInsideOthers) {
    const FusedData data(integers());
    faiss::IndexFlatL2 flat(data.c.d);
    faiss::IndexIDMap map(&flat);
    std::vector<idx_t> ids = firstIds(data.c.n);
    map.add_with_ids(data.c.n, data.vectors.data(), ids.data());
    const std::unique_ptr<faiss::Index> ours(index_to_fused(&map));
    ASSERT_NE(as<faiss::IndexIDMap>(ours.get()), nullptr);
    EXPECT_NE(
            as<IndexFusedFlat>(as<faiss::IndexIDMap>(ours.get())->index),
            nullptr);
    data.expectNearest(searchOnHost(*ours, data.queries, 9), 9);

    faiss::IndexFlatL2 quantizer(data.c.d);
    faiss::IndexIVFFlat ivf(&quantizer, data.c.d, 4);
    ivf.train(data.c.n, data.vectors.data());
    const std::unique_ptr<faiss::Index> ourIvf(index_to_fused(&ivf));
    ASSERT_NE(as<faiss::IndexIVFFlat>(ourIvf.get()), nullptr);
    EXPECT_NE(
            as<IndexFusedFlat>(
                    as<faiss::IndexIVFFlat>(ourIvf.get())->quantizer),
            nullptr);

    faiss::RandomRotationMatrix rotation(data.c.d, data.c.d);
    rotation.init(1);
    faiss::IndexPreTransform chain(&rotation, &flat);
    const std::unique_ptr<faiss::Index> ourChain(index_to_fused(&chain));
    EXPECT_NE(
            as<IndexFusedFlat>(
                    as<faiss::IndexPreTransform>(ourChain.get())->index),
            nullptr);
}

// ---- interrupts -------------------------------------------------------------

/// Says stop from the `after`-th question on.
class Counting : public faiss::InterruptCallback {
   public:
    explicit Counting(int after) : after_(after) {}

    bool want_interrupt() override {
        return ++asked_ > after_;
    }

    static int asked() {
        return static_cast<Counting*>(instance.get())->asked_;
    }

   private:
    int after_ = 0;
    int asked_ = 0;
};

class FusedFlatInterrupts : public ::testing::Test {
   protected:
    void TearDown() override {
        faiss::InterruptCallback::clear_instance();
    }

    static void stopAfter(int questions) {
        faiss::InterruptCallback::instance =
                std::make_unique<Counting>(questions);
    }
};

TEST_F(FusedFlatInterrupts, EndSearches) {
    FusedCase c;
    c.n = 40000;
    c.d = 16;
    for (int64_t q : {300, 2000}) {
        c.q = q;
        const FusedData data(c);
        const auto index = data.makeIndex();
        auto search = [&] { searchOnHost(*index, data.queries, 10); };
        stopAfter(0);
        EXPECT_TRUE(faissThrowsNaming(search, "interrupted"));
        faiss::RangeSearchResult found(q);
        stopAfter(0);
        EXPECT_TRUE(faissThrowsNaming(
                [&] {
                    index->range_search(q, data.queries.data(), 0.5f, &found);
                },
                "interrupted"));
        std::vector<float> distances(c.n * 2);
        std::vector<idx_t> labels(c.n * 2);
        stopAfter(0);
        EXPECT_TRUE(faissThrowsNaming(
                [&] {
                    index->knn_subset(
                            q,
                            nullptr,
                            c.n,
                            nullptr,
                            2,
                            distances.data(),
                            labels.data());
                },
                "interrupted"));

        // Asked, but not stopped; and the index is still there.
        stopAfter(1 << 30);
        const auto asked = searchOnHost(*index, data.queries, 10);
        EXPECT_GT(Counting::asked(), 0);
        faiss::InterruptCallback::clear_instance();
        EXPECT_TRUE(sameOutput(searchOnHost(*index, data.queries, 10), asked));
    }
}

} // namespace
} // namespace faiss_bits::test
