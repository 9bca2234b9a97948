#include "kernels/ivf/IvfRangeFound.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <numeric>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/Error.h"
#include "kernels/ivf/IvfDistances.h"
#include "kernels/ivf/IvfTimes.h"

namespace faiss_bits {

namespace {

constexpr idx_t kRoomStep = 8;
constexpr idx_t kLeastRoom = 256;
/// Candidates of a query: a part of the vectors of its lists. Where one has
/// more in range, what is found is put side by side; or, where there was no
/// room for that either, found once more.
constexpr idx_t kRoomPart = 16;
/// Where more than this part of the pairs may be in range, all distances take
/// less time: 20 ps a pair (IvfTimes.cpp), where a candidate takes 166 and its
/// result, which is written alone, some 60.
constexpr idx_t kMostPart = 12;
/// Candidates are doubled while they take no more than this part of the
/// scratch.
constexpr size_t kSparePart = 4;
/// A candidate's number has 32 bits.
constexpr idx_t kMostSlots = idx_t(1) << 31;
constexpr idx_t kLeastRows = 64;

idx_t roundUp(idx_t value, idx_t step) {
    return (value + step - 1) / step * step;
}

/// Of all columns of a row, whose lists begin at multiples of kIvfColumnStep.
idx_t wordsOfRow(const IvfKnnProblem& p) {
    const idx_t columns = p.mostVectors + p.nprobe * (kIvfColumnStep - 1);
    return (columns + 31) / 32;
}

size_t bytesOf(const IvfFoundPlan& plan, const IvfKnnProblem& p) {
    WorkspaceSlices slices;
    IvfFoundSearch(plan, p, slices);
    return slices.used();
}

/// What is found has to be no farther than the radius, as keys are compared.
float limitOf(Metric metric, float radius) {
    return isSimilarity(metric) ? -radius : radius;
}

template <class T>
std::vector<T> toHost(const T* from, idx_t count, cudaStream_t stream) {
    std::vector<T> values(static_cast<size_t>(count));
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            values.data(),
            from,
            values.size() * sizeof(T),
            cudaMemcpyDeviceToHost,
            stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    return values;
}

/// From pageable memory, which may go when this returns.
template <class T>
void toDevice(const std::vector<T>& values, T* to, cudaStream_t stream) {
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            to,
            values.data(),
            values.size() * sizeof(T),
            cudaMemcpyHostToDevice,
            stream));
}

} // namespace

std::optional<IvfFoundPlan> planIvfFound(
        const IvfKnnProblem& p,
        size_t maxBytes) {
    IvfFoundPlan plan;
    plan.search.listMajor = true;
    plan.search.nearProbes = p.nprobe;
    plan.search.room =
            std::max(roundUp(p.mostVectors / kRoomPart, kRoomStep), kLeastRoom);
    plan.search.candidates = int(std::min<idx_t>(plan.search.room, INT_MAX));
    if (p.mostVectors == 0 || p.nprobe > kIvfMostTableProbes ||
        wordsOfRow(p) >= INT_MAX / 32) {
        return std::nullopt;
    }
    const idx_t most = std::min(
            {p.numQueries,
             kIvfMostRows,
             INT_MAX / idx_t(p.nprobe),
             kMostSlots / plan.search.room});
    // In 1, 2, 3, 4, 6, 9... parts: each reads the lists.
    const idx_t least = std::min(kLeastRows, p.numQueries);
    if (most < least) {
        return std::nullopt;
    }
    for (idx_t parts = 1;; parts += std::max<idx_t>(parts / 2, 1)) {
        plan.search.rowsAtATime = std::max((most + parts - 1) / parts, least);
        plan.bytes = bytesOf(plan, p);
        if (plan.bytes <= maxBytes) {
            break;
        }
        if (plan.search.rowsAtATime == least) {
            return std::nullopt;
        }
    }
    while (plan.search.room < p.mostVectors) {
        IvfFoundPlan more = plan;
        more.search.room *= 2;
        more.search.candidates =
                int(std::min<idx_t>(more.search.room, INT_MAX));
        more.bytes = bytesOf(more, p);
        if (more.bytes > maxBytes / kSparePart ||
            more.search.room > kMostSlots / more.search.rowsAtATime) {
            break;
        }
        plan = more;
    }
    // What is found takes less than half of a candidate: room for all of it, or
    // a half or a quarter and so on, where there is some left.
    for (idx_t room = roundUp(p.mostVectors, kRoomStep);
         room > plan.search.room;
         room = roundUp(room / 2, kRoomStep)) {
        IvfFoundPlan more = plan;
        more.search.room = room;
        more.bytes = bytesOf(more, p);
        if (more.bytes <= maxBytes &&
            room <= kMostSlots / more.search.rowsAtATime) {
            plan = more;
            break;
        }
    }
    plan.seconds = ivf_times::ofRangeEstimates(plan.search, p);
    return plan;
}

