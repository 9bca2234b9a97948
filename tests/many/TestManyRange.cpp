/// Range results of several shards and replicas, made one.

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "faiss_bits/many/ManyRange.h"

namespace faiss_bits::test {
namespace {

using faiss::RangeSearchResult;
using gpu::detail::joinRanges;
using gpu::detail::joinSlices;
using gpu::detail::ShardMap;

using Hits = std::vector<std::vector<std::pair<idx_t, float>>>; // [nq]

std::unique_ptr<RangeSearchResult> resultOf(const Hits& hits) {
    auto result = std::make_unique<RangeSearchResult>(hits.size());
    for (size_t q = 0; q < hits.size(); ++q) {
        result->lims[q] = hits[q].size();
    }
    result->do_allocation();
    size_t at = 0;
    for (const auto& query : hits) {
        for (const auto& [id, distance] : query) {
            result->labels[at] = id;
            result->distances[at++] = distance;
        }
    }
    return result;
}

Hits hitsOf(const RangeSearchResult& result) {
    Hits hits(result.nq);
    for (size_t q = 0; q < result.nq; ++q) {
        for (size_t i = result.lims[q]; i < result.lims[q + 1]; ++i) {
            hits[q].emplace_back(result.labels[i], result.distances[i]);
        }
    }
    return hits;
}

TEST(ManyRange, ShardsBecomeOneIndex) {
    std::mt19937 random(1);
    for (int shards : {1, 2, 3, 8}) {
        for (int additions : {1, 4}) {
            ShardMap map(shards, 1);
            for (int i = 0; i < additions; ++i) {
                map.commit(map.plan(1 + random() % 50));
            }
            const size_t nq = 5;
            Hits want(nq);
            std::vector<Hits> of(shards, Hits(nq));
            for (size_t q = 0; q < nq; ++q) {
                for (idx_t id = 0; id < map.total(); ++id) {
                    if (random() % 3 != 0 || q == 3) {
                        continue;
                    }
                    const auto run = map.runs(id, 1).front();
                    const float distance = float(random() % 100);
                    want[q].emplace_back(id, distance);
                    of[run.shard][q].emplace_back(run.inShard, distance);
                }
            }
            std::vector<std::unique_ptr<RangeSearchResult>> found;
            for (int shard = 0; shard < shards; ++shard) {
                found.push_back(
                        map.size(shard) ? resultOf(of[shard]) : nullptr);
            }
            RangeSearchResult result(nq);
            joinRanges(found, &map, &result);
            EXPECT_EQ(hitsOf(result), want) << shards << " " << additions;
        }
    }
}

/// So many results that several threads put them together, where there are.
TEST(ManyRange, ManyResults) {
    std::mt19937 random(2);
    for (const size_t nq : {2, 300}) {
        for (const int additions : {1, 3}) {
            const idx_t perQuery = 600000 / idx_t(nq);
            ShardMap map(3, 1);
            for (int i = 0; i < additions; ++i) {
                map.commit(map.plan(perQuery / additions));
            }
            Hits want(nq);
            std::vector<Hits> of(3, Hits(nq));
            for (size_t q = 0; q < nq; ++q) {
                for (const auto& run : map.runs(0, map.total())) {
                    for (idx_t i = 0; i < run.count; ++i) {
                        const float distance = float(random() % 100);
                        want[q].emplace_back(run.inWhole + i, distance);
                        of[run.shard][q].emplace_back(
                                run.inShard + i, distance);
                    }
                }
            }
            std::vector<std::unique_ptr<RangeSearchResult>> found;
            for (const Hits& one : of) {
                found.push_back(resultOf(one));
            }
            RangeSearchResult result(nq);
            joinRanges(found, &map, &result);
            EXPECT_LE(gpu::detail::queriesOfAThread(result), idx_t(nq) / 2);
            EXPECT_TRUE(hitsOf(result) == want) << nq << " " << additions;
        }
    }
    RangeSearchResult none(5000);
    none.do_allocation();
    EXPECT_GT(gpu::detail::queriesOfAThread(none), 5000);
}

TEST(ManyRange, ShardsWithIdsOfTheirOwn) {
    std::vector<std::unique_ptr<RangeSearchResult>> found;
    found.push_back(resultOf({{{9, 1.f}, {2, 3.f}}, {}}));
    found.push_back(nullptr);
    found.push_back(resultOf({{{4, 0.f}}, {{5, 2.f}}}));
    RangeSearchResult result(2);
    joinRanges(found, nullptr, &result);
    EXPECT_EQ(
            hitsOf(result), (Hits{{{9, 1.f}, {2, 3.f}, {4, 0.f}}, {{5, 2.f}}}));
}

TEST(ManyRange, SlicesOfReplicas) {
    std::vector<std::unique_ptr<RangeSearchResult>> found;
    found.push_back(resultOf({{{3, 1.f}}, {}}));
    found.push_back(nullptr);
    found.push_back(resultOf({{{1, 4.f}, {7, 2.f}}}));
    RangeSearchResult result(3);
    joinSlices(found, &result);
    EXPECT_EQ(hitsOf(result), (Hits{{{3, 1.f}}, {}, {{1, 4.f}, {7, 2.f}}}));
}

} // namespace
} // namespace faiss_bits::test
