#include "kernels/range/FlatRange.h"

#include <algorithm>
#include <cmath>

#include "kernels/common/CudaCheck.h"
#include "kernels/knn/ByMetric.h"
#include "kernels/knn/FlatKnnPlan.h"
#include "kernels/knn/all_pairs/AllPairsLaunch.h"
#include "kernels/range/RangeParams.h"
#include "kernels/range/RangeScratch.h"

namespace faiss_bits {

namespace {

struct Launches {
    void (*limits)(const RangeLimitParams&, cudaStream_t);
    void (*scores)(const RangeScoreParams&, int, cudaStream_t);
};

Launches launchesFor(Metric metric) {
    return byMetric(metric, []<Metric kMetric>() {
        return Launches{launchRangeLimits<kMetric>, launchRangeScores<kMetric>};
    });
}

void launchMatrix(
        Metric metric,
        const AllPairsParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    switch (metric) {
        case Metric::L2:
            return launchAllPairs<Metric::L2>(params, multiprocessors, stream);
        case Metric::InnerProduct:
            return launchAllPairs<Metric::InnerProduct>(
                    params, multiprocessors, stream);
        case Metric::L1:
            return launchAllPairs<Metric::L1>(params, multiprocessors, stream);
        case Metric::Linf:
            return launchAllPairs<Metric::Linf>(
                    params, multiprocessors, stream);
        case Metric::Cosine:
            return launchAllPairs<Metric::Cosine>(
                    params, multiprocessors, stream);
        default:
            throw Error(formatMessage(
                    "metric = %d has no tiles of all pairs", int(metric)));
    }
}

class RangeRun {
   public:
    RangeRun(
            const FlatRangePlan& plan,
            const FlatKnnProblem& problem,
            float radius,
            const RangeScratch& scratch,
            cudaStream_t stream,
            RangeSink& sink)
            : plan_(plan),
              p_(problem),
              radius_(radius),
              scratch_(scratch),
              launches_(launchesFor(problem.metric)),
              stream_(stream),
              sink_(sink),
              certifier_(
                      problem,
                      0,
                      plan.method->bound(problem),
                      scratch.certified,
                      stream) {
        items_.perRow = rangeItems(p_.numVectors, plan.itemWords);
        items_.itemWords = plan.itemWords;
        items_.words = rangeWords(p_.numVectors);
    }

    void run() {
        certifier_.begin();
        scratch_.scan->begin(nullptr, 0, stream_);
        for (idx_t q = 0; q < p_.numQueries; q += plan_.tileQueries) {
            first_ = q;
            runTile(std::min(plan_.tileQueries, p_.numQueries - q));
        }
    }

   private:
    int multiprocessors() const {
        return p_.device.multiprocessors;
    }

    void runTile(idx_t rows) {
        scan(rows);
        const int64_t items = rows * items_.perRow;
        const double pairs = double(rows) * double(p_.numVectors);
        // Of so few queries tiles of all pairs are mostly empty.
        constexpr idx_t kFew = 16;
        const bool areFew = rows <= kFew && pairs <= double(plan_.capacity);
        const double matrixFrom = plan_.matrixQueries > 0 && !areFew
                ? plan_.matrixShare * pairs
                : HUGE_VAL;
        const double most = std::min(double(plan_.capacity), matrixFrom);
        // Mostly they fit, which only the device knows yet.
        if (score(0, items, 0, rows, int64_t(most))) {
            return;
        }
        sumUp(scratch_.counts, items, scratch_.offsets);
        readBounds(scratch_.offsets, items, items_.perRow, rows, nullptr);
        const std::vector<int64_t> candidates(
                bounds_.begin(), bounds_.begin() + rows + 1);
        if (double(candidates[size_t(rows)]) > matrixFrom) {
            for (idx_t row = 0; row < rows; row += plan_.matrixQueries) {
                meetAll(row, std::min(plan_.matrixQueries, rows - row));
            }
            return;
        }
        for (idx_t row = 0; row < rows;) {
            idx_t end = row + 1;
            while (end < rows &&
                   candidates[size_t(end + 1)] - candidates[size_t(row)] <=
                           plan_.capacity) {
                ++end;
            }
            if (!score(row * items_.perRow,
                       (end - row) * items_.perRow,
                       row,
                       end - row,
                       plan_.capacity)) {
                scoreParts(row);
            }
            row = end;
        }
    }