IvfFoundSearch::IvfFoundSearch(
        const IvfFoundPlan& plan,
        const IvfKnnProblem& p,
        WorkspaceSlices& slices)
        : plan_(plan), p_(p), scratch_(p, plan.search, slices, false) {
    const size_t rows = size_t(plan.search.rowsAtATime);
    const size_t words = size_t(wordsOfRow(p));
    params_.rowWords = uint32_t(words);
    params_.tableSlots = std::bit_ceil(2 * uint32_t(p.nprobe));
    params_.largest = isSimilarity(p.metric);
    params_.bits = slices.take<uint32_t>(rows * words);
    params_.before = slices.take<uint32_t>(rows * words);
    params_.counts = slices.take<uint32_t>(rows);
    firsts_ = slices.take<idx_t>(rows);
    firstFound_ = slices.take<uint32_t>(rows);
}

bool IvfFoundSearch::run(
        idx_t first,
        idx_t rows,
        float radius,
        RangeSink& sink,
        cudaStream_t stream) const {
    const idx_t room = plan_.search.room;
    IvfParams search = beginRows(first, rows, radius, stream);
    search.room = uint32_t(room);
    find(search, stream);
    // How much of each, also where there is no room for it.
    const std::vector<uint32_t> found = toHost(search.numFound, rows, stream);
    const double total = std::accumulate(found.begin(), found.end(), 0.0);
    if (total * kMostPart > double(rows) * double(p_.mostVectors) ||
        total > double(plan_.search.rowsAtATime) *
                        double(plan_.search.candidates)) {
        return false;
    }
    IvfRescoreParams taken = scratch_.rescored;
    const uint32_t most = *std::max_element(found.begin(), found.end());
    if (most <= uint32_t(plan_.search.candidates)) {
        taken.candidates = int(most);
    } else {
        // Side by side.
        std::vector<uint32_t> begins;
        begins.reserve(found.size());
        for (const uint32_t count : found) {
            begins.push_back(taken.numTaken);
            taken.numTaken += count;
        }
        toDevice(begins, firstFound_, stream);
        if (most <= room) {
            // To where candidates are read and written, each by one thread.
            launchIvfFoundPacked(
                    search, firstFound_, taken.distances, taken.places, stream);
            search.foundKeys = taken.distances;
            search.found = taken.places;
            search.firstFound = firstFound_;
        } else {
            search.firstFound = firstFound_;
            search.room = most;
            find(search, stream);
        }
    }
    taken.search = search;
    handOn(taken, most, first, radius, sink, stream);
    return true;
}

/// What kernels get of some rows, whose limit is the radius.
IvfParams IvfFoundSearch::beginRows(
        idx_t first,
        idx_t rows,
        float radius,
        cudaStream_t stream) const {
    IvfParams search = beginIvfRows(p_, scratch_, first, rows, stream);
    search.lastProbe = search.nprobe;
    launchIvfFoundLimits(
            limitOf(p_.metric, radius),
            search.rows,
            scratch_.keys,
            scratch_.places,
            stream);
    return search;
}

/// What may be in range, of each row.
void IvfFoundSearch::find(IvfParams& search, cudaStream_t stream) const {
    beginIvfEstimates(search, p_.metric);
    // Rows may be searched once more. Widths lie behind.
    BITS_CUDA_CHECK(cudaMemsetAsync(
            search.numFound,
            0,
            2 * size_t(plan_.search.rowsAtATime) * sizeof(uint32_t),
            stream));
    launchIvfFound(p_, search, stream);
}

/// The results among what was found.
void IvfFoundSearch::handOn(
        IvfRescoreParams taken,
        uint32_t mostFound,
        idx_t first,
        float radius,
        RangeSink& sink,
        cudaStream_t stream) const {
    const uint32_t rows = taken.search.rows;
    IvfFoundParams params = params_;
    RangePart part;
    part.first = first;
    part.counts.assign(rows, 0);
    if (mostFound > 0) {
        params.rescored = taken;
        params.radius = radius;
        params.mostFound = mostFound;
        launchIvfFoundDistances(p_, params.rescored, stream);
        BITS_CUDA_CHECK(cudaMemsetAsync(
                params.bits,
                0,
                size_t(rows) * params.rowWords * sizeof(uint32_t),
                stream));
        launchIvfFoundCounts(params, stream);
        const std::vector<uint32_t> counts =
                toHost(params.counts, rows, stream);
        part.counts.assign(counts.begin(), counts.end());
    }
    std::vector<idx_t> begins;
    begins.reserve(part.counts.size());
    for (const idx_t count : part.counts) {
        begins.push_back(part.total);
        part.total += count;
    }
    RangeRoom room;
    if (part.total > 0) {
        room = sink.room(part);
        if (room.distances) {
            BITS_THROW_IF_NOT_FMT(room.ids, "room.ids = nullptr");
            toDevice(begins, firsts_, stream);
            params.firsts = firsts_;
            params.outDistances = room.distances;
            params.outIds = room.ids;
            launchIvfFoundResults(params, stream);
        }
    }
    sink.take(part, room);
}

} // namespace faiss_bits
