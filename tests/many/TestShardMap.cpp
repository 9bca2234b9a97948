/// Which shard holds which vector.

#include <cmath>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "faiss_bits/many/GroupSpeeds.h"
#include "faiss_bits/many/ShardMap.h"

namespace faiss_bits::test {
namespace {

using gpu::detail::dealOut;
using gpu::detail::firstWidth;
using gpu::detail::ShardMap;
using gpu::detail::ShardPiece;
using gpu::detail::ShardRun;
using gpu::detail::sliceBegin;

/// What a ShardMap must be, vector by vector.
struct Model {
    explicit Model(int shards) : sizes(shards) {}

    void add(const std::vector<ShardPiece>& pieces) {
        for (const ShardPiece& piece : pieces) {
            for (idx_t i = 0; i < piece.count; ++i) {
                places.emplace_back(piece.shard, sizes[piece.shard]++);
            }
        }
    }

    std::vector<idx_t> sizes;
    std::vector<std::pair<int, idx_t>> places; // of every id: shard, number
};

void expectPieces(const std::vector<ShardPiece>& pieces, idx_t n, int shards) {
    idx_t first = 0;
    int last = -1;
    for (const ShardPiece& piece : pieces) {
        ASSERT_EQ(piece.first, first);
        ASSERT_GT(piece.count, 0);
        ASSERT_GT(piece.shard, last);
        ASSERT_LT(piece.shard, shards);
        first += piece.count;
        last = piece.shard;
    }
    ASSERT_EQ(first, n);
}

void expectIs(const ShardMap& map, const Model& model) {
    ASSERT_EQ(map.total(), idx_t(model.places.size()));
    bool inOrder = true;
    for (size_t id = 1; id < model.places.size(); ++id) {
        inOrder =
                inOrder && model.places[id].first >= model.places[id - 1].first;
    }
    ASSERT_EQ(map.isInOrder(), inOrder);
    idx_t id = 0;
    for (const ShardRun& run : map.allRuns()) {
        ASSERT_EQ(run.inWhole, id);
        for (idx_t i = 0; i < run.count; ++i, ++id) {
            ASSERT_EQ(model.places[id].first, run.shard);
            ASSERT_EQ(model.places[id].second, run.inShard + i);
        }
    }
    ASSERT_EQ(id, map.total());
    for (int shard = 0; shard < map.numShards(); ++shard) {
        ASSERT_EQ(map.size(shard), model.sizes[shard]);
        const auto& segments = map.segments(shard);
        ASSERT_EQ(segments.empty(), map.size(shard) == 0);
        for (size_t whole = 0; whole < model.places.size(); ++whole) {
            if (model.places[whole].first != shard) {
                continue;
            }
            const idx_t local = model.places[whole].second;
            size_t at = segments.size() - 1;
            while (segments[at].inPart > local) {
                --at;
            }
            ASSERT_EQ(
                    segments[at].inWhole + local - segments[at].inPart,
                    idx_t(whole));
        }
    }
}

TEST(ShardMap, FirstAdditionIsSplitEvenlyAndInOrder) {
    for (int shards : {1, 2, 3, 8}) {
        for (idx_t n : {0, 1, 2, 7, 8, 9, 1000}) {
            const ShardMap map(shards, 1);
            const auto pieces = map.plan(n);
            expectPieces(pieces, n, shards);
            ASSERT_EQ(pieces.size(), size_t(std::min<idx_t>(n, shards)));
            for (const ShardPiece& piece : pieces) {
                EXPECT_LE(std::abs(piece.count - n / shards), 1);
            }
        }
    }
}

TEST(ShardMap, PiecesHaveTheirLeastLength) {
    const ShardMap map(8, 1024);
    EXPECT_EQ(map.plan(1000).size(), 1u);
    EXPECT_EQ(map.plan(2047).size(), 1u);
    EXPECT_EQ(map.plan(2048).size(), 2u);
    EXPECT_EQ(map.plan(8191).size(), 7u);
    EXPECT_EQ(map.plan(8192).size(), 8u);
}

TEST(ShardMap, VectorByVectorStaysLevel) {
    ShardMap map(3, 10);
    Model model(3);
    for (int i = 0; i < 1000; ++i) {
        const auto pieces = map.plan(1);
        expectPieces(pieces, 1, 3);
        model.add(pieces);
        map.commit(pieces);
    }
    expectIs(map, model);
    EXPECT_LE(map.allRuns().size(), 110u);
    for (int shard = 0; shard < 3; ++shard) {
        EXPECT_NEAR(double(map.size(shard)), 1000.0 / 3, 11);
    }
}

/// Of shards of any sizes, as inverted lists that were dealt out by ids are.
TEST(ShardMap, ShortestShardsGetMost) {
    const auto sizesAfter = [](idx_t n, std::vector<idx_t> sizes, idx_t least) {
        idx_t next = 0;
        for (const ShardPiece& piece : dealOut(n, sizes, least, -1)) {
            EXPECT_EQ(piece.first, next);
            EXPECT_GT(piece.count, 0);
            next += piece.count;
            sizes[piece.shard] += piece.count;
        }
        EXPECT_EQ(next, n);
        return sizes;
    };
    using Sizes = std::vector<idx_t>;
    EXPECT_EQ(sizesAfter(0, {3, 1}, 1), Sizes({3, 1}));
    EXPECT_EQ(sizesAfter(1, {3, 1, 2}, 1), Sizes({3, 2, 2}));
    EXPECT_EQ(sizesAfter(2, {3, 1, 2}, 1), Sizes({3, 3, 2}));
    EXPECT_EQ(sizesAfter(6, {3, 1, 2}, 1), Sizes({4, 4, 4}));
    EXPECT_EQ(sizesAfter(7, {9, 0, 0}, 1), Sizes({9, 4, 3}));
    EXPECT_EQ(sizesAfter(7, {9, 0, 0}, 4), Sizes({9, 7, 0}));
    EXPECT_EQ(sizesAfter(8, {9, 0, 0}, 4), Sizes({9, 4, 4}));
}

TEST(ShardMap, ManyAdditions) {
    std::mt19937 random(1);
    for (int shards : {1, 2, 3, 8}) {
        for (idx_t least : {1, 7, 64}) {
            ShardMap map(shards, least);
            Model model(shards);
            for (int i = 0; i < 40; ++i) {
                const idx_t n = random() % (i % 5 == 0 ? 200 : 20);
                const auto pieces = map.plan(n);
                expectPieces(pieces, n, shards);
                model.add(pieces);
                map.commit(pieces);
                const auto [low, high] = std::minmax_element(
                        model.sizes.begin(), model.sizes.end());
                EXPECT_LE(*high - *low, 2 * least);
            }
            expectIs(map, model);

            for (int i = 0; i < 50 && map.total() > 0; ++i) {
                const idx_t first = random() % map.total();
                const idx_t n = random() % (map.total() - first + 1);
                idx_t id = first;
                for (const ShardRun& run : map.runs(first, n)) {
                    ASSERT_EQ(run.inWhole, id);
                    for (idx_t j = 0; j < run.count; ++j, ++id) {
                        ASSERT_EQ(model.places[id].first, run.shard);
                        ASSERT_EQ(model.places[id].second, run.inShard + j);
                    }
                }
                ASSERT_EQ(id, first + n);
            }
            map.clear();
            EXPECT_EQ(map.total(), 0);
            EXPECT_TRUE(map.isInOrder());
            EXPECT_EQ(map.numShards(), shards);
        }
    }
}

TEST(ShardMap, LaterAdditionsLevelFirst) {
    ShardMap map(3, 1);
    map.commit({{0, 0, 10}, {2, 10, 4}});
    const auto pieces = map.plan(16); // 10, 0, 4 -> 10, 10, 10
    ASSERT_EQ(pieces.size(), 2u);
    EXPECT_EQ(pieces[0].shard, 1);
    EXPECT_EQ(pieces[0].count, 10);
    EXPECT_EQ(pieces[1].shard, 2);
    EXPECT_EQ(pieces[1].count, 6);
}

/// Draws without replacement: the width falls short in none of many queries.
TEST(ShardMap, FirstWidthsAreRarelyTooSmall) {
    std::mt19937 random(1);
    for (idx_t k : {10, 100, 2000}) {
        for (idx_t shards : {2, 8}) {
            const idx_t total = 80000;
            const idx_t n = total / shards;
            const idx_t width = firstWidth(k, n, total);
            EXPECT_LE(width, k);
            for (int query = 0; query < 500; ++query) {
                idx_t inShard = 0;
                for (idx_t i = 0; i < k; ++i) {
                    inShard += idx_t(random() % (total - i)) < n - inShard;
                }
                EXPECT_LE(inShard, width);
            }
        }
    }
    EXPECT_EQ(firstWidth(100, 5, 1000), 5);
    EXPECT_EQ(firstWidth(3, 1000, 1000), 3);
    EXPECT_LT(firstWidth(2000, 1000, 8000), 360);
}

TEST(ShardMap, SlicesCoverAllRows) {
    for (idx_t rows : {idx_t(0), idx_t(1), idx_t(7), idx_t(1) << 40}) {
        for (int slices : {1, 2, 3, 8}) {
            EXPECT_EQ(sliceBegin(rows, slices, 0), 0);
            EXPECT_EQ(sliceBegin(rows, slices, slices), rows);
            for (int i = 0; i < slices; ++i) {
                const idx_t length = sliceBegin(rows, slices, i + 1) -
                        sliceBegin(rows, slices, i);
                EXPECT_LE(std::abs(length - rows / slices), 1);
            }
        }
    }
}

/// Slices of groups: all rows, even ones save what the first takes over.
TEST(ShardMap, SlicesOfGroups) {
    using gpu::detail::groupSlices;
    using gpu::detail::sliceBegin;
    for (const std::vector<int>& parts : std::vector<std::vector<int>>{
                 {1}, {1, 1}, {2, 1}, {1, 3, 1}, {1, 1, 1, 1, 1, 1, 1, 1}}) {
        const int groups = int(parts.size());
        int all = 0;
        for (int count : parts) {
            all += count;
        }
        for (idx_t rows : {0, 1, 2, 9, 100, 1001, 20480}) {
            const auto even = groupSlices(rows, parts);
            ASSERT_EQ(int(even.size()), groups + 1);
            int before = 0;
            for (int group = 0; group < groups; ++group) {
                ASSERT_EQ(even[group], sliceBegin(rows, all, before));
                before += parts[group];
            }
            ASSERT_EQ(even.back(), rows);
            for (idx_t remote : {1, 7, 300, 1 << 30}) {
                std::vector<idx_t> late(groups, remote);
                late[0] = 0;
                const auto got = groupSlices(rows, parts, late);
                ASSERT_EQ(got.front(), 0);
                ASSERT_EQ(got.back(), rows);
                for (int group = 1; group < groups; ++group) {
                    const idx_t was = even[group + 1] - even[group];
                    const idx_t is = got[group + 1] - got[group];
                    ASSERT_EQ(is, was - std::min(remote / groups, was / 8));
                }
            }
        }
    }
    // Of two: half of what one of them costs goes over.
    EXPECT_EQ(
            groupSlices(20480, {1, 1}, {0, 600}),
            (std::vector<idx_t>{0, 10540, 20480}));
}

/// What begins late gives to all others, the first and those that are less
/// late.
TEST(ShardMap, SlicesOfGroupsThatBeginLate) {
    using gpu::detail::groupSlices;
    EXPECT_EQ(
            groupSlices(30000, {1, 1, 1}, {0, 300, 600}),
            (std::vector<idx_t>{0, 10300, 20300, 30000}));
    EXPECT_EQ(
            groupSlices(40000, {1, 1, 1, 1}, {0, 0, 0, 400}),
            (std::vector<idx_t>{0, 10100, 20200, 30300, 40000}));
    // An eighth at most, either way.
    const auto got =
            groupSlices(40000, {1, 1, 1, 1}, {0, 0, 0, idx_t(1) << 40});
    EXPECT_EQ(got.back() - got[3], 8750);
    for (int group = 0; group < 3; ++group) {
        EXPECT_GT(got[group + 1] - got[group], 9000);
    }
}

/// As long as the groups are fast, all rows together.
TEST(ShardMap, SlicesOfUnlikeGroups) {
    using gpu::detail::groupSlices;
    EXPECT_EQ(
            groupSlices(20000, {1, 1}, {}, {1.25, 0.75}),
            (std::vector<idx_t>{0, 12500, 20000}));
    EXPECT_EQ(
            groupSlices(20000, {1, 1}, {0, 400}, {1.0, 1.0}),
            groupSlices(20000, {1, 1}, {0, 400}));
    for (idx_t rows : {0, 1, 2, 3, 7, 1000, 20480}) {
        for (const std::vector<double>& speeds :
             std::vector<std::vector<double>>{
                     {4, 0.5, 0.25}, {0.25, 0.25, 4}, {0.9, 1.2, 0.9}}) {
            const auto got = groupSlices(rows, {2, 2, 2}, {}, speeds);
            ASSERT_EQ(got.size(), 4u);
            ASSERT_EQ(got.front(), 0);
            ASSERT_EQ(got.back(), rows);
            double all = 0;
            for (double speed : speeds) {
                all += speed;
            }
            for (int group = 0; group < 3; ++group) {
                const double want = double(rows) * speeds[group] / all;
                ASSERT_GE(got[group + 1], got[group]);
                ASSERT_NEAR(double(got[group + 1] - got[group]), want, 2);
            }
        }
    }
}

/// What groups have taken makes them end at the same time.
TEST(GroupSpeeds, LearnsFromSearches) {
    using gpu::detail::groupSlices;
    using gpu::detail::GroupSpeeds;
    for (const std::vector<double>& real : std::vector<std::vector<double>>{
                 {1, 1}, {1, 0.95}, {1, 2, 4}, {3, 1, 1, 1}}) {
        const size_t groups = real.size();
        GroupSpeeds speeds(groups);
        std::vector<double> seconds(groups);
        for (int search = 0; search < 400; ++search) {
            const auto begins = groupSlices(
                    1 << 20, std::vector<int>(groups, 1), {}, speeds.speeds());
            std::vector<idx_t> rows;
            for (size_t g = 0; g < groups; ++g) {
                rows.push_back(begins[g + 1] - begins[g]);
                // One in 50 is held up.
                const bool isLate = search % 50 == 7 && g == search % groups;
                seconds[g] =
                        1e-9 * double(rows[g]) / real[g] * (isLate ? 100 : 1);
            }
            speeds.learn(rows, seconds);
            double sum = 0;
            for (double speed : speeds.speeds()) {
                ASSERT_GE(speed, 0.2);
                sum += speed;
            }
            ASSERT_NEAR(sum, double(groups), 1e-9);
        }
        for (size_t g = 1; g < groups; ++g) {
            EXPECT_NEAR(seconds[g] / seconds[0], 1, 0.01) << "group " << g;
        }
    }
}

TEST(GroupSpeeds, FewQueriesAndNoTimesSayNothing) {
    using gpu::detail::GroupSpeeds;
    GroupSpeeds speeds(2);
    const idx_t least = GroupSpeeds::kLeastRows;
    const std::vector<double> even = {1, 1};
    speeds.learn({least, least - 1}, {1, 2});
    EXPECT_EQ(speeds.speeds(), even);
    speeds.learn({least, 0}, {1, 0});
    EXPECT_EQ(speeds.speeds(), even);
    for (double none : {0.0, -1.0, std::nan("")}) {
        speeds.learn({least, least}, {1, none});
        EXPECT_EQ(speeds.speeds(), even);
    }
    speeds.learn({least, least}, {1, 2});
    EXPECT_LT(speeds.speeds()[1], 1);
    EXPECT_GE(speeds.speeds()[1], 0.98 - 1e-12);
}

} // namespace
} // namespace faiss_bits::test
