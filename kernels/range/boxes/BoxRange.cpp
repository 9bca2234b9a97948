// Range searches through boxes: who is counted, how results are cut into parts.

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/common/CudaCheck.h"
#include "kernels/range/boxes/BoxParams.h"
#include "kernels/range/boxes/BoxSums.h"

namespace faiss_bits {

namespace {

constexpr idx_t kChunkStep = 32768;
/// Units at a time, at most: their numbers have 32 bits.
constexpr idx_t kMostUnits = idx_t(1) << 27;
/// From so many queries on their order is sorted.
constexpr idx_t kSortedQueries = 256;
/// Up to so many units have eight warps each to count.
constexpr uint64_t kWideUnits = 1 << 13;
constexpr int kWideWarps = 8;

template <class T>
T roundedUp(T value, T step) {
    return (value + step - 1) / step * step;
}

void checkShape(const RangeBoxesShape& shape) {
    BITS_THROW_IF_NOT_FMT(
            canHaveBoxes(shape),
            "metric = %d, d = %d, n = %lld, chunkIds = %lld: boxes are for L2 "
            "(%d), L1 (%d) and Linf (%d), d from 1 to %d, n from 1 to 2^31 - "
            "1 - %lld and chunkIds a multiple of %lld up to %lld",
            int(shape.metric),
            shape.d,
            (long long)shape.n,
            (long long)shape.chunkIds,
            int(Metric::L2),
            int(Metric::L1),
            int(Metric::Linf),
            kMostBoxDims,
            (long long)kChunkStep,
            (long long)kChunkStep,
            (long long)kMostChunkIds);
}

/// Up to so many units for a multiprocessor have a block each: one warp alone
/// would take long.
constexpr uint64_t kBlockUnits = 16;

/// What counts as few results of a unit, where units have `mean` of them: most
/// have less than half more. No more than needed, as they have shared memory.
uint32_t fewResultsFor(idx_t mean, uint64_t units, int multiprocessors) {
    if (units <= kBlockUnits * multiprocessors) {
        return kLeastFewResults;
    }
    uint32_t few = 4 * kLeastFewResults;
    while (few < kMostFewResults && few < mean + mean / 2) {
        few = std::min(2 * few, kMostFewResults);
    }
    return few;
}

/// Scratch of one search.
struct Scratch {
    uint32_t* keys[2];
    uint32_t* numbers[2];
    uint32_t* counts;
    uint32_t* units;
    uint32_t* listed;
    int64_t* offsets;
    int64_t* bounds;
    void* sums;
    void* sort;

    Scratch(const BoxRangePlan& plan,
            const RangeBoxes& boxes,
            WorkspaceSlices& slices) {
        const size_t rows = size_t(plan.rows);
        const size_t all = rows * boxes.numChunks;
        for (int i = 0; i < 2; ++i) {
            keys[i] = slices.take<uint32_t>(rows);
            numbers[i] = slices.take<uint32_t>(rows);
        }
        counts = slices.take<uint32_t>(all + 1);
        units = slices.take<uint32_t>(all);
        listed = slices.take<uint32_t>(2);
        offsets = slices.take<int64_t>(all + 1);
        bounds = slices.take<int64_t>(rows + 1);
        sums = slices.take<uint8_t>(plan.sumsBytes);
        sort = slices.take<uint8_t>(plan.sortBytes);
    }
};

class Run {
   public:
    Run(const BoxRangePlan& plan,
        const RangeBoxes& boxes,
        int multiprocessors,
        const Scratch& scratch,
        cudaStream_t stream,
        RangeSink& sink)
            : plan_(plan),
              boxes_(boxes),
              multiprocessors_(multiprocessors),
              scratch_(scratch),
              stream_(stream),
              sink_(sink),
              search_{.boxes = boxes} {
        search_.counts = scratch.counts;
        search_.offsets = scratch.offsets;
        search_.units = scratch.units;
        search_.listed = scratch.listed;
    }

