/// What shards found, merged on the host: against a sort of all. No device is
/// needed.

#include <gtest/gtest.h>

#include "faiss_bits/common/PagePlan.h"
#include "faiss_bits/many/HostShards.h"
#include "faiss_bits/many/ShardMap.h"
#include "tests/many/MergeData.h"

namespace faiss_bits::test {
namespace {

using gpu::detail::HostList;

std::vector<HostList> listsOf(const MergeCase& c, const MergeData& data) {
    std::vector<HostList> lists;
    for (size_t list = 0; list < c.widths.size(); ++list) {
        HostList one{data.distances[list], data.ids[list], c.widths[list]};
        gpu::detail::mapHostIds({{0, data.offsets[list]}}, one.ids);
        lists.push_back(std::move(one));
    }
    return lists;
}

void checkHostMerge(const MergeCase& c) {
    SCOPED_TRACE(::testing::Message() << c);
    const MergeData data(c);
    std::vector<float> distances(c.rows * c.k, 7);
    std::vector<int64_t> ids(c.rows * c.k, 7);
    gpu::detail::mergeHostLists(
            listsOf(c, data),
            c.rows,
            c.k,
            c.largest,
            distances.data(),
            ids.data());
    expectMerged(c, data, distances, ids);
}

TEST(HostShards, MergeOfListsOfOneWidth) {
    for (int lists : {1, 2, 3, 8, 64}) {
        for (int64_t k : {1, 2, 31, 100}) {
            MergeCase c;
            c.widths.assign(lists, k);
            c.k = k;
            forKindsOf(c, checkHostMerge);
        }
    }
}

TEST(HostShards, MergeOfListsOfOtherWidths) {
    for (int64_t k : {1, 10, 40}) {
        for (const auto& widths : std::vector<std::vector<int64_t>>{
                     {},
                     {0, 0},
                     {0, k, 0},
                     {1, k, 1},
                     {k, 3, 2, k, 1},
                     {2 * k, k},
                     {1, 1, 1, 1, 1, 1, 1}}) {
            MergeCase c;
            c.widths = widths;
            c.k = k;
            forKindsOf(c, checkHostMerge);
        }
    }
}

TEST(HostShards, MergeWithoutDistances) {
    MergeCase c;
    c.widths = {5, 5};
    c.k = 7;
    c.values = MergeValues::Few;
    const MergeData data(c);
    std::vector<float> distances(c.rows * c.k);
    std::vector<int64_t> want(c.rows * c.k), got(c.rows * c.k);
    const auto lists = listsOf(c, data);
    gpu::detail::mergeHostLists(
            lists, c.rows, c.k, false, distances.data(), want.data());
    gpu::detail::mergeHostLists(lists, c.rows, c.k, false, nullptr, got.data());
    EXPECT_EQ(got, want);
}

/// An id that two lists have is a result of each.
TEST(HostShards, MergeOfRepeatedIds) {
    const HostList list{{1, 1, 2}, {4, 4, 5}, 3};
    std::vector<float> distances(7);
    std::vector<int64_t> ids(7);
    gpu::detail::mergeHostLists(
            {list, list}, 1, 7, false, distances.data(), ids.data());
    EXPECT_EQ(ids, (std::vector<int64_t>{4, 4, 4, 4, 5, 5, -1}));
    EXPECT_EQ(
            distances,
            (std::vector<float>{
                    1, 1, 1, 1, 2, 2, std::numeric_limits<float>::max()}));
}

/// Numbers in the shards become those of the additions, one by one.
TEST(HostShards, IdsOfShardsThatGrew) {
    gpu::detail::ShardMap map(3, 2);
    std::vector<std::vector<int64_t>> want(3); // of each shard's vectors
    int64_t total = 0;
    for (int64_t n : {7, 1, 1, 30, 2, 5, 1, 16}) {
        const auto pieces = map.plan(n);
        for (const auto& piece : pieces) {
            for (int64_t i = 0; i < piece.count; ++i) {
                want[piece.shard].push_back(total + piece.first + i);
            }
        }
        map.commit(pieces);
        total += n;
    }
    for (int shard = 0; shard < 3; ++shard) {
        std::vector<int64_t> ids; // forwards, backwards, with none between
        for (size_t i = 0; i < want[shard].size(); ++i) {
            ids.push_back(int64_t(i));
            ids.push_back(-1);
            ids.push_back(int64_t(want[shard].size() - 1 - i));
        }
        gpu::detail::mapHostIds(map.segments(shard), ids);
        for (size_t i = 0; i < want[shard].size(); ++i) {
            ASSERT_EQ(ids[3 * i], want[shard][i]);
            ASSERT_EQ(ids[3 * i + 1], -1);
            ASSERT_EQ(ids[3 * i + 2], want[shard][want[shard].size() - 1 - i]);
        }
    }
}

/// A call that is interrupted waits for what goes by the host: no more than a
/// page's work, however few the results are.
TEST(HostShards, SmallByResultsAndByWork) {
    using gpu::detail::isSmallForHost;
    using gpu::detail::kPageWork;
    EXPECT_TRUE(isSmallForHost(1, 2048, 2, 1));
    EXPECT_FALSE(isSmallForHost(1, 2049, 2, 1));
    EXPECT_TRUE(isSmallForHost(2048, 1, 2, 1));
    EXPECT_FALSE(isSmallForHost(2049, 1, 2, 1));
    EXPECT_TRUE(isSmallForHost(1365, 1, 3, 1));
    EXPECT_FALSE(isSmallForHost(1366, 1, 3, 1));
    EXPECT_TRUE(isSmallForHost(2048, 1, 2, kPageWork / 2048));
    EXPECT_FALSE(isSmallForHost(2048, 1, 2, kPageWork / 2047));
    // 2,048 queries of 10^8 x 128 vectors on two devices.
    EXPECT_FALSE(isSmallForHost(2048, 1, 2, 5e7 * 128));
}

} // namespace
} // namespace faiss_bits::test
