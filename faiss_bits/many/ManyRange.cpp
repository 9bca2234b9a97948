#include "faiss_bits/many/ManyRange.h"

#include <algorithm>
#include <queue>

#include "faiss_bits/common/HostParts.h"
#include "faiss_bits/range/RangeResults.h"

namespace faiss_bits::gpu::detail {

namespace {

using faiss::RangeSearchResult;

/// One shard's results of one query, from the lowest id on.
struct Cursor {
    const RangePieces* from = nullptr;
    const std::vector<IdSegment>* segments = nullptr;
    size_t at = 0;
    size_t end = 0;
    RangeRun run; // from `at` on
    size_t segment = 0;
    idx_t id = 0;

    bool isAtEnd() const {
        return at == end;
    }

    void readId() {
        if (run.size == 0) {
            run = from->run(at, end);
        }
        const idx_t local = *run.ids;
        while (segment + 1 < segments->size() &&
               (*segments)[segment + 1].inPart <= local) {
            ++segment;
        }
        const IdSegment& of = (*segments)[segment];
        id = of.inWhole + (local - of.inPart);
    }

    void step() {
        ++at;
        run = {run.distances + 1, run.ids + 1, run.size - 1};
    }
};

struct HigherId {
    bool operator()(const Cursor* a, const Cursor* b) const {
        return a->id > b->id;
    }
};

/// Writes one query's results from `out` on.
void joinInOrder(
        std::vector<Cursor>& cursors,
        size_t out,
        RangeSearchResult* result) {
    std::priority_queue<Cursor*, std::vector<Cursor*>, HigherId> next;
    for (Cursor& cursor : cursors) {
        if (!cursor.isAtEnd()) {
            cursor.readId();
            next.push(&cursor);
        }
    }
    while (!next.empty()) {
        Cursor& cursor = *next.top();
        next.pop();
        result->labels[out] = cursor.id;
        result->distances[out] = *cursor.run.distances;
        ++out;
        cursor.step();
        if (!cursor.isAtEnd()) {
            cursor.readId();
            next.push(&cursor);
        }
    }
}

/// Of shards whose ids do not lie one behind the other's.
void joinByMap(
        const std::vector<std::unique_ptr<RangePieces>>& found,
        const ShardMap& map,
        RangeSearchResult* result) {
    for (const auto& one : found) {
        if (one) {
            one->fetch();
        }
    }
    allocateResults(*result);
    const idx_t least = queriesOfAThread(*result);
    forHostParts(idx_t(result->nq), least, [&](idx_t first, idx_t last) {
        std::vector<Cursor> cursors;
        for (idx_t q = first; q < last; ++q) {
            cursors.clear();
            for (size_t shard = 0; shard < found.size(); ++shard) {
                if (const RangePieces* one = found[shard].get()) {
                    cursors.push_back(
                            {one,
                             &map.segments(int(shard)),
                             one->lims[q],
                             one->lims[q + 1],
                             {},
                             0,
                             0});
                }
            }
            joinInOrder(cursors, result->lims[q], result);
        }
    });
}

} // namespace

idx_t queriesOfAThread(const RangeSearchResult& result) {
    // 12 bytes each: longer than it takes to start the thread.
    constexpr size_t kLeastResults = size_t(1) << 17;
    const size_t total = result.lims[result.nq];
    return idx_t(1 + kLeastResults * result.nq / (total + 1));
}

void joinRanges(
        const std::vector<std::unique_ptr<RangePieces>>& found,
        const ShardMap* map,
        RangeSearchResult* result) {
    const size_t nq = result->nq;
    for (size_t q = 0; q < nq; ++q) {
        size_t count = 0;
        for (const auto& one : found) {
            count += one ? one->lims[q + 1] - one->lims[q] : 0;
        }
        result->lims[q] = count;
    }
    if (map && !map->isInOrder()) {
        joinByMap(found, *map, result);
        return;
    }
    // Of each query shard after shard.
    std::vector<RangeMoves> moves;
    std::vector<size_t> next(nq);
    for (size_t q = 1; q < nq; ++q) {
        next[q] = next[q - 1] + result->lims[q - 1];
    }
    for (size_t shard = 0; shard < found.size(); ++shard) {
        const RangePieces* one = found[shard].get();
        if (!one) {
            continue;
        }
        RangeMoves& of = moves.emplace_back();
        of.blocks = one->blocks();
        of.limits.assign(one->lims, one->lims + nq + 1);
        of.places = next;
        of.idOffset = map ? map->segments(int(shard))[0].inWhole : 0;
        for (size_t q = 0; q < nq; ++q) {
            next[q] += one->lims[q + 1] - one->lims[q];
        }
    }
    moveToResult(moves, *result);
}

void joinByIds(
        const std::vector<const FoundRanges*>& found,
        idx_t begin,
        idx_t end,
        RangeSearchResult* result) {
    struct Run {
        idx_t id; // of the result at `at`
        const FoundRanges* from;
        size_t at;
        size_t end;
    };
    std::vector<Run> runs;
    for (idx_t q = begin; q < end; ++q) {
        runs.clear();
        for (const FoundRanges* one : found) {
            const size_t at = one->limits[q];
            if (at < one->limits[q + 1]) {
                runs.push_back({one->ids[at], one, at, one->limits[q + 1]});
            }
        }
        size_t out = result->lims[q];
        while (runs.size() > 1) { // as few as there are parts: no heap
            Run* least = runs.data();
            for (Run& run : runs) {
                least = run.id < least->id ? &run : least;
            }
            result->labels[out] = least->id;
            result->distances[out++] = least->from->distances[least->at];
            if (++least->at < least->end) {
                least->id = least->from->ids[least->at];
            } else {
                *least = runs.back();
                runs.pop_back();
            }
        }
        for (const Run& run : runs) { // what is left of the last one
            std::copy(
                    run.from->ids.begin() + run.at,
                    run.from->ids.begin() + run.end,
                    result->labels + out);
            std::copy(
                    run.from->distances.begin() + run.at,
                    run.from->distances.begin() + run.end,
                    result->distances + out);
        }
    }
}

void joinSlices(
        const std::vector<std::unique_ptr<RangePieces>>& found,
        RangeSearchResult* result) {
    size_t query = 0;
    for (const auto& one : found) {
        for (size_t q = 0; one && q < one->nq; ++q) {
            result->lims[query++] = one->lims[q + 1] - one->lims[q];
        }
    }
    std::vector<RangeMoves> moves;
    size_t out = 0;
    for (const auto& one : found) {
        if (one) {
            const size_t size = one->lims[one->nq];
            moves.push_back({one->blocks(), {0, size}, {out}, 0});
            out += size;
        }
    }
    moveToResult(moves, *result);
}

QueriesOnHost::QueriesOnHost(
        const GpuContext& home,
        const float* x,
        size_t count)
        : data_(x) {
    if (placeOf(home, "x", x).onHost) {
        return;
    }
    copy_.resize(count);
    copyOut(home, x, "x", copy_.data(), count * sizeof(float));
    data_ = copy_.data();
}

} // namespace faiss_bits::gpu::detail