    void rows(
            idx_t first,
            idx_t count,
            const float* queries,
            const uint32_t* allowedBits,
            float limit) {
        search_.queries = queries;
        search_.allowedBits = allowedBits;
        search_.limit = limit;
        search_.rows = uint32_t(count);
        search_.order = nullptr;
        sortQueries_();
        count_();
        const std::vector<int64_t> bounds =
                download_(scratch_.bounds, size_t(count) + 1);
        for (idx_t q = 0; q < count;) {
            idx_t end = q + 1;
            while (end < count &&
                   bounds[end + 1] - bounds[q] <= plan_.mostResults) {
                ++end;
            }
            if (bounds[end] - bounds[q] <= plan_.mostResults) {
                part_(first, q, end, bounds);
            } else {
                query_(first, q);
            }
            q = end;
        }
    }

   private:
    void sortQueries_() {
        if (idx_t(search_.rows) < kSortedQueries) {
            return;
        }
        launchBoxQueryKeys(
                search_, scratch_.keys[0], scratch_.numbers[0], stream_);
        search_.order = sortBoxQueries(
                scratch_.keys,
                scratch_.numbers,
                search_.rows,
                scratch_.sort,
                plan_.sortBytes,
                stream_);
    }

    void count_() {
        const uint64_t units = uint64_t(search_.rows) * boxes_.numChunks;
        BITS_CUDA_CHECK(cudaMemsetAsync(
                scratch_.counts, 0, (units + 1) * sizeof(uint32_t), stream_));
        launchBoxCounts(
                search_,
                units <= kWideUnits ? kWideWarps : 1,
                multiprocessors_,
                stream_);
        runBoxSums(
                scratch_.counts,
                scratch_.offsets,
                units + 1,
                scratch_.sums,
                plan_.sumsBytes,
                stream_);
        launchBoxBounds(search_, scratch_.bounds, stream_);
    }

    /// Queries q to end - 1.
    void part_(
            idx_t first,
            idx_t q,
            idx_t end,
            const std::vector<int64_t>& bounds) {
        RangePart part;
        part.first = first + q;
        part.total = bounds[end] - bounds[q];
        for (idx_t i = q; i < end; ++i) {
            part.counts.push_back(bounds[i + 1] - bounds[i]);
        }
        units_(part, q * boxes_.numChunks, end * boxes_.numChunks);
    }

    /// A query with more results than a part has.
    void query_(idx_t first, idx_t q) {
        const idx_t begin = q * boxes_.numChunks;
        const std::vector<int64_t> offsets = download_(
                scratch_.offsets + begin, size_t(boxes_.numChunks) + 1);
        for (idx_t c = 0; c < boxes_.numChunks;) {
            idx_t end = c + 1;
            while (end < boxes_.numChunks &&
                   offsets[end + 1] - offsets[c] <= plan_.mostResults) {
                ++end;
            }
            RangePart part;
            part.first = first + q;
            part.total = offsets[end] - offsets[c];
            part.counts.push_back(part.total);
            units_(part, begin + c, begin + end);
            c = end;
        }
    }

    void units_(const RangePart& part, idx_t begin, idx_t end) {
        RangeRoom room;
        if (part.total > 0) {
            room = sink_.room(part);
        }
        if (room.distances) {
            search_.firstUnit = uint32_t(begin);
            search_.lastUnit = uint32_t(end);
            search_.distances = room.distances;
            search_.ids = room.ids;
            search_.fewResults = fewResultsFor(
                    part.total / (end - begin),
                    uint64_t(end - begin),
                    multiprocessors_);
            BITS_CUDA_CHECK(cudaMemsetAsync(
                    scratch_.listed, 0, 2 * sizeof(uint32_t), stream_));
            launchBoxUnits(search_, stream_);
            launchFewBoxResults(search_, multiprocessors_, stream_);
            launchManyBoxResults(search_, multiprocessors_, stream_);
        }
        sink_.take(part, room);
    }

    std::vector<int64_t> download_(const int64_t* from, size_t count) {
        std::vector<int64_t> values(count);
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                values.data(),
                from,
                count * sizeof(int64_t),
                cudaMemcpyDeviceToHost,
                stream_));
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream_));
        return values;
    }

    const BoxRangePlan& plan_;
    const RangeBoxes& boxes_;
    const int multiprocessors_;
    const Scratch& scratch_;
    cudaStream_t stream_;
    RangeSink& sink_;
    BoxSearch search_;
};

} // namespace