    /// Sets the bits of what may be in range, and counts it.
    void scan(idx_t rows) {
        tile_ = certifier_.enter(first_, rows);
        scratch_.scan->enter(tile_, stream_);
        launches_.limits({tile_, radius_, scratch_.limits}, stream_);
        BITS_CUDA_CHECK(cudaMemsetAsync(
                scratch_.bits,
                0,
                size_t(rows) * items_.words * sizeof(uint32_t),
                stream_));
        PassedLists passed;
        passed.limits = scratch_.limits;
        passed.bits = scratch_.bits;
        passed.words = items_.words;
        scratch_.scan->run(tile_, passed, stream_);
        items_.rows = uint32_t(rows);
        launchRangeCounts(
                candidates(),
                scratch_.counts,
                scratch_.sectors,
                multiprocessors(),
                stream_);
    }

    RangeCandidates candidates() const {
        RangeCandidates candidates;
        candidates.items = items_;
        candidates.n = p_.numVectors;
        candidates.bits = scratch_.bits;
        candidates.allowedBits = p_.allowedBits;
        candidates.limits = scratch_.limits;
        return candidates;
    }

    /// bounds_[i] = sums[min(i * step, count)], i = 0 .. rows, and behind them
    /// what `last` points to on the device, if there is that. Waits.
    void readBounds(
            const int64_t* sums,
            int64_t count,
            uint32_t step,
            idx_t rows,
            const int64_t* last) {
        launchRangeBounds(
                sums,
                count,
                step,
                uint32_t(rows),
                last ? last : sums,
                scratch_.bounds,
                stream_);
        bounds_.resize(size_t(rows) + 2);
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                bounds_.data(),
                scratch_.bounds,
                bounds_.size() * sizeof(int64_t),
                cudaMemcpyDeviceToHost,
                stream_));
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream_));
    }

    /// A part with results of some queries from a row of the tile on, which
    /// `write` enqueues to their room.
    template <class Write>
    void handOn(idx_t row, std::vector<idx_t> counts, const Write& write) {
        RangePart part;
        part.first = first_ + row;
        part.counts = std::move(counts);
        for (const idx_t count : part.counts) {
            part.total += count;
        }
        RangeRoom room;
        if (part.total > 0) {
            room = sink_.room(part);
            if (room.distances) {
                BITS_THROW_IF_NOT_FMT(room.ids, "room.ids = nullptr");
                write(room);
            }
        }
        sink_.take(part, room);
    }

    std::vector<idx_t> countsOfBounds() const {
        std::vector<idx_t> counts;
        for (size_t i = 0; i + 2 < bounds_.size(); ++i) {
            counts.push_back(bounds_[i + 1] - bounds_[i]);
        }
        return counts;
    }

    /// The candidates of some items, of whole rows or of a part of one; false,
    /// and nothing is done, if there are more than `most`. Waits.
    bool score(
            int64_t firstItem,
            int64_t numItems,
            idx_t row,
            idx_t rows,
            int64_t most) {
        RangeListParams lists;
        lists.candidates = candidates();
        lists.batch = {
                firstItem, numItems, uint32_t(rows), uint32_t(numItems / rows)};
        lists.counts = scratch_.counts;
        lists.sectors = scratch_.sectors;
        lists.most = most;
        lists.inOrder = scratch_.inOrder;
        lists.offsets = scratch_.begins;
        lists.distances = scratch_.distances;
        lists.columns = scratch_.columns;
        lists.kept = scratch_.kept;
        lists.next = scratch_.next;
        lists.places = scratch_.places;
        launchRangeOrder(lists, multiprocessors(), stream_);
        sumUp(scratch_.inOrder, numItems, scratch_.begins);
        launchRangeLists(lists, multiprocessors(), stream_);
        RangeScoreParams scores;
        scores.search = tile_;
        scores.total = scratch_.begins + numItems;
        scores.most = most;
        scores.next = scratch_.next;
        scores.radius = radius_;
        scores.distances = scratch_.distances;
        scores.columns = scratch_.columns;
        launches_.scores(scores, multiprocessors(), stream_);
        launchRangeKept(lists, multiprocessors(), stream_);
        sumUp(scratch_.kept, numItems, scratch_.places);
        readBounds(
                scratch_.places,
                numItems,
                lists.batch.perRow,
                rows,
                scores.total);
        if (bounds_.back() > most) {
            return false;
        }
        handOn(row, countsOfBounds(), [&](const RangeRoom& room) {
            lists.outDistances = room.distances;
            lists.outIds = room.ids;
            launchRangeResults(lists, multiprocessors(), stream_);
        });
        return true;
    }

    void sumUp(int64_t* counts, int64_t count, int64_t* sums) {
        launchRangeSums(
                counts,
                count,
                sums,
                scratch_.sums,
                scratch_.sumsBytes,
                stream_);
    }

    /// A row that has more candidates than there is room for, in parts.
    void scoreParts(idx_t row) {
        std::vector<int64_t> offsets(size_t(items_.perRow) + 1);
        const int64_t first = row * items_.perRow;
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                offsets.data(),
                scratch_.offsets + first,
                offsets.size() * sizeof(int64_t),
                cudaMemcpyDeviceToHost,
                stream_));
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream_));
        for (size_t begin = 0; begin < items_.perRow;) {
            size_t end = begin + 1;
            while (end < items_.perRow &&
                   offsets[end + 1] - offsets[begin] <= plan_.capacity) {
                ++end;
            }
            score(first + int64_t(begin),
                  int64_t(end - begin),
                  row,
                  1,
                  plan_.capacity);
            begin = end;
        }
    }

    /// The distances of some rows to all vectors.
    void meetAll(idx_t row, idx_t rows) {
        AllPairsParams pairs;
        pairs.search = tile_;
        pairs.search.queries += row * p_.d;
        pairs.search.rows = uint32_t(rows);
        pairs.distances = scratch_.matrix;
        pairs.stride = rangeStride(p_.numVectors);
        launchMatrix(p_.metric, pairs, multiprocessors(), stream_);
        RangeMatrixParams params;
        params.items = items_;
        params.items.rows = uint32_t(rows);
        params.n = p_.numVectors;
        params.allowedBits = p_.allowedBits;
        params.matrix = pairs.distances;
        params.stride = pairs.stride;
        params.radius = radius_;
        params.largest = isSimilarity(p_.metric);
        params.kept = scratch_.kept;
        launchRangeMatrixCounts(params, multiprocessors(), stream_);
        const int64_t numItems = rows * items_.perRow;
        sumUp(scratch_.kept, numItems, scratch_.places);
        readBounds(scratch_.places, numItems, items_.perRow, rows, nullptr);
        handOn(row, countsOfBounds(), [&](const RangeRoom& room) {
            params.places = scratch_.places;
            params.outDistances = room.distances;
            params.outIds = room.ids;
            launchRangeMatrixResults(params, multiprocessors(), stream_);
        });
    }

    const FlatRangePlan& plan_;
    const FlatKnnProblem& p_;
    const float radius_;
    const RangeScratch& scratch_;
    const Launches launches_;
    cudaStream_t stream_;
    RangeSink& sink_;
    Certifier certifier_;
    RangeItems items_; // of the tile
    CertifiedParams tile_;
    idx_t first_ = 0; // query of the tile
    std::vector<int64_t> bounds_;
};

} // namespace

