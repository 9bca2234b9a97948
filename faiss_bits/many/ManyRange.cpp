#include "faiss_bits/many/ManyRange.h"

#include <algorithm>
#include <queue>

#include "faiss_bits/common/HostParts.h"
#include "faiss_bits/range/RangeResults.h"

namespace faiss_bits::gpu::detail {

namespace {

using faiss::RangeSearchResult;

/// f(run) for all runs of results begin to end - 1.
template <class F>
void forRuns(const RangePieces& of, size_t begin, size_t end, const F& f) {
    while (begin < end) {
        const RangeRun run = of.run(begin, end);
        f(run);
        begin += run.size;
    }
}

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

/// Of one query; result->lims says where to.
void joinQuery(
        const std::vector<std::unique_ptr<RangePieces>>& found,
        bool inOrder,
        const ShardMap* map,
        size_t q,
        std::vector<Cursor>& cursors,
        RangeSearchResult* result) {
    size_t out = result->lims[q];
    cursors.clear();
    for (size_t shard = 0; shard < found.size(); ++shard) {
        const RangePieces* one = found[shard].get();
        if (!one) {
            continue;
        }
        const size_t begin = one->lims[q];
        const size_t end = one->lims[q + 1];
        if (!inOrder) {
            cursors.push_back(
                    {one, &map->segments(int(shard)), begin, end, {}, 0, 0});
            continue;
        }
        const idx_t offset = map ? map->segments(int(shard))[0].inWhole : 0;
        forRuns(*one, begin, end, [&](const RangeRun& run) {
            std::copy_n(run.distances, run.size, result->distances + out);
            for (size_t i = 0; i < run.size; ++i) {
                result->labels[out++] = run.ids[i] + offset;
            }
        });
    }
    if (!inOrder) {
        joinInOrder(cursors, out, result);
    }
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
    allocateResults(*result);
    const bool inOrder = !map || map->isInOrder();
    const idx_t least = queriesOfAThread(*result);
    forHostParts(idx_t(nq), least, [&](idx_t first, idx_t last) {
        std::vector<Cursor> cursors;
        for (idx_t q = first; q < last; ++q) {
            joinQuery(found, inOrder, map, size_t(q), cursors, result);
        }
    });
}

void joinByIds(
        const std::vector<const FoundRanges*>& found,
        idx_t begin,
        idx_t end,
        RangeSearchResult* result) {
    struct Run {
        const FoundRanges* from;
        size_t at;
        size_t end;
    };
    const auto hasHigherId = [](const Run& a, const Run& b) {
        return a.from->ids[a.at] > b.from->ids[b.at];
    };
    std::vector<Run> runs; // a heap
    for (idx_t q = begin; q < end; ++q) {
        runs.clear();
        for (const FoundRanges* one : found) {
            const Run run{one, one->limits[q], one->limits[q + 1]};
            if (run.at < run.end) {
                runs.push_back(run);
            }
        }
        std::make_heap(runs.begin(), runs.end(), hasHigherId);
        size_t out = result->lims[q];
        while (runs.size() > 1) {
            std::pop_heap(runs.begin(), runs.end(), hasHigherId);
            Run& run = runs.back();
            result->labels[out] = run.from->ids[run.at];
            result->distances[out++] = run.from->distances[run.at];
            if (++run.at == run.end) {
                runs.pop_back();
            } else {
                std::push_heap(runs.begin(), runs.end(), hasHigherId);
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
    allocateResults(*result);
    size_t out = 0;
    for (const auto& one : found) {
        if (!one) {
            continue;
        }
        forRuns(*one, 0, one->lims[one->nq], [&](const RangeRun& run) {
            copyHostBytes(
                    result->labels + out, run.ids, run.size * sizeof(idx_t));
            copyHostBytes(
                    result->distances + out,
                    run.distances,
                    run.size * sizeof(float));
            out += run.size;
        });
    }
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