bool canHaveBoxes(const RangeBoxesShape& shape) {
    const bool isKnown = shape.metric == Metric::L2 ||
            shape.metric == Metric::L1 || shape.metric == Metric::Linf;
    return isKnown && 1 <= shape.d && shape.d <= kMostBoxDims && 1 <= shape.n &&
            shape.n <= std::numeric_limits<int32_t>::max() - kChunkStep &&
            shape.chunkIds >= kChunkStep && shape.chunkIds <= kMostChunkIds &&
            shape.chunkIds % kChunkStep == 0;
}

RangeBoxes::RangeBoxes(
        const RangeBoxesShape& shape,
        const float* rows,
        WorkspaceSlices& slices)
        : shape(shape), rows(rows) {
    checkShape(shape);
    constexpr idx_t kLarge = idx_t(kBoxVectors) * kLargeBoxes;
    dims = shape.d <= 3 ? 3 : 4;
    // Chunks of the same size, but for the last one.
    const idx_t chunks = (shape.n + shape.chunkIds - 1) / shape.chunkIds;
    chunkIds = uint32_t(roundedUp((shape.n + chunks - 1) / chunks, kChunkStep));
    numChunks = uint32_t((shape.n + chunkIds - 1) / chunkIds);
    numLarge = uint32_t(roundedUp(shape.n, kLarge * kLargeBoxes) / kLarge);
    const size_t slots = size_t(numLarge) * kLarge;
    const size_t bounds = size_t(2) * dims;
    components = slices.take<float>(slots * dims);
    ids = slices.take<uint32_t>(slots);
    boxes = slices.take<float>(slots / kBoxVectors * bounds);
    full = slices.take<uint32_t>(numLarge);
    large = slices.take<float>(numLarge * bounds);
    const size_t numHuge = numLarge / kLargeBoxes;
    huge = slices.take<float>(roundedUp(numHuge, size_t(kLargeBoxes)) * bounds);
    extent = slices.take<float>(bounds);
}

size_t rangeBoxesBytes(const RangeBoxesShape& shape) {
    WorkspaceSlices slices;
    RangeBoxes(shape, nullptr, slices);
    return slices.used();
}

BoxRangePlan planBoxRange(
        const RangeBoxes& boxes,
        idx_t numQueries,
        size_t maxBytes) {
    BoxRangePlan plan;
    const idx_t ofRow = 24 + 16 * idx_t(boxes.numChunks);
    const idx_t most = std::clamp<idx_t>(
            kMostUnits / boxes.numChunks, 1, std::max<idx_t>(numQueries, 1));
    plan.rows = std::clamp<idx_t>(
            idx_t(std::min(maxBytes, size_t(1) << 40)) / ofRow, 1, most);
    plan.mostResults = std::max<idx_t>(
            idx_t(std::min(maxBytes, size_t(1) << 60) / 12 * 3),
            boxes.chunkIds);
    plan.sumsBytes = boxSumsBytes(size_t(plan.rows) * boxes.numChunks + 1);
    plan.sortBytes = boxSortBytes(size_t(plan.rows));
    WorkspaceSlices slices;
    Scratch(plan, boxes, slices);
    plan.bytes = slices.used();
    return plan;
}

void runBoxRange(
        const BoxRangePlan& plan,
        const RangeBoxes& boxes,
        idx_t numQueries,
        const float* queries,
        const uint32_t* allowedBits,
        float radius,
        int multiprocessors,
        Workspace workspace,
        cudaStream_t stream,
        RangeSink& sink) {
    BITS_THROW_IF_NOT_FMT(!std::isnan(radius), "radius = NaN");
    BITS_THROW_IF_NOT_FMT(
            numQueries >= 0,
            "numQueries = %lld is negative",
            (long long)numQueries);
    BITS_THROW_IF_NOT_FMT(
            queries || numQueries == 0, "queries are a null pointer");
    // The greatest distance below the radius.
    const float limit =
            std::nextafter(radius, -std::numeric_limits<float>::infinity());
    WorkspaceSlices slices(workspace);
    const Scratch scratch(plan, boxes, slices);
    Run run(plan, boxes, multiprocessors, scratch, stream, sink);
    try {
        for (idx_t first = 0; first < numQueries; first += plan.rows) {
            run.rows(
                    first,
                    std::min(plan.rows, numQueries - first),
                    queries + first * boxes.shape.d,
                    allowedBits,
                    limit);
        }
    } catch (...) {
        sink.abandon();
        throw;
    }
}

} // namespace faiss_bits
