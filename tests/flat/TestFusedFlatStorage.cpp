/// What goes into an IndexFusedFlat and comes out again: additions, removals,
/// copies, files.

#include <cmath>
#include <memory>

#include <faiss/IndexFlat.h>
#include <faiss/IndexLSH.h>
#include <faiss/clone_index.h>
#include <faiss/impl/IDSelector.h>
#include <faiss/impl/io.h>
#include <faiss/index_io.h>

#include "tests/flat/FusedHarness.h"

namespace faiss_bits::test {
namespace {

std::vector<float> slice(
        const std::vector<float>& vectors,
        int d,
        int64_t first,
        int64_t count) {
    return {vectors.begin() + first * d, vectors.begin() + (first + count) * d};
}

void expectHolds(const FusedData& data, const faiss::Index& index) {
    ASSERT_EQ(index.ntotal, data.c.n);
    ASSERT_EQ(index.d, data.c.d);
    ASSERT_EQ(index.metric_type, data.c.metric);
    ASSERT_EQ(index.metric_arg, data.c.metricArg);
    data.expectNearest(searchOnHost(index, data.queries, 30), 30);
}

FusedCase integers() {
    FusedCase c;
    c.fill = Fill::Integers;
    return c;
}

TEST(FusedFlatStorage, AddInPieces) {
    FusedCase c = integers();
    c.n = 1003;
    c.d = 7;
    for (const FusedCase& one : metricsOf(c)) {
        const FusedData data(one);
        IndexFusedFlat index(c.d, one.metric, one.metricArg);
        int64_t first = 0;
        for (int64_t count : {1, 2, 500, 1, 499}) {
            index.add(count, slice(data.vectors, c.d, first, count).data());
            first += count;
            ASSERT_EQ(index.ntotal, first);
        }
        expectHolds(data, index);
    }
}

TEST(FusedFlatStorage, ResetAndRefill) {
    const FusedData data(integers());
    const auto index = data.makeIndex();
    index->reset();
    EXPECT_EQ(index->ntotal, 0);
    FusedCase none = integers();
    none.n = 0;
    const FusedData empty(none);
    empty.expectNearest(searchOnHost(*index, empty.queries, 3), 3);
    index->add(data.c.n, data.vectors.data());
    expectHolds(data, *index);
}

TEST(FusedFlatStorage, RemoveIds) {
    FusedCase c = integers();
    for (bool byArray : {true, false}) {
        FusedData data(c);
        const auto index = data.makeIndex();
        const std::vector<idx_t> ids = {0, 3, 3, 77, 499, 500, -1};
        faiss::IDSelectorArray array(ids.size(), ids.data());
        faiss::IDSelectorBatch batch(ids.size(), ids.data());
        const faiss::IDSelector& selector =
                byArray ? static_cast<faiss::IDSelector&>(array) : batch;
        EXPECT_EQ(index->remove_ids(selector), 4u);

        std::vector<float> left;
        for (int64_t id = 0; id < c.n; ++id) {
            if (id != 0 && id != 3 && id != 77 && id != 499) {
                const auto row = slice(data.vectors, c.d, id, 1);
                left.insert(left.end(), row.begin(), row.end());
            }
        }
        data.vectors = left;
        data.c.n -= 4;
        expectHolds(data, *index);

        EXPECT_EQ(index->remove_ids(faiss::IDSelectorRange(600, 700)), 0u);
        EXPECT_EQ(index->ntotal, 496);
        EXPECT_EQ(index->remove_ids(faiss::IDSelectorRange(0, 700)), 496u);
        EXPECT_EQ(index->ntotal, 0);
        EXPECT_EQ(index->remove_ids(faiss::IDSelectorAll()), 0u);
    }
}

TEST(FusedFlatStorage, Merge) {
    const FusedCase c = integers();
    for (const FusedCase& one : metricsOf(c)) {
        const FusedData data(one);
        IndexFusedFlat index(c.d, one.metric, one.metricArg);
        IndexFusedFlat second(c.d, one.metric, one.metricArg);
        index.add(200, data.vectors.data());
        second.add(100, slice(data.vectors, c.d, 200, 100).data());
        index.merge_from(second);
        EXPECT_EQ(second.ntotal, 0);
        // FAISS's own, as read from a file.
        faiss::IndexFlat third(c.d, one.metric);
        third.metric_arg = one.metricArg;
        third.add(200, slice(data.vectors, c.d, 300, 200).data());
        index.merge_from(third);
        EXPECT_EQ(third.ntotal, 0);
        expectHolds(data, index);
    }
}

TEST(FusedFlatStorage, MergeRefuses) {
    const FusedData data(integers());
    const auto index = data.makeIndex();
    auto refuses = [&](faiss::Index&& other, const std::string& name) {
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->merge_from(other); }, "otherIndex", name));
    };
    refuses(faiss::IndexFlatL2(3), "3");
    refuses(faiss::IndexFlatIP(20), "metric_type");
    refuses(faiss::IndexLSH(20, 8), "LSH");
    refuses(faiss::IndexFlat1D(), "1D");
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->merge_from(*index); }, "otherIndex", "itself"));
    faiss::IndexFlatL2 other(20);
    EXPECT_THROW(index->merge_from(other, 5), faiss::FaissException);
    expectHolds(data, *index);
}