void runFlatRange(
        const FlatRangePlan& plan,
        const FlatKnnProblem& problem,
        float radius,
        Workspace workspace,
        cudaStream_t stream,
        RangeSink& sink) {
    FlatKnnProblem p = rangeProblemOf(problem);
    checkFlatKnnShape(p);
    BITS_THROW_IF_NOT_FMT(!std::isnan(radius), "radius is NaN");
    BITS_THROW_IF_NOT_FMT(
            p.imageInOrder,
            "imageInOrder = 0, but bits of the searchImage are read as those "
            "of vectors");
    if (p.numQueries == 0) {
        return;
    }
    BITS_THROW_IF_NOT_FMT(p.queries || p.exactQueries, "queries = nullptr");
    if (p.numVectors == 0) {
        RangePart none;
        none.counts.resize(size_t(p.numQueries));
        sink.take(none, {});
        return;
    }
    BITS_THROW_IF_NOT_FMT(p.vectors, "vectors = nullptr");
    p.k = 0; // places in the outputs, which there are none of
    WorkspaceSlices slices(workspace);
    const RangeScratch scratch(p, plan, slices);
    try {
        RangeRun(plan, p, radius, scratch, stream, sink).run();
    } catch (...) {
        sink.abandon();
        throw;
    }
}

} // namespace faiss_bits
