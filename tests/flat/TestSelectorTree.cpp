/// What is read of selectors before the device is asked.

#include <algorithm>

#include <gtest/gtest.h>

#include "faiss_bits/flat/SearchFilter.h"
#include "faiss_bits/flat/SelectorTree.h"
#include "tests/flat/HostHarness.h"

namespace faiss_bits::test {
namespace {

using gpu::detail::readSelector;
using gpu::detail::SelectorTree;
using Kind = SelectorTree::Kind;

struct EveryThird : faiss::IDSelector {
    mutable std::vector<int64_t> asked;
    bool is_member(int64_t id) const override {
        asked.push_back(id);
        return id % 3 == 0;
    }
};

void expectBounds(const SelectorTree& tree, idx_t least, idx_t most) {
    EXPECT_EQ(tree.least, least);
    EXPECT_EQ(tree.most, most);
}

TEST(SelectorTree, Ranges) {
    const auto expectRange =
            [](idx_t imin, idx_t imax, idx_t first, idx_t end) {
                const SelectorTree tree = readSelector(
                        faiss::IDSelectorRange(imin, imax), 100, 0);
                EXPECT_EQ(tree.kind, Kind::Range);
                expectBounds(tree, end - first, end - first);
                EXPECT_EQ(tree.end - tree.first, end - first);
                if (end > first) {
                    EXPECT_EQ(tree.first, first);
                }
            };
    expectRange(3, 10, 3, 10);
    expectRange(-5, 1000, 0, 100);
    expectRange(7, 7, 7, 7);
    expectRange(9, 3, 9, 9);
    expectRange(200, 300, 100, 100);
    expectRange(-9, -3, 0, 0);
    const SelectorTree all = readSelector(faiss::IDSelectorAll(), 100, 0);
    expectBounds(all, 100, 100);
}

TEST(SelectorTree, ArraysAndBatches) {
    const std::vector<int64_t> ids = {7, 99, 7, -1, 100, 3};
    const SelectorTree array = readSelector(
            faiss::IDSelectorArray(ids.size(), ids.data()), 100, 0);
    EXPECT_EQ(array.kind, Kind::Ids);
    EXPECT_EQ(array.ids, ids.data());
    EXPECT_EQ(array.numIds, 6);
    expectBounds(array, 0, 6);
    expectBounds(
            readSelector(faiss::IDSelectorArray(ids.size(), ids.data()), 4, 0),
            0,
            4);
    const faiss::IDSelectorBatch selector(ids.size(), ids.data());
    const SelectorTree batch = readSelector(selector, 100, 0);
    EXPECT_EQ(batch.kind, Kind::Ids);
    expectBounds(batch, 3, 3); // 7, 99, 3
    expectBounds(
            readSelector(faiss::IDSelectorArray(0, nullptr), 100, 0), 0, 0);
}

TEST(SelectorTree, Bitmaps) {
    const std::vector<uint8_t> bytes(20, 0xFF);
    const faiss::IDSelectorBitmap bitmap(bytes.size(), bytes.data());
    for (idx_t n : {0, 1, 7, 8, 9, 63, 64, 65, 100, 159, 160, 161, 1000}) {
        const SelectorTree tree = readSelector(bitmap, n, 0);
        EXPECT_EQ(tree.kind, Kind::Bytes);
        expectBounds(tree, std::min<idx_t>(n, 160), std::min<idx_t>(n, 160));
        EXPECT_EQ(tree.numBytes, std::min<size_t>(20, (n + 7) / 8));
    }
    expectBounds(
            readSelector(faiss::IDSelectorBitmap(0, nullptr), 100, 0), 0, 0);
}

TEST(SelectorTree, ComplementsAndNesting) {
    const faiss::IDSelectorRange range(0, 30);
    const faiss::IDSelectorNot no(&range);
    expectBounds(readSelector(no, 100, 0), 70, 70);
    const std::vector<int64_t> ids = {1, 2};
    const faiss::IDSelectorArray array(2, ids.data());
    const faiss::IDSelectorNot notArray(&array);
    const faiss::IDSelectorNot again(&notArray);
    expectBounds(readSelector(notArray, 100, 0), 98, 100);
    const SelectorTree tree = readSelector(again, 100, 0);
    expectBounds(tree, 0, 2);
    EXPECT_EQ(tree.kind, Kind::Not);
    EXPECT_EQ(tree.left->kind, Kind::Not);
    EXPECT_EQ(tree.left->left->kind, Kind::Ids);
}

TEST(SelectorTree, OfTheUsersOwnAskedOnceInOrder) {
    EveryThird selector;
    const SelectorTree tree = readSelector(selector, 20, 0);
    EXPECT_EQ(tree.kind, Kind::Bytes);
    expectBounds(tree, 7, 7);
    ASSERT_EQ(selector.asked.size(), 20u);
    for (int64_t id = 0; id < 20; ++id) {
        EXPECT_EQ(selector.asked[id], id);
        EXPECT_EQ((tree.bytes[id / 8] >> (id % 8)) & 1, id % 3 == 0) << id;
    }
}

TEST(SelectorTree, NullPointersAreNamed) {
    EXPECT_TRUE(faissThrowsNaming(
            [] { readSelector(faiss::IDSelectorNot(nullptr), 9, 0); },
            "IDSelectorNot"));
    EXPECT_TRUE(faissThrowsNaming(
            [] { readSelector(faiss::IDSelectorArray(2, nullptr), 9, 0); },
            "IDSelectorArray"));
    EXPECT_TRUE(faissThrowsNaming(
            [] { readSelector(faiss::IDSelectorBitmap(2, nullptr), 9, 0); },
            "IDSelectorBitmap"));
}

#if FAISS_BITS_FAISS_HAS_LOGICAL_SELECTORS
TEST(SelectorTree, Pairs) {
    const faiss::IDSelectorRange a(0, 60);
    const faiss::IDSelectorRange b(50, 80);
    expectBounds(readSelector(faiss::IDSelectorAnd(&a, &b), 100, 0), 0, 30);
    expectBounds(readSelector(faiss::IDSelectorOr(&a, &b), 100, 0), 60, 90);
    expectBounds(readSelector(faiss::IDSelectorXOr(&a, &b), 100, 0), 30, 90);
    const faiss::IDSelectorRange c(0, 90);
    expectBounds(readSelector(faiss::IDSelectorAnd(&a, &c), 100, 0), 50, 60);
    expectBounds(readSelector(faiss::IDSelectorXOr(&a, &c), 100, 0), 30, 50);
    EXPECT_TRUE(faissThrowsNaming(
            [&] { readSelector(faiss::IDSelectorAnd(&a, nullptr), 9, 0); },
            "rhs"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { readSelector(faiss::IDSelectorOr(nullptr, &a), 9, 0); },
            "lhs"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { readSelector(faiss::IDSelectorXOr(nullptr, &a), 9, 0); },
            "IDSelectorXOr"));
}
#endif

TEST(SelectorTree, ListsOfAtMostThreeQuarters) {
    EXPECT_EQ(gpu::detail::mostListed(0), 0);
    EXPECT_EQ(gpu::detail::mostListed(100), 75);
    EXPECT_EQ(gpu::detail::mostListed(1 << 20), 3 << 18);
}

/// What a search is told to expect of its filter, by which it then goes.
TEST(FilterShape, BitsAndAListWhereItIsWorthIt) {
    using gpu::detail::FilterShape;
    const auto shapeOf = [](idx_t n, idx_t selected, idx_t queries) {
        faiss::IDSelectorRange range(0, selected);
        faiss::SearchParameters params;
        params.sel = &range;
        return gpu::detail::filterShapeOf(&params, n, queries, 0);
    };
    const auto expectList = [](const FilterShape& shape, idx_t n, idx_t ids) {
        EXPECT_TRUE(shape.hasBits);
        EXPECT_EQ(shape.bitBytes, size_t((n + 31) / 32 * 4));
        EXPECT_EQ(shape.hasIds, ids >= 0);
        EXPECT_EQ(shape.numIds, std::max<idx_t>(ids, 0));
        EXPECT_EQ(shape.listBytes, size_t(std::max<idx_t>(ids, 0) * 4));
        FlatKnnProblem p;
        shape.expectFor(p);
        EXPECT_TRUE(p.allowedBits);
        EXPECT_EQ(p.allowedIds != nullptr, ids >= 0);
        EXPECT_EQ(p.numAllowed, std::max<idx_t>(ids, 0));
    };
    expectList(shapeOf(100000, 1000, 5), 100000, 1000);
    expectList(shapeOf(100000, 25000, 5), 100000, 25000);
    expectList(shapeOf(100000, 25001, 5), 100000, -1);
    expectList(shapeOf(100000, 25001, 17), 100000, 25001);
    expectList(shapeOf(100000, 75001, 17), 100000, -1);
    expectList(shapeOf(16383, 10, 17), 16383, -1);

    const FilterShape none = gpu::detail::filterShapeOf(nullptr, 100, 5, 0);
    FlatKnnProblem p;
    none.expectFor(p);
    EXPECT_FALSE(p.allowedBits || p.allowedIds);
    EXPECT_EQ(none.bitBytes + none.listBytes, 0);
    const faiss::SearchParameters empty;
    EXPECT_FALSE(gpu::detail::filterShapeOf(&empty, 100, 5, 0).hasBits);
}

} // namespace
} // namespace faiss_bits::test