TEST(FusedFlatStorage, Reconstruct) {
    FusedCase c;
    c.n = 300;
    c.d = 13;
    const FusedData data(c);
    const auto index = data.makeIndex();
    for (int64_t key : {0, 150, 299}) {
        std::vector<float> row(c.d);
        index->reconstruct(key, row.data());
        EXPECT_EQ(row, slice(data.vectors, c.d, key, 1));
    }
    std::vector<float> some(200 * c.d);
    index->reconstruct_n(90, 200, some.data());
    EXPECT_EQ(some, slice(data.vectors, c.d, 90, 200));

    // -1 is "no neighbour".
    const std::vector<idx_t> keys = {299, -1, 0, 0, 17};
    std::vector<float> batch(keys.size() * c.d);
    index->reconstruct_batch(keys.size(), keys.data(), batch.data());
    const auto xs = slice(data.queries, c.d, 0, keys.size());
    std::vector<float> residuals(keys.size() * c.d);
    index->compute_residual_n(
            keys.size(), xs.data(), residuals.data(), keys.data());
    for (size_t i = 0; i < batch.size(); ++i) {
        const idx_t key = keys[i / c.d];
        const float stored = key < 0 ? 0.f : data.vectors[key * c.d + i % c.d];
        EXPECT_EQ(batch[i], stored);
        const float left = key < 0 ? std::nanf("") : xs[i] - stored;
        EXPECT_TRUE(sameBits(residuals[i], left));
    }
    std::vector<float> one(c.d);
    index->compute_residual(xs.data(), one.data(), keys[0]);
    EXPECT_EQ(one, slice(residuals, c.d, 0, 1));
}

TEST(FusedFlatStorage, CopiesAndMoves) {
    for (const FusedCase& one : metricsOf(integers())) {
        const FusedData data(one);
        faiss::IndexFlat plain(one.d, one.metric);
        plain.metric_arg = one.metricArg;
        plain.add(one.n, data.vectors.data());

        IndexFusedFlat fromFaiss(plain);
        expectHolds(data, fromFaiss);
        EXPECT_EQ(plain.ntotal, one.n);

        EXPECT_EQ(fromFaiss.search_mode, SearchMode::Certified);
        fromFaiss.search_mode = SearchMode::Plain;
        fromFaiss.choice.variant = cpu::Variant::Var6;
        const IndexFusedFlat copy = fromFaiss;
        EXPECT_EQ(copy.choice.variant, cpu::Variant::Var6);
        const faiss::IndexFlat& asBase = fromFaiss;
        const IndexFusedFlat copyOfBase(asBase);
        EXPECT_EQ(copyOfBase.choice.variant, cpu::Variant::Var6);
        EXPECT_EQ(copy.search_mode, SearchMode::Plain);
        EXPECT_EQ(copyOfBase.search_mode, SearchMode::Plain);
        fromFaiss.reset();
        expectHolds(data, copy);
        expectHolds(data, copyOfBase);

        const float* memory = plain.get_xb();
        const IndexFusedFlat moved(std::move(plain));
        EXPECT_EQ(moved.get_xb(), memory);
        EXPECT_EQ(plain.ntotal, 0);
        expectHolds(data, moved);
    }
    // One that arranges its vectors in a way of its own is copied.
    faiss::IndexFlat1D line;
    const float values[] = {3, 1, 2};
    line.add(3, values);
    const IndexFusedFlat moved(std::move(line));
    EXPECT_EQ(moved.ntotal, 3);
    EXPECT_EQ(moved.get_xb()[1], 1);
    EXPECT_EQ(line.ntotal, 3);
}

TEST(FusedFlatStorage, FilesAreThoseOfAnIndexFlat) {
    for (const FusedCase& one : metricsOf(integers())) {
        const FusedData data(one);
        const auto index = data.makeIndex();
        faiss::VectorIOWriter ours;
        faiss::write_index(index.get(), &ours);

        faiss::IndexFlat plain(one.d, one.metric);
        plain.metric_arg = one.metricArg;
        plain.add(one.n, data.vectors.data());
        faiss::VectorIOWriter theirs;
        faiss::write_index(&plain, &theirs);
        EXPECT_EQ(ours.data, theirs.data) << one;

        faiss::VectorIOReader reader;
        reader.data = ours.data;
        const std::unique_ptr<faiss::Index> read(faiss::read_index(&reader));
        auto* flat = dynamic_cast<faiss::IndexFlat*>(read.get());
        ASSERT_NE(flat, nullptr);
        const IndexFusedFlat back(std::move(*flat));
        expectHolds(data, back);
    }
}

/// FAISS's cloner does not know the class; what it makes has the vectors.
TEST(FusedFlatStorage, CloneByFaiss) {
    for (const FusedCase& one : metricsOf(integers())) {
        const FusedData data(one);
        const auto index = data.makeIndex();
        const std::unique_ptr<faiss::Index> clone(
                faiss::clone_index(index.get()));
        auto* flat = dynamic_cast<faiss::IndexFlat*>(clone.get());
        ASSERT_NE(flat, nullptr);
        expectHolds(data, IndexFusedFlat(*flat));
    }
}

} // namespace
} // namespace faiss_bits::test
