/// Range results of several shards and replicas, made one.

#include <algorithm>
#include <memory>
#include <random>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

#include "faiss_bits/many/ManyRange.h"

namespace faiss_bits::test {
namespace {

using faiss::RangeSearchResult;
using gpu::detail::FoundRanges;
using gpu::detail::givePieces;
using gpu::detail::joinByIds;
using gpu::detail::joinRanges;
using gpu::detail::joinSlices;
using gpu::detail::moveRanges;
using gpu::detail::RangeMoves;
using gpu::detail::RangePiece;
using gpu::detail::RangePieces;
using gpu::detail::ShardMap;

using Hits = std::vector<std::vector<std::pair<idx_t, float>>>; // [nq]

std::vector<std::pair<idx_t, float>> joined(const Hits& hits) {
    std::vector<std::pair<idx_t, float>> all;
    for (const auto& ofQuery : hits) {
        all.insert(all.end(), ofQuery.begin(), ofQuery.end());
    }
    return all;
}

void writeCounts(const Hits& hits, RangeSearchResult& result) {
    for (size_t q = 0; q < hits.size(); ++q) {
        result.lims[q] = hits[q].size();
    }
}

/// Of so many results each.
std::vector<RangePiece> piecesOf(const Hits& hits, idx_t pieceSize) {
    const auto all = joined(hits);
    std::vector<RangePiece> pieces;
    for (size_t at = 0; at < all.size(); at += size_t(pieceSize)) {
        RangePiece piece;
        piece.size = std::min(pieceSize, idx_t(all.size() - at));
        piece.ids = std::make_unique<idx_t[]>(size_t(piece.size));
        piece.distances = std::make_unique<float[]>(size_t(piece.size));
        for (idx_t i = 0; i < piece.size; ++i) {
            std::tie(piece.ids[i], piece.distances[i]) = all[at + size_t(i)];
        }
        pieces.push_back(std::move(piece));
    }
    return pieces;
}

/// As an index leaves it that knows pieces (each of so many results), or with
/// none as any other.
std::unique_ptr<RangePieces> resultOf(const Hits& hits, idx_t pieceSize = 0) {
    auto result = std::make_unique<RangePieces>(hits.size());
    writeCounts(hits, *result);
    if (pieceSize != 0) {
        result->take(piecesOf(hits, pieceSize));
        return result;
    }
    result->do_allocation();
    const auto all = joined(hits);
    for (size_t i = 0; i < all.size(); ++i) {
        std::tie(result->labels[i], result->distances[i]) = all[i];
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
            for (const idx_t pieceSize : {0, 1, 4, 1000}) {
                std::vector<std::unique_ptr<RangePieces>> found;
                for (int shard = 0; shard < shards; ++shard) {
                    found.push_back(
                            map.size(shard) ? resultOf(of[shard], pieceSize)
                                            : nullptr);
                }
                RangeSearchResult result(nq);
                joinRanges(found, &map, &result);
                EXPECT_EQ(hitsOf(result), want)
                        << shards << " " << additions << " " << pieceSize;
            }
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
            std::vector<std::unique_ptr<RangePieces>> found;
            for (const Hits& one : of) {
                found.push_back(resultOf(one, additions == 1 ? 0 : 1000));
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

/// Parts whose ids lie between each other's: by ascending id, whichever part
/// has them.
TEST(ManyRange, PartsByTheirIds) {
    std::mt19937 random(3);
    const size_t nq = 40;
    for (const size_t parts : {1, 2, 3, 9, 70}) {
        for (const bool areMany : {false, true}) {
            Hits want(nq);
            std::vector<FoundRanges> found(parts);
            for (size_t q = 0; q < nq; ++q) {
                const idx_t n = areMany ? 500 : idx_t(random() % 4);
                for (idx_t id = 0; id < n; ++id) {
                    // Some queries have all in one part.
                    FoundRanges& of =
                            found[q % 5 == 0 ? q % parts : random() % parts];
                    want[q].emplace_back(id, float(random() % 100));
                    of.ids.push_back(id);
                    of.distances.push_back(want[q].back().second);
                }
                for (FoundRanges& one : found) {
                    one.limits.push_back(one.ids.size());
                }
            }
            std::vector<const FoundRanges*> all;
            for (const FoundRanges& one : found) {
                all.push_back(&one);
            }
            RangeSearchResult result(nq);
            writeCounts(want, result);
            result.do_allocation();
            joinByIds(all, 0, 17, &result);
            joinByIds(all, 17, idx_t(nq), &result);
            EXPECT_EQ(hitsOf(result), want) << parts << " " << areMany;
        }
    }
}

/// Blocks at both sides of what a thread takes at a time, queries that end
/// anywhere, and places in another order.
TEST(ManyRange, MovesOfManyResults) {
    constexpr size_t kChunk = size_t(1) << 17;
    std::mt19937 random(4);
    for (const std::vector<size_t>& sizes : std::vector<std::vector<size_t>>{
                 {},
                 {0, 1, 0},
                 {kChunk - 1},
                 {kChunk},
                 {kChunk + 1},
                 {1, kChunk, 5, 3 * kChunk + 7, kChunk - 1}}) {
        size_t total = 0;
        for (const size_t size : sizes) {
            total += size;
        }
        std::vector<float> distances(total);
        std::vector<idx_t> ids(total);
        for (size_t i = 0; i < total; ++i) {
            distances[i] = float(i % 1000);
            ids[i] = idx_t(random());
        }
        RangeMoves moves;
        moves.idOffset = 1000;
        size_t at = 0;
        for (const size_t size : sizes) {
            moves.blocks.push_back(
                    {distances.data() + at, ids.data() + at, size, nullptr});
            at += size;
        }
        // The last query comes first, and so on; some have none.
        moves.limits = {0};
        while (moves.limits.back() < total) {
            const size_t more = random() % 3 == 0 ? 0 : random() % 100000;
            moves.limits.push_back(std::min(total, moves.limits.back() + more));
        }
        for (size_t q = 0; q + 1 < moves.limits.size(); ++q) {
            moves.places.push_back(total - moves.limits[q + 1]);
        }
        std::vector<float> gotDistances(total, -1);
        std::vector<idx_t> gotIds(total, -1);
        moveRanges({moves}, gotDistances.data(), gotIds.data());
        std::vector<float> wantDistances;
        std::vector<idx_t> wantIds;
        for (size_t q = moves.places.size(); q-- > 0;) {
            for (size_t i = moves.limits[q]; i < moves.limits[q + 1]; ++i) {
                wantDistances.push_back(distances[i]);
                wantIds.push_back(ids[i] + 1000);
            }
        }
        EXPECT_TRUE(gotDistances == wantDistances) << total;
        EXPECT_TRUE(gotIds == wantIds) << total;
    }
}

TEST(ManyRange, ShardsWithIdsOfTheirOwn) {
    std::vector<std::unique_ptr<RangePieces>> found;
    found.push_back(resultOf({{{9, 1.f}, {2, 3.f}}, {}}));
    found.push_back(nullptr);
    found.push_back(resultOf({{{4, 0.f}}, {{5, 2.f}}}));
    RangeSearchResult result(2);
    joinRanges(found, nullptr, &result);
    EXPECT_EQ(
            hitsOf(result), (Hits{{{9, 1.f}, {2, 3.f}, {4, 0.f}}, {{5, 2.f}}}));
}

TEST(ManyRange, SlicesOfReplicas) {
    std::vector<std::unique_ptr<RangePieces>> found;
    found.push_back(resultOf({{{3, 1.f}}, {}}));
    found.push_back(nullptr);
    found.push_back(resultOf({{{1, 4.f}, {7, 2.f}}}, 1));
    found.push_back(resultOf({{}}, 1));
    RangeSearchResult result(4);
    joinSlices(found, &result);
    EXPECT_EQ(hitsOf(result), (Hits{{{3, 1.f}}, {}, {{1, 4.f}, {7, 2.f}}, {}}));
}

/// Results of one query in several pieces, and pieces with several queries.
TEST(ManyRange, RunsOfPieces) {
    const Hits hits = {{{0, 0.f}, {1, 1.f}, {2, 2.f}}, {}, {{3, 3.f}}};
    for (const idx_t pieceSize : {0, 1, 2, 3, 4, 5}) {
        const auto result = resultOf(hits, pieceSize);
        EXPECT_EQ(
                std::vector<size_t>(result->lims, result->lims + 4),
                (std::vector<size_t>{0, 3, 3, 4}));
        for (size_t begin = 0; begin < 4; ++begin) {
            for (size_t end = begin + 1; end <= 4; ++end) {
                const auto run = result->run(begin, end);
                const size_t size = pieceSize ? size_t(pieceSize) : 4;
                EXPECT_EQ(
                        run.size,
                        std::min(end, (begin / size + 1) * size) - begin);
                EXPECT_EQ(run.ids[0], idx_t(begin));
                EXPECT_EQ(
                        run.distances[run.size - 1],
                        float(begin + run.size - 1));
            }
        }
    }
}

/// Pieces of a search before are gone, and where they ended.
TEST(ManyRange, PiecesAreTakenAgain) {
    RangePieces result(1);
    for (const idx_t size : {3, 5}) {
        std::vector<RangePiece> pieces(1);
        pieces[0].size = size;
        pieces[0].distances = std::make_unique<float[]>(size);
        pieces[0].ids = std::make_unique<idx_t[]>(size);
        const idx_t* ids = pieces[0].ids.get();
        result.lims[0] = size_t(size);
        result.take(std::move(pieces));
        EXPECT_EQ(result.lims[1], size_t(size));
        const auto run = result.run(0, size_t(size));
        EXPECT_EQ(run.size, size_t(size));
        EXPECT_EQ(run.ids, ids);
    }
}

/// One piece is handed over without a copy; more are put together, and classes
/// of others get the arrays that they allocate.
TEST(ManyRange, PiecesForAnyResult) {
    struct OfAnother : RangeSearchResult {
        using RangeSearchResult::RangeSearchResult;
        void do_allocation() override {
            ++allocations;
            RangeSearchResult::do_allocation();
        }
        int allocations = 0;
    };
    const Hits hits = {{{4, 0.f}, {1, 1.f}, {2, 2.f}}, {}, {{3, 3.f}}};
    for (const idx_t pieceSize : {1, 3, 4, 5}) {
        RangeSearchResult result(hits.size());
        OfAnother other(hits.size());
        for (RangeSearchResult* to :
             {&result, static_cast<RangeSearchResult*>(&other)}) {
            std::vector<RangePiece> pieces = piecesOf(hits, pieceSize);
            const bool isOne = pieces.size() == 1;
            const idx_t* ids = pieces[0].ids.get();
            const float* distances = pieces[0].distances.get();
            writeCounts(hits, *to);
            givePieces(std::move(pieces), *to);
            EXPECT_EQ(hitsOf(*to), hits) << pieceSize;
            EXPECT_EQ(to->labels == ids, isOne && to == &result);
            EXPECT_EQ(to->distances == distances, isOne && to == &result);
        }
        EXPECT_EQ(other.allocations, 1);
    }
    RangeSearchResult none(2);
    givePieces({}, none);
    EXPECT_EQ(hitsOf(none), Hits(2));
    EXPECT_TRUE(none.labels && none.distances); // empty arrays, as FAISS's
}

} // namespace
} // namespace faiss_bits::test
