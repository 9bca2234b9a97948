/// Selectors of an index's ids as selectors of its shards' numbers.

#include <random>

#include <faiss/impl/IDSelector.h>
#include <gtest/gtest.h>

#include "faiss_bits/flat/SearchParametersBitsFlat.h"
#include "faiss_bits/many/PartFilters.h"
#include "tests/flat/HostHarness.h"

namespace faiss_bits::test {
namespace {

using gpu::detail::IdBits;
using gpu::detail::PartFilters;
using gpu::detail::ShardMap;

struct Thirds : faiss::IDSelector {
    bool is_member(idx_t id) const override {
        return id % 3 == 1;
    }
};

TEST(PartFilters, BitsAreCopiedFromAnyToAnyPlace) {
    std::mt19937 random(1);
    for (int run = 0; run < 300; ++run) {
        const idx_t n = 1 + random() % 300;
        IdBits source(n);
        for (idx_t i = 0; i < n; ++i) {
            if (random() % 2) {
                source.set(i);
            }
        }
        const idx_t from = random() % n;
        const idx_t count = random() % (n - from + 1);
        const idx_t to = random() % 70;
        IdBits target(to + count + random() % 70);
        target.copyFrom(source, from, to, count);
        for (idx_t i = 0; i < target.size(); ++i) {
            const bool inside = i >= to && i < to + count;
            ASSERT_EQ(target[i], inside && source[from + i - to]) << i;
        }
    }
}

/// All of FAISS's selectors, and one that is not.
std::vector<std::shared_ptr<faiss::IDSelector>> selectors(
        const std::vector<idx_t>& ids,
        const std::vector<uint8_t>& bitmap) {
    std::vector<std::shared_ptr<faiss::IDSelector>> list = {
            std::make_shared<faiss::IDSelectorRange>(17, 90),
            std::make_shared<faiss::IDSelectorRange>(-5, 3),
            std::make_shared<faiss::IDSelectorRange>(64, 1000),
            std::make_shared<faiss::IDSelectorArray>(ids.size(), ids.data()),
            std::make_shared<faiss::IDSelectorBatch>(ids.size(), ids.data()),
            std::make_shared<faiss::IDSelectorBitmap>(
                    bitmap.size(), bitmap.data()),
            std::make_shared<Thirds>()};
    const size_t leaves = list.size();
    for (size_t i = 0; i < leaves; ++i) {
        list.push_back(std::make_shared<faiss::IDSelectorNot>(list[i].get()));
    }
#if FAISS_BITS_FAISS_HAS_LOGICAL_SELECTORS
    list.push_back(std::make_shared<faiss::IDSelectorAnd>(
            list[0].get(), list[6].get()));
    list.push_back(std::make_shared<faiss::IDSelectorOr>(
            list[3].get(), list[6].get()));
    list.push_back(std::make_shared<faiss::IDSelectorXOr>(
            list[5].get(), list[6].get()));
#endif
    return list;
}

TEST(PartFilters, EveryShardSelectsWhatTheIndexDoes) {
    const std::vector<idx_t> ids = {0, 3, 4, 4, 63, 64, 65, 99, 100, -1, 5000};
    const std::vector<uint8_t> bitmap = {0x5A, 0xFF, 0, 1, 2, 3, 0x80};
    for (int shards : {1, 2, 3, 8}) {
        for (idx_t least : {1, 40}) {
            ShardMap map(shards, least);
            for (idx_t n : {30, 1, 52, 18}) {
                map.commit(map.plan(n));
            }
            for (const auto& selector : selectors(ids, bitmap)) {
                faiss::SearchParameters params;
                params.sel = selector.get();
                const PartFilters filters(&params, map, 0);
                for (const auto& run : map.allRuns()) {
                    for (idx_t i = 0; i < run.count; ++i) {
                        ASSERT_EQ(
                                filters[run.shard]->sel->is_member(
                                        run.inShard + i),
                                selector->is_member(run.inWhole + i))
                                << run.inWhole + i;
                    }
                }
                for (int shard = 0; shard < shards; ++shard) {
                    EXPECT_FALSE(
                            filters[shard]->sel->is_member(map.size(shard)));
                }
            }
        }
    }
}

TEST(PartFilters, ReplicasShareOne) {
    faiss::SearchParameters params;
    Thirds thirds;
    params.sel = &thirds;
    const PartFilters filters(&params, 3, 100, 0, false);
    EXPECT_EQ(filters[0], filters[2]);
    for (idx_t id = 0; id < 100; ++id) {
        ASSERT_EQ(filters[1]->sel->is_member(id), thirds.is_member(id));
    }
    const PartFilters same(&params, 3, 100, 0, true);
    EXPECT_EQ(same[1], &params);
    const PartFilters none(nullptr, 3, 100, 0, false);
    EXPECT_EQ(none[1], nullptr);
}

TEST(PartFilters, OtherParametersAreRefused) {
    const ShardMap map(2, 1);
    const gpu::SearchParametersBitsFlat others;
    EXPECT_TRUE(
            faissThrowsNaming([&] { PartFilters(&others, map, 0); }, "params"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { PartFilters(&others, 2, 10, 0, false); }, "params"));
}

} // namespace
} // namespace faiss_bits::test
